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

// The answer to a greeting whose connection is not needed: only a member of the job can know it.
Ticket refusal_of(const Ticket& ticket) {
    Ticket refusal;
    std::transform(ticket.begin(), ticket.end(), refusal.begin(), [](std::byte byte) { return ~byte; });
    return refusal;
}

// Compares in a time that does not depend on the position of the first difference.
bool equal(const Ticket& left, const Ticket& right) {
    std::byte difference{};
    for (std::size_t index = 0; index < left.size(); ++index) difference |= left[index] ^ right[index];
    return difference == std::byte{};
}

}  // namespace

void TcpTransport::handle(Connection& connection, std::uint32_t events, Sink& sink) {
    using State = Connection::State;
    if (connection.state == State::connecting && !is_connected(connection, events)) return;
    if (connection.state == State::introducing) return introduce(connection);
    const bool is_new = connection.state != State::open;
    if (connection.state == State::greeted && !read_answer(connection)) return;
    if (connection.state == State::strange && !read_greeting(connection)) return;
    if (is_new || events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
        read_letters(connection, sink);
        if (connection.socket < 0) return;
        const std::size_t missing = connection.has_label ? connection.label.bytes - connection.received : 0;
        connection.stream->expect(missing >= in_place_bytes ? missing : 1);
    }
    if (is_new || events & EPOLLOUT) write_letters(connection, sink);
}

// ---- new connections -------------------------------------------------------------------------------------------

// Returns whether the socket is connected.
bool TcpTransport::is_connected(Connection& connection, std::uint32_t events) {
    int error = 0;
    socklen_t length = sizeof error;
    ::getsockopt(connection.socket, SOL_SOCKET, SO_ERROR, &error, &length);
    if (error != 0) {
        suspect(connection.peer, std::generic_category().message(error));
        return false;
    }
    if (!(events & EPOLLOUT)) return false;
    connection.state = Connection::State::introducing;
    return true;
}

// Sends the greeting; with TLS, after the handshake.
void TcpTransport::introduce(Connection& connection) {
    Greeting greeting{greeting_magic, rank_, peers_[connection.peer].peer.ticket_to};
    const iovec part{&greeting, sizeof greeting};
    const ssize_t count = connection.stream->write(&part, 1);
    if (count == Stream::again) return watch(connection, connection.stream->awaits(), false);
    if (count != sizeof greeting) return suspect(connection.peer, connection.stream->error());
    connection.state = Connection::State::greeted;
    watch(connection, EPOLLIN, false);
}

// Reads the answer to the greeting; returns whether the connection is open now.
bool TcpTransport::read_answer(Connection& connection) {
    Ticket answer;
    const ssize_t count =
        connection.stream->read(connection.buffer.data() + connection.end, answer.size() - connection.end);
    if (count == Stream::again) return false;
    if (count <= 0) {
        suspect(connection.peer, count == 0 ? "connection refused: wrong ticket" : connection.stream->error());
        return false;
    }
    connection.end += static_cast<std::size_t>(count);
    if (connection.end < answer.size()) return false;
    std::memcpy(answer.data(), connection.buffer.data(), answer.size());
    PeerState& state = peers_[connection.peer];
    if (connection.peer < rank_ && equal(answer, refusal_of(state.peer.ticket_from))) {
        state.declined = Clock::now();
        connection.close();
        dropped_.push_back(std::move(state.connection));
        return false;
    }
    if (!equal(answer, state.peer.ticket_from)) {
        suspect(connection.peer, "the process at its address does not belong to this job");
        return false;
    }
    connection.end = 0;
    connection.state = Connection::State::open;
    return true;
}

// Reads the greeting of a stranger; returns whether the connection is open now.
bool TcpTransport::read_greeting(Connection& connection) {
    Greeting greeting;
    const ssize_t count =
        connection.stream->read(connection.buffer.data() + connection.end, sizeof greeting - connection.end);
    if (count == Stream::again) {
        watch(connection, connection.stream->awaits(), false);
        return false;
    }
    if (count > 0) {
        connection.end += static_cast<std::size_t>(count);
        if (connection.end < sizeof greeting) return false;
        std::memcpy(&greeting, connection.buffer.data(), sizeof greeting);
        if (greeting.magic == greeting_magic && greeting.from < peers_.size() && greeting.from != rank_) {
            const TcpPeer& peer = peers_[greeting.from].peer;
            if (!peer.address.empty() && equal(greeting.ticket, peer.ticket_from) &&
                connection.stream->is_from(peer.certificate))
                return welcome(connection, greeting.from);
        }
    }
    rejected_ += count != 0 || connection.end > 0;  // a peer closes a connection that it no longer needs
    drop_stranger(connection);
    return false;
}

