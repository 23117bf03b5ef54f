#include "unisono/tls_context.hpp"

#include <stdexcept>

#include "openssl_abi.hpp"
#include "tls_stream.hpp"

namespace unisono {

namespace {

constexpr std::size_t read_ahead_bytes = 64 << 10;

// Without this, OpenSSL asks for the password of an encrypted key on the terminal.
int refuse_password(char*, int, int, void*) { return 0; }

}  // namespace

TlsContext::TlsContext(const std::string& certificate, const std::string& key, const std::string& authority,
                       std::uint64_t bytes_per_key)
    : call_(openssl::functions()), bytes_per_key_(bytes_per_key) {
    call_.clear_errors();
    context_ = call_.context_new(call_.any_method());
    if (context_ == nullptr) throw std::runtime_error("OpenSSL cannot make a context");
    try {
        call_.context_control(context_, openssl::set_oldest_version, openssl::tls_1_3, nullptr);
        call_.context_control(context_, openssl::set_mode, openssl::partial_write | openssl::moving_buffer, nullptr);
        call_.context_control(context_, openssl::set_read_ahead, 1, nullptr);
        call_.context_set_read_buffer(context_, read_ahead_bytes);
        call_.context_set_options(context_, openssl::ignore_unexpected_end);
        call_.context_set_ticket_count(context_, 0);  // no connection is resumed
        call_.context_set_verify(context_, openssl::verify_peer | openssl::require_certificate, nullptr);
        call_.context_set_password_callback(context_, refuse_password);
        use_files(certificate, key, authority);
        socket_method_ = make_socket_method();
    } catch (...) {
        call_.context_free(context_);
        throw;
    }
}

TlsContext::~TlsContext() {
    call_.bio_method_free(socket_method_);
    call_.context_free(context_);
}

void TlsContext::use_files(const std::string& certificate, const std::string& key, const std::string& authority) {
    const auto check = [&](int result, const std::string& path) {
        if (result == 1) return;
        const char* const reason = call_.describe_error(call_.take_error());
        throw std::runtime_error(path + ": " + (reason != nullptr ? reason : "cannot be read"));
    };
    check(call_.context_use_certificates(context_, certificate.c_str()), certificate);
    check(call_.context_use_key(context_, key.c_str(), openssl::pem_file), key);
    check(call_.context_check_key(context_), key);
    check(call_.context_trust(context_, authority.c_str(), nullptr), authority);
}

std::string openssl_version() {
    const std::string text = openssl::functions().version(0);  // OpenSSL 3.0.19 27 Jan 2026 (...)
    return text.substr(0, text.find(' ', text.find(' ') + 1));
}

}  // namespace unisono
