// Streams, which read and write the bytes of a connection: plain, or inside TLS.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "unisono/tls_context.hpp"

namespace unisono {

class Stream {
  public:
    // Results of `read` and `write` that are not a number of bytes.
    static constexpr ssize_t again = -1;   // wait for the events that `awaits` returns
    static constexpr ssize_t failed = -2;  // the connection can no longer be used; `error` is the reason

    virtual ~Stream() = default;
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;

    // Reads until there is no more room, or nothing more has arrived; returns 0 at the end of the connection.
    virtual ssize_t read(void* data, std::size_t room) = 0;
    // Sets the number of bytes that must arrive before this process is woken. Waking it for every packet of a long
    // letter costs more than copying the letter. (A stream with TLS ignores this: it cannot tell how many bytes will
    // arrive.)
    virtual void expect(std::size_t bytes) { static_cast<void>(bytes); }
    // Acknowledges what has been read. On a connection that carries data in both directions, the kernel delays
    // acknowledgements in the hope of data to send with them; a sender of long letters would wait for them.
    void acknowledge();
    // Writes as much as the socket accepts. After `again`, the next call must begin with the same bytes.
    virtual ssize_t write(const iovec* parts, std::size_t count) = 0;
    // The events of epoll to wait for after `again`.
    virtual std::uint32_t awaits() const = 0;
    // Returns whether the stream may hold received bytes that no further event of the socket announces.
    virtual bool has_buffered() const = 0;
    // Returns whether the peer has proved that it owns this certificate. Without TLS, tickets are the only proof.
    virtual bool is_from(const CertificateDigest& certificate) const = 0;
    const std::string& error() const { return error_; }

  protected:
    explicit Stream(int socket) : socket_(socket) {}
    const int socket_;
    std::string error_;
};

// Return a stream on a non-blocking socket, which the stream does not close; without TLS, `tls` is nullptr. The stream
// to a receiver fails unless the receiver has the given certificate.
std::unique_ptr<Stream> make_stream_to(int socket, TlsContext* tls, const CertificateDigest& receiver);
std::unique_ptr<Stream> make_stream_from(int socket, TlsContext* tls);

}  // namespace unisono
