// Connections without TLS.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "stream.hpp"
#include "tls_stream.hpp"

namespace unisono {

namespace {

constexpr std::size_t most_awaited_bytes = 256 << 10;

class PlainStream : public Stream {
  public:
    explicit PlainStream(int socket) : Stream(socket) {}

    ssize_t read(void* data, std::size_t room) override { return outcome_of(::recv(socket_, data, room, 0), EPOLLIN); }
    void expect(std::size_t bytes) override {
        const int least = static_cast<int>(std::min(bytes, most_awaited_bytes));
        if (std::exchange(least_, least) != least) ::setsockopt(socket_, SOL_SOCKET, SO_RCVLOWAT, &least, sizeof least);
    }
    ssize_t write(const iovec* parts, std::size_t count) override {
        msghdr message{};
        message.msg_iov = const_cast<iovec*>(parts);
        message.msg_iovlen = count;
        return outcome_of(::sendmsg(socket_, &message, MSG_NOSIGNAL), EPOLLOUT);
    }
    std::uint32_t awaits() const override { return awaits_; }
    bool has_buffered() const override { return false; }
    bool is_from(const CertificateDigest&) const override { return true; }

  private:
    ssize_t outcome_of(ssize_t result, std::uint32_t event) {
        if (result >= 0) return result;
        awaits_ = event;
        if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return again;
        error_ = std::generic_category().message(errno);
        return failed;
    }
    std::uint32_t awaits_ = 0;
    int least_ = 1;  // bytes that must have arrived before the kernel reports them
};

}  // namespace

void Stream::acknowledge() {
    const int at_once = 1;
    ::setsockopt(socket_, IPPROTO_TCP, TCP_QUICKACK, &at_once, sizeof at_once);
}

std::unique_ptr<Stream> make_stream_to(int socket, TlsContext* tls, const CertificateDigest& receiver) {
    if (tls != nullptr) return std::make_unique<TlsStream>(socket, *tls, receiver);
    return std::make_unique<PlainStream>(socket);
}

std::unique_ptr<Stream> make_stream_from(int socket, TlsContext* tls) {
    if (tls != nullptr) return std::make_unique<TlsStream>(socket, *tls);
    return std::make_unique<PlainStream>(socket);
}

}  // namespace unisono
