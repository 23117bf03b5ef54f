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

inline constexpr std::array<char, 12> greeting_magic{'u', 'n', 'i', 's', 'o', 'n', 'o', '-', 'f', 'a', 'r', '1'};

struct Greeting {
    std::array<char, 12> magic = greeting_magic;
    std::uint32_t from = 0;
    Ticket ticket{};
};
static_assert(sizeof(Greeting) == 48);

struct TcpTransport::Connection {
    Connection(int socket, std::unique_ptr<Stream> stream, bool outgoing)
        : socket(socket), stream(std::move(stream)), outgoing(outgoing) {}
    ~Connection() { close(); }
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;
    void close() {
        if (socket >= 0) ::close(socket);
        socket = -1;
    }

    int socket;
    const std::unique_ptr<Stream> stream;
    const bool outgoing;
    std::uint32_t peer = 0;
    std::uint32_t watched = 0;  // events
    Clock::time_point began = Clock::now();
};

struct TcpTransport::Outgoing : Connection {
    Outgoing(int socket, std::unique_ptr<Stream> stream) : Connection(socket, std::move(stream), true) {}

    enum class State { connecting, introducing, greeting, open };
    State state = State::connecting;
    std::deque<Letter> letters;
    std::size_t written = 0;  // bytes of the first letter, with its label
    Ticket answer{};
    std::size_t answered = 0;  // bytes of the answer
};

struct TcpTransport::Incoming : Connection {
    Incoming(int socket, std::unique_ptr<Stream> stream)
        : Connection(socket, std::move(stream), false), buffer(buffer_bytes) {}

    static constexpr std::size_t buffer_bytes = 64 << 10;
    bool authenticated = false;
    std::vector<std::byte> buffer;  // bytes that have arrived, from `begin` to `end`
    std::size_t begin = 0, end = 0;
    Label label{};
    bool has_label = false;
    Payload payload;           // of a letter that has arrived in part
    std::size_t received = 0;  // bytes of it
};

}  // namespace unisono
