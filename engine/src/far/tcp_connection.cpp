// The part of TcpTransport that reads from its connections and writes to them.
#include "tcp_connection.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <system_error>
#include <utility>

namespace unisono {

namespace {

constexpr std::size_t letters_at_once = 16;
constexpr std::size_t read_at_once = 4 << 20;  // bytes of one connection, before others get their turn
constexpr std::uint64_t longest_letter = std::uint64_t{1} << 32;
// A payload of which at least this much is missing is read into its buffer directly.
constexpr std::size_t in_place_bytes = 4 << 10;

// Compares in a time that does not depend on the position of the first difference.
bool equal(const Ticket& left, const Ticket& right) {
    std::byte difference{};
    for (std::size_t index = 0; index < left.size(); ++index) difference |= left[index] ^ right[index];
    return difference == std::byte{};
}

}  // namespace

// ---- outgoing --------------------------------------------------------------------------------------------------

void TcpTransport::handle(Outgoing& connection, std::uint32_t events, Sink& sink) {
    using State = Outgoing::State;
    if (connection.state == State::connecting) {
        int error = 0;
        socklen_t length = sizeof error;
        ::getsockopt(connection.socket, SOL_SOCKET, SO_ERROR, &error, &length);
        if (error != 0) return suspect(connection.peer, std::generic_category().message(error));
        if (!(events & EPOLLOUT)) return;
        connection.state = State::introducing;
    }
    if (connection.state == State::introducing) return introduce(connection);
    if (connection.state == State::greeting) {
        if (!greet(connection)) return;
    } else if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
        std::byte unexpected;  // a receiver writes nothing after its answer
        const ssize_t count = connection.stream->read(&unexpected, 1);
        if (count != Stream::again)
            return suspect(connection.peer, count == 0 ? "connection closed" : connection.stream->error());
    }
    write_letters(connection, sink);
}

// Sends the greeting; with TLS, after the handshake.
void TcpTransport::introduce(Outgoing& connection) {
    Greeting greeting{greeting_magic, rank_, peers_[connection.peer].peer.ticket_to};
    const iovec part{&greeting, sizeof greeting};
    const ssize_t count = connection.stream->write(&part, 1);
    if (count == Stream::again) return watch(connection, connection.stream->awaits(), false);
    if (count != sizeof greeting) return suspect(connection.peer, connection.stream->error());
    connection.state = Outgoing::State::greeting;
    watch(connection, EPOLLIN, false);
}

// Reads the answer of the receiver; returns whether it is complete and right.
bool TcpTransport::greet(Outgoing& connection) {
    const ssize_t count = connection.stream->read(connection.answer.data() + connection.answered,
                                                  connection.answer.size() - connection.answered);
    if (count == Stream::again) return false;
    if (count <= 0) {
        suspect(connection.peer, count == 0 ? "connection refused: wrong ticket" : connection.stream->error());
        return false;
    }
    connection.answered += static_cast<std::size_t>(count);
    if (connection.answered < connection.answer.size()) return false;
    if (!equal(connection.answer, peers_[connection.peer].peer.ticket_from)) {
        suspect(connection.peer, "the process at its address does not belong to this job");
        return false;
    }
    connection.state = Outgoing::State::open;
    return true;
}

void TcpTransport::write_letters(Outgoing& connection, Sink& sink) {
    while (!connection.letters.empty()) {
        iovec parts[2 * letters_at_once];
        std::size_t count = 0;
        std::size_t skip = connection.written;
        const std::size_t letters = std::min(connection.letters.size(), letters_at_once);
        for (std::size_t index = 0; index < letters; ++index) {
            Letter& letter = connection.letters[index];
            const auto add = [&](const void* data, std::size_t bytes) {
                const std::size_t from = std::min(skip, bytes);
                skip -= from;
                if (bytes > from)
                    parts[count++] = {static_cast<std::byte*>(const_cast<void*>(data)) + from, bytes - from};
            };
            add(&letter.label, sizeof(Label));
            add(letter.payload(), letter.label.bytes);
        }
        const ssize_t sent = connection.stream->write(parts, count);
        if (sent == Stream::again) break;
        if (sent < 0) return suspect(connection.peer, connection.stream->error());
        connection.written += static_cast<std::size_t>(sent);
        while (!connection.letters.empty() &&
               connection.written >= sizeof(Label) + connection.letters.front().label.bytes) {
            const Letter letter = std::move(connection.letters.front());
            connection.letters.pop_front();
            --unsent_;
            connection.written -= sizeof(Label) + letter.label.bytes;
            sink.on_sent(connection.peer, letter.label);
        }
    }
    watch(connection, connection.letters.empty() ? EPOLLIN : EPOLLIN | EPOLLOUT, false);
}

// ---- incoming --------------------------------------------------------------------------------------------------

void TcpTransport::handle(Incoming& connection, std::uint32_t, Sink& sink) {
    if (!connection.authenticated) {
        if (!read_greeting(connection)) return;
        if (connection.begin == connection.end) return;
    }
    read_letters(connection, sink);
    const std::size_t missing = connection.has_label ? connection.label.bytes - connection.received : 0;
    if (connection.socket >= 0) connection.stream->expect(missing >= in_place_bytes ? missing : 1);
}