// Answers a greeting with the right ticket; returns whether the connection is open now.
bool TcpTransport::welcome(Connection& connection, std::uint32_t peer) {
    PeerState& state = peers_[peer];
    const bool is_open = state.connection && state.connection->state == Connection::State::open;
    const bool is_needed = !state.connection || (!is_open && peer < rank_);
    const Ticket answer = is_needed ? state.peer.ticket_to : refusal_of(state.peer.ticket_to);
    const iovec part{const_cast<std::byte*>(answer.data()), answer.size()};
    const bool is_answered = connection.stream->write(&part, 1) == static_cast<ssize_t>(answer.size());
    if (!is_needed || !is_answered || state.lost) {
        rejected_ += is_needed;
        drop_stranger(connection);
        return false;
    }
    if (state.connection) {  // this process has begun to connect, too
        state.connection->close();
        dropped_.push_back(std::move(state.connection));
    }
    const auto own = std::find_if(strangers_.begin(), strangers_.end(),
                                  [&](const std::unique_ptr<Connection>& other) { return other.get() == &connection; });
    state.connection = std::move(*own);
    strangers_.erase(own);
    state.declined = {};
    connection.peer = peer;
    connection.begin = connection.end = 0;
    connection.state = Connection::State::open;
    return true;
}

void TcpTransport::drop_stranger(Connection& connection) {
    const auto own = std::find_if(strangers_.begin(), strangers_.end(),
                                  [&](const std::unique_ptr<Connection>& other) { return other.get() == &connection; });
    connection.close();
    dropped_.push_back(std::move(*own));  // an event of it may follow
    strangers_.erase(own);
}

// ---- letters ---------------------------------------------------------------------------------------------------

void TcpTransport::write_letters(Connection& connection, Sink& sink) {
    PeerState& state = peers_[connection.peer];
    while (!state.letters.empty()) {
        iovec parts[2 * letters_at_once];
        std::size_t count = 0;
        std::size_t skip = state.written;
        const std::size_t letters = std::min(state.letters.size(), letters_at_once);
        for (std::size_t index = 0; index < letters; ++index) {
            Letter& letter = state.letters[index];
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
        if (sent < 0) return stop_writing(connection);
        state.written += static_cast<std::size_t>(sent);
        while (!state.letters.empty() && state.written >= sizeof(Label) + state.letters.front().label.bytes) {
            const Letter letter = std::move(state.letters.front());
            state.letters.pop_front();
            --unsent_;
            state.written -= sizeof(Label) + letter.label.bytes;
            sink.on_sent(connection.peer, letter.label);
        }
    }
    watch(connection, state.letters.empty() ? EPOLLIN : EPOLLIN | EPOLLOUT, false);
}

// The peer has closed the connection, but what it sent before has to be read: the end of that is the end of the
// connection. (The connection is not read here, because this may be the effect of a letter that is being delivered.)
void TcpTransport::stop_writing(Connection& connection) {
    connection.closed_for_writing = Clock::now();
    has_suspects_ = true;
    drop_letters(peers_[connection.peer]);
    watch(connection, EPOLLIN, false);
}

void TcpTransport::read_letters(Connection& connection, Sink& sink) {
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
            if (bytes >= in_place_bytes) connection.stream->acknowledge();
            deliver(connection, std::move(connection.payload), sink);
        }
        if (connection.socket < 0) return;
        const std::size_t missing = connection.has_label && connection.label.bytes > Sink::borrowed_bytes
                                        ? connection.label.bytes - connection.received
                                        : 0;
        if (drained || (read >= read_at_once && !connection.stream->has_buffered())) return;
        std::byte* target = connection.buffer.data();
        std::size_t room = Connection::buffer_bytes;
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

void TcpTransport::deliver(Connection& connection, Payload payload, Sink& sink) {
    connection.has_label = false;
    if (connection.label.kind != LetterKind::farewell) return sink.on_letter(connection.label, std::move(payload));
    peers_[connection.peer].said_farewell = true;
    connection.stream->acknowledge();  // the peer waits for it
}

}  // namespace unisono
