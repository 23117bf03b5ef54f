// A connection inside TLS.
#pragma once

#include <optional>
#include <vector>

#include "openssl_abi.hpp"
#include "stream.hpp"

namespace unisono {

// Makes the kind of BIO through which OpenSSL reads from a socket and writes to it. OpenSSL's own kind raises SIGPIPE.
openssl::BioMethod* make_socket_method();

class TlsStream : public Stream {
  public:
    // A stream of the side that connects; `receiver` is the certificate that it expects.
    TlsStream(int socket, TlsContext& context, const CertificateDigest& receiver);
    // A stream of the side that accepts.
    TlsStream(int socket, TlsContext& context);
    ~TlsStream() override;

    ssize_t read(void* data, std::size_t room) override;
    ssize_t write(const iovec* parts, std::size_t count) override;
    std::uint32_t awaits() const override { return awaits_; }
    bool has_buffered() const override;
    bool is_from(const CertificateDigest& certificate) const override;

  private:
    friend openssl::BioMethod* make_socket_method();
    void open(bool is_client);
    ssize_t secure();  // 1 once the handshake is complete
    ssize_t outcome_of(int result);
    std::string reason_of_failure();
    void read_certificate();
    static int receive(openssl::Bio* bio, char* data, int room);
    static int send(openssl::Bio* bio, const char* data, int bytes);

    TlsContext& context_;
    const openssl::Functions& call_;
    const std::optional<CertificateDigest> expected_;
    openssl::Connection* connection_ = nullptr;
    bool is_secure_ = false;
    std::optional<CertificateDigest> certificate_;  // of the peer
    std::uint32_t awaits_;
    int error_number_ = 0;           // errno of the last system call that failed
    std::vector<std::byte> record_;  // parts that are written as one record
    std::uint64_t written_ = 0;      // bytes encrypted with the current key
};

}  // namespace unisono