// Reads the greeting of a stranger; returns whether the connection is authenticated now.
bool TcpTransport::read_greeting(Incoming& connection) {
    const ssize_t count =
        connection.stream->read(connection.buffer.data() + connection.end, sizeof(Greeting) - connection.end);
    if (count == Stream::again) {
        watch(connection, connection.stream->awaits(), false);
        return false;
    }
    const auto own = std::find_if(greeting_.begin(), greeting_.end(),
                                  [&](const std::unique_ptr<Incoming>& other) { return other.get() == &connection; });
    Greeting greeting;
    bool is_known = count > 0;
    if (is_known) {
        connection.end += static_cast<std::size_t>(count);
        if (connection.end < sizeof greeting) return false;
        std::memcpy(&greeting, connection.buffer.data(), sizeof greeting);
        is_known = greeting.magic == greeting_magic && greeting.from < peers_.size() && greeting.from != rank_ &&
                   !peers_[greeting.from].peer.address.empty() &&
                   equal(greeting.ticket, peers_[greeting.from].peer.ticket_from) &&
                   connection.stream->is_from(peers_[greeting.from].peer.certificate) &&
                   !peers_[greeting.from].incoming;
    }
    if (is_known) {
        Ticket& answer = peers_[greeting.from].peer.ticket_to;
        const iovec part{answer.data(), answer.size()};
        is_known = connection.stream->write(&part, 1) == static_cast<ssize_t>(answer.size());
    }
    if (!is_known) {
        ++rejected_;
        connection.close();
        dropped_.push_back(std::move(*own));
        greeting_.erase(own);
        return false;
    }
    connection.peer = greeting.from;
    connection.authenticated = true;
    connection.begin = connection.end = 0;
    peers_[greeting.from].incoming = std::move(*own);
    greeting_.erase(own);
    return true;
}

void TcpTransport::read_letters(Incoming& connection, Sink& sink) {
    bool drained = false;  // the socket has nothing more
    for (std::size_t read = 0;;) {
        // Letters in the buffer first.
        while (connection.socket >= 0) {
            const std::size_t available = connection.end - connection.begin;
            if (!connection.has_label) {
                if (available < sizeof(Label)) break;
                std::memcpy(&connection.label, connection.buffer.data() + connection.begin, sizeof(Label));
                connection.begin += sizeof(Label);
                if (connection.label.bytes > longest_letter || connection.label.from != connection.peer)
                    return lose(connection.peer, "it sent something that is not a letter", sink);
                connection.has_label = true;
                connection.received = 0;
                if (connection.label.bytes > Sink::borrowed_bytes)
                    connection.payload = pool_.get(connection.label.bytes);
                continue;
            }
            const std::size_t bytes = connection.label.bytes;
            if (bytes <= Sink::borrowed_bytes) {
                if (available < bytes) break;
                std::byte* const data = connection.buffer.data() + connection.begin;
                connection.begin += bytes;
                deliver(connection, Payload(data, nullptr, nullptr), sink);
                continue;
            }
            const std::size_t part = std::min(available, bytes - connection.received);
            std::memcpy(connection.payload.data() + connection.received, connection.buffer.data() + connection.begin,
                        part);
            connection.begin += part;
            connection.received += part;
            if (connection.received < bytes) break;
            deliver(connection, std::move(connection.payload), sink);
        }
        if (connection.socket < 0) return;
        const std::size_t missing = connection.has_label && connection.label.bytes > Sink::borrowed_bytes
                                        ? connection.label.bytes - connection.received
                                        : 0;
        if (drained || (read >= read_at_once && !connection.stream->has_buffered())) return;
        std::byte* target = connection.buffer.data();
        std::size_t room = Incoming::buffer_bytes;
        const bool in_place = missing >= in_place_bytes;  // the buffer is empty then
        if (in_place) {
            target = connection.payload.data() + connection.received;
            room = missing;
        } else {
            const std::size_t kept = connection.end - connection.begin;
            std::memmove(target, target + connection.begin, kept);
            connection.begin = 0;
            connection.end = kept;
            target += kept;
            room -= kept;
        }
        const ssize_t count = connection.stream->read(target, room);
        if (count == Stream::again) return;
        if (count <= 0) {
            const std::string reason = count == 0 ? "connection closed" : connection.stream->error();
            connection.close();
            return suspect(connection.peer, reason);
        }
        (in_place ? connection.received : connection.end) += static_cast<std::size_t>(count);
        read += static_cast<std::size_t>(count);
        drained = static_cast<std::size_t>(count) < room;
    }
}

void TcpTransport::deliver(Incoming& connection, Payload payload, Sink& sink) {
    connection.has_label = false;
    if (connection.label.kind == LetterKind::farewell)
        peers_[connection.peer].said_farewell = true;
    else
        sink.on_letter(connection.label, std::move(payload));
}

}  // namespace unisono
