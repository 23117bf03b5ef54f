// A transport over TCP. Two processes share one connection, which the first of them to send opens. With a connection
// for each direction, the kernel would acknowledge most short letters in separate packets, which took two to eight
// microseconds per exchange.
//
// A new connection is authenticated before any letter is read. The process that opens it begins with a greeting: a
// constant, its rank, and the *ticket* that only a member of the job can know (a keyed digest, see
// bootstrap/tickets.py). The other process answers with the ticket of the other direction. If both open a connection at
// the same time, that of the lower rank remains: the lower rank declines the other one, with a *refusal*, and the
// higher rank waits for the connection of the lower. Tickets do not encrypt anything; with `use_tls`, all of this
// happens inside TLS, and each side must own the certificate that it had at the rendezvous.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "unisono/tls_context.hpp"
#include "unisono/transport.hpp"

namespace unisono {

using Ticket = std::array<std::byte, 32>;

struct TcpPeer {
    std::string address;  // numeric; empty for the ranks of this host
    std::uint16_t port = 0;
    Ticket ticket_to{};               // presented to this peer
    Ticket ticket_from{};             // expected from it
    CertificateDigest certificate{};  // with TLS: of this peer
};

// Buffers for the payloads of arriving letters, which are used again.
class PayloadPool {
  public:
    Payload get(std::size_t bytes);

  private:
    static void put_back(void* pool, std::byte* data);
    struct Deleter {
        void operator()(std::byte* data) const;
    };
    using Buffer = std::unique_ptr<std::byte, Deleter>;
    static constexpr int classes = 40;  // powers of two
    std::vector<Buffer> free_[classes];
};

class TcpTransport : public Transport {
  public:
    // Listens at an address, on the first free port of a range; `first_port` 0: any port. Throws std::system_error.
    TcpTransport(std::uint32_t rank, const std::string& address, std::uint16_t first_port, std::uint16_t last_port);
    ~TcpTransport() override;
    TcpTransport(const TcpTransport&) = delete;
    TcpTransport& operator=(const TcpTransport&) = delete;

    std::uint16_t port() const { return port_; }
    void use_tls(std::unique_ptr<TlsContext> tls) { tls_ = std::move(tls); }  // before `know_peers`
    void know_peers(std::vector<TcpPeer> peers);
    std::uint64_t rejected() const { return rejected_; }  // connections without a valid ticket

    void connect(std::uint32_t peer) override;
    void send(std::uint32_t to, Letter letter, Sink& sink) override;
    void send_to_all(const Letter& letter, Sink& sink) override;
    void detach(std::uint64_t communicator) override;
    bool progress(Sink& sink) override;
    int event_descriptor() const override { return epoll_; }
    bool has_unsent() const override { return unsent_ > 0; }
    std::size_t undelivered() const override;
    bool is_gone(std::uint32_t peer) const override { return peers_[peer].lost || peers_[peer].said_farewell; }
    void check_peers(Sink& sink) override;
    bool has_suspects() const override { return has_suspects_; }
    void abandon() override;

  private:
    using Clock = std::chrono::steady_clock;
    struct Connection;
    struct PeerState {
        TcpPeer peer;
        std::unique_ptr<Connection> connection;
        std::deque<Letter> letters;    // to be sent
        std::size_t written = 0;       // bytes of the first letter, with its label
        Clock::time_point declined{};  // since when this process waits for a connection of the peer; zero: it does not
        bool said_farewell = false;
        bool lost = false;
        Clock::time_point suspected{};  // since when the connection to it has been closed; zero: it is not
        std::string reason;
    };

    void listen_at(const std::string& address, std::uint16_t first_port, std::uint16_t last_port);
    void accept_all();
    void handle(Connection& connection, std::uint32_t events, Sink& sink);
    bool is_connected(Connection& connection, std::uint32_t events);
    void introduce(Connection& connection);
    bool read_answer(Connection& connection);
    bool read_greeting(Connection& connection);
    bool welcome(Connection& connection, std::uint32_t peer);
    void drop_stranger(Connection& connection);
    void write_letters(Connection& connection, Sink& sink);
    void stop_writing(Connection& connection);
    void read_letters(Connection& connection, Sink& sink);
    void deliver(Connection& connection, Payload payload, Sink& sink);
    void watch(Connection& connection, std::uint32_t events, bool is_new);
    void suspect(std::uint32_t peer, const std::string& reason);
    void drop_letters(PeerState& state);
    void lose(std::uint32_t peer, const std::string& reason, Sink& sink);
    bool is_unreachable(int socket) const;

    std::uint32_t rank_;
    std::unique_ptr<TlsContext> tls_;  // nullptr: nothing is encrypted
    int listener_ = -1, epoll_ = -1;
    std::uint16_t port_ = 0;
    std::vector<PeerState> peers_;
    std::vector<std::unique_ptr<Connection>> strangers_;  // accepted connections that are not authenticated yet
    std::vector<std::unique_ptr<Connection>> dropped_;    // destroyed at the end of `progress`
    PayloadPool pool_;
    std::size_t unsent_ = 0;
    bool has_suspects_ = false;
    std::uint64_t rejected_ = 0;
};

}  // namespace unisono
