#include "tls_stream.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>

namespace unisono {

namespace {

constexpr std::size_t record_bytes = 16 << 10;  // the longest record of TLS

bool is_transient(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

}  // namespace

openssl::BioMethod* make_socket_method() {
    const openssl::Functions& call = openssl::functions();
    openssl::BioMethod* const method = call.bio_method_new(openssl::bio_source_and_sink, "unisono");
    if (method == nullptr) throw std::runtime_error("OpenSSL cannot make a BIO");
    call.bio_method_set_read(method, TlsStream::receive);
    call.bio_method_set_write(method, TlsStream::send);
    call.bio_method_set_control(
        method, [](openssl::Bio*, int command, long, void*) -> long { return command == openssl::bio_flush ? 1 : 0; });
    return method;
}

int TlsStream::receive(openssl::Bio* bio, char* data, int room) {
    const openssl::Functions& call = openssl::functions();
    auto& stream = *static_cast<TlsStream*>(call.bio_get_data(bio));
    call.bio_clear_flags(bio, openssl::bio_all_flags);
    const ssize_t count = ::recv(stream.socket_, data, static_cast<std::size_t>(room), 0);
    stream.error_number_ = count < 0 ? errno : 0;
    if (count >= 0) return static_cast<int>(count);
    if (is_transient(errno)) call.bio_set_flags(bio, openssl::bio_read | openssl::bio_retry);
    return -1;
}

int TlsStream::send(openssl::Bio* bio, const char* data, int bytes) {
    const openssl::Functions& call = openssl::functions();
    auto& stream = *static_cast<TlsStream*>(call.bio_get_data(bio));
    call.bio_clear_flags(bio, openssl::bio_all_flags);
    const ssize_t count = ::send(stream.socket_, data, static_cast<std::size_t>(bytes), MSG_NOSIGNAL);
    stream.error_number_ = count < 0 ? errno : 0;
    if (count >= 0) return static_cast<int>(count);
    if (is_transient(errno)) call.bio_set_flags(bio, openssl::bio_write | openssl::bio_retry);
    return -1;
}

TlsStream::TlsStream(int socket, TlsContext& context, const CertificateDigest& receiver)
    : Stream(socket), context_(context), call_(context.call_), expected_(receiver), awaits_(EPOLLOUT) {
    open(true);
}

TlsStream::TlsStream(int socket, TlsContext& context)
    : Stream(socket), context_(context), call_(context.call_), awaits_(EPOLLIN) {
    open(false);
}

TlsStream::~TlsStream() { call_.connection_free(connection_); }

void TlsStream::open(bool is_client) {
    connection_ = call_.connection_new(context_.context_);
    openssl::Bio* const bio = call_.bio_new(context_.socket_method_);
    if (connection_ == nullptr || bio == nullptr) throw std::bad_alloc();
    call_.bio_set_data(bio, this);
    call_.bio_set_init(bio, 1);
    call_.set_bio(connection_, bio, bio);  // the connection frees it
    is_client ? call_.be_client(connection_) : call_.be_server(connection_);
}

ssize_t TlsStream::read(void* data, std::size_t room) {
    if (const ssize_t secured = secure(); secured <= 0) return secured;
    std::size_t total = 0;
    while (total < room) {
        call_.clear_errors();
        const std::size_t part = std::min<std::size_t>(room - total, 1 << 30);
        const int result = call_.read(connection_, static_cast<std::byte*>(data) + total, static_cast<int>(part));
        if (result <= 0) return total > 0 ? static_cast<ssize_t>(total) : outcome_of(result);
        total += static_cast<std::size_t>(result);
    }
    return static_cast<ssize_t>(total);
}

// A label and the beginning of its payload, or several short letters, become one record.
ssize_t TlsStream::write(const iovec* parts, std::size_t count) {
    if (const ssize_t secured = secure(); secured <= 0) return secured;
    ssize_t total = 0;
    std::size_t skip = 0;  // bytes of the first part that are written
    while (count > 0) {
        const std::byte* data = static_cast<const std::byte*>(parts->iov_base) + skip;
        std::size_t bytes = parts->iov_len - skip;
        if (bytes < record_bytes && count > 1) {
            record_.resize(record_bytes);
            std::size_t filled = 0, from = skip;
            for (std::size_t index = 0; index < count && filled < record_bytes; ++index, from = 0) {
                const std::size_t part = std::min(parts[index].iov_len - from, record_bytes - filled);
                std::memcpy(record_.data() + filled, static_cast<const std::byte*>(parts[index].iov_base) + from, part);
                filled += part;
            }
            data = record_.data();
            bytes = filled;
        }
        call_.clear_errors();
        const int result = call_.write(connection_, data, static_cast<int>(std::min(bytes, record_bytes)));
        if (result <= 0) {
            const ssize_t outcome = outcome_of(result);
            return outcome == again && total > 0 ? total : outcome;
        }
        total += result;
        for (skip += static_cast<std::size_t>(result); count > 0 && skip >= parts->iov_len; ++parts, --count)
            skip -= parts->iov_len;
        written_ += static_cast<std::uint64_t>(result);
        if (written_ >= context_.bytes_per_key_) {
            written_ = 0;
            call_.update_key(connection_, openssl::key_update_one_way);
        }
    }
    return total;
}

bool TlsStream::has_buffered() const { return is_secure_ && call_.has_pending(connection_) == 1; }

bool TlsStream::is_from(const CertificateDigest& certificate) const { return certificate_ == certificate; }

ssize_t TlsStream::secure() {
    if (is_secure_) return 1;
    if (!error_.empty()) return failed;
    call_.clear_errors();
    const int result = call_.shake_hands(connection_);
    if (result != 1) {
        const ssize_t outcome = outcome_of(result);
        return outcome == 0 ? failed : outcome;
    }
    read_certificate();
    if (expected_ && certificate_ != expected_) {
        error_ = "TLS: the process at its address does not have the certificate that it had at the rendezvous";
        return failed;
    }
    is_secure_ = true;
    return 1;
}

void TlsStream::read_certificate() {
    openssl::Certificate* const certificate = call_.get_peer_certificate(connection_);
    if (certificate == nullptr) return;
    CertificateDigest digest{};
    unsigned length = 0;
    auto* const data = reinterpret_cast<unsigned char*>(digest.data());
    if (call_.certificate_digest(certificate, call_.sha256(), data, &length) == 1 && length == digest.size())
        certificate_ = digest;
    call_.certificate_free(certificate);
}

// Returns `again`, 0 at the end of the connection, or `failed`.
ssize_t TlsStream::outcome_of(int result) {
    switch (call_.get_error(connection_, result)) {
        case openssl::wants_read: awaits_ = EPOLLIN; return again;
        case openssl::wants_write: awaits_ = EPOLLOUT; return again;
        case openssl::connection_ended: error_ = "connection closed"; return 0;
        case openssl::error_of_system:
            error_ = error_number_ == 0 || is_transient(error_number_) ? "connection closed"
                                                                       : std::generic_category().message(error_number_);
            return failed;
        default: error_ = "TLS: " + reason_of_failure(); return failed;
    }
}

std::string TlsStream::reason_of_failure() {
    const char* const reason = call_.describe_error(call_.take_error());
    std::string text = reason != nullptr ? reason : "unknown error";
    if (const long result = call_.get_verify_result(connection_); result != openssl::certificate_is_valid)
        text.append(" (").append(call_.describe_verify_result(result)).append(")");
    return text;
}

}  // namespace unisono
