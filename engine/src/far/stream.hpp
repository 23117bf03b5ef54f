// The bytes of a connection: as they are, or inside TLS.
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
    static constexpr ssize_t failed = -2;  // the connection is useless; `error` is the reason

    virtual ~Stream() = default;
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;

    // Reads until there is no more room, or nothing more has arrived; returns 0 at the end of the connection.
    virtual ssize_t read(void* data, std::size_t room) = 0;
    // Announces that fewer bytes than these are of no use, so that this process is not woken for every packet of a long
    // letter: that costs more than its copy. (A stream with TLS ignores it: it cannot tell how many bytes will arrive.)
    virtual void expect(std::size_t bytes) { static_cast<void>(bytes); }
    // Writes as much as the socket accepts. After `again`, the next call must begin with the same bytes.
    virtual ssize_t write(const iovec* parts, std::size_t count) = 0;
    // The events of epoll to wait for after `again`.
    virtual std::uint32_t awaits() const = 0;
    // Returns whether bytes may have arrived that no event will announce.
    virtual bool has_buffered() const = 0;
    // Returns whether the peer has proved that it owns this certificate. Without TLS, tickets are the only proof.
    virtual bool is_from(const CertificateDigest& certificate) const = 0;
    const std::string& error() const { return error_; }

  protected:
    explicit Stream(int socket) : socket_(socket) {}
    const int socket_;
    std::string error_;
};

// The socket must not block; it stays open. `tls` may be nullptr. A stream of a sender ends with an error unless the
// receiver has this certificate.
std::unique_ptr<Stream> make_stream_to(int socket, TlsContext* tls, const CertificateDigest& receiver);
std::unique_ptr<Stream> make_stream_from(int socket, TlsContext* tls);

}  // namespace unisono
