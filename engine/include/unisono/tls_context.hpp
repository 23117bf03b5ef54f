// TLS for the connections between couriers, by OpenSSL, which is loaded at run time. The engine contains no
// cryptography.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace unisono {

namespace openssl {
struct Functions;
struct Context;
struct BioMethod;
}  // namespace openssl

using CertificateDigest = std::array<std::byte, 32>;  // SHA-256

// Loads OpenSSL and returns its version, such as "OpenSSL 3.0.19". Throws std::runtime_error.
std::string openssl_version();

// Both sides of a connection prove that they own a certificate of the authority. Files are in PEM format.
class TlsContext {
  public:
    // Loads OpenSSL 3: the library that the process has loaded already, or that of the system. Throws
    // std::runtime_error if it cannot be loaded, or a file cannot be used. A connection changes its key after
    // `bytes_per_key` bytes.
    TlsContext(const std::string& certificate, const std::string& key, const std::string& authority,
               std::uint64_t bytes_per_key);
    ~TlsContext();
    TlsContext(const TlsContext&) = delete;
    TlsContext& operator=(const TlsContext&) = delete;

  private:
    friend class TlsStream;
    void use_files(const std::string& certificate, const std::string& key, const std::string& authority);

    const openssl::Functions& call_;
    const std::uint64_t bytes_per_key_;
    openssl::Context* context_ = nullptr;
    openssl::BioMethod* socket_method_ = nullptr;
};

}  // namespace unisono
