// The connections of a TcpTransport.
#pragma once

#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "stream.hpp"
#include "unisono/tcp_transport.hpp"

namespace unisono {

inline constexpr std::array<char, 12> greeting_magic{'u', 'n', 'i', 's', 'o', 'n', 'o', '-', 'f', 'a', 'r', '2'};

struct Greeting {
    std::array<char, 12> magic = greeting_magic;
    std::uint32_t from = 0;
    Ticket ticket{};
};
static_assert(sizeof(Greeting) == 48);

struct TcpTransport::Connection {
    // A connection that this process opens is `connecting`, `introducing` (the greeting is being sent) and `greeted`
    // (the answer has not arrived); one that it has accepted is `strange` until its greeting has arrived.
    enum class State { connecting, introducing, greeted, strange, open };

    Connection(int socket, std::unique_ptr<Stream> stream, State state)
        : socket(socket), stream(std::move(stream)), state(state), buffer(buffer_bytes) {}
    ~Connection() { close(); }
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;
    void close() {
        if (socket >= 0) ::close(socket);
        socket = -1;
    }

    static constexpr std::size_t buffer_bytes = 64 << 10;
    int socket;
    const std::unique_ptr<Stream> stream;
    State state;
    std::uint32_t peer = 0;     // of a stranger: not known
    std::uint32_t watched = 0;  // events
    Clock::time_point began = Clock::now();
    Clock::time_point closed_for_writing{};  // since when the peer has accepted no letters; zero: it does
    std::vector<std::byte> buffer;           // bytes that have arrived, from `begin` to `end`
    std::size_t begin = 0, end = 0;
    Label label{};
    bool has_label = false;
    Payload payload;           // of a letter that has arrived in part
    std::size_t received = 0;  // bytes of it
};

}  // namespace unisono
