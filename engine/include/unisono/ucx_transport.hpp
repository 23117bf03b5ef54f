// A transport that sends data with UCX and everything else over TCP.
//
// *Data* are the messages of channels and their credit: letters whose order does not matter, because they are numbered.
// They travel as active messages, and the payload of one that has arrived stays in the buffer of UCX until it is taken.
// All other letters take the TCP connections that a TcpTransport makes. It also carries the addresses of UCX, and it
// decides when a peer is lost. Data for a peer without UCX goes over TCP too.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "unisono/tcp_transport.hpp"
#include "unisono/ucx_context.hpp"

namespace unisono {

class UcxWorker;

class UcxTransport : public Transport {
  public:
    // `control` does not know its peers yet. Throws std::runtime_error.
    UcxTransport(std::shared_ptr<UcxContext> context, std::unique_ptr<TcpTransport> control, std::uint32_t rank,
                 std::uint32_t size);
    ~UcxTransport() override;
    UcxTransport(const UcxTransport&) = delete;
    UcxTransport& operator=(const UcxTransport&) = delete;

    std::uint16_t port() const { return control_->port(); }
    void know_peers(const std::vector<TcpPeer>& peers);
    // Letters that UCX has been given for a peer.
    std::uint64_t posted(std::uint32_t peer) const;

    void connect(std::uint32_t peer) override;
    void send(std::uint32_t to, Letter letter, Sink& sink) override;
    void send_to_all(const Letter& letter, Sink& sink) override;
    void detach(std::uint64_t communicator) override;
    bool progress(Sink& sink) override;
    int event_descriptor() const override { return epoll_; }
    bool arm() override;
    bool has_unsent() const override;
    std::size_t undelivered() const override;
    bool is_gone(std::uint32_t peer) const override { return peers_[peer].lost || control_->is_gone(peer); }
    void check_peers(Sink& sink) override;
    bool has_suspects() const override { return control_->has_suspects(); }
    void abandon() override;

  private:
    using Clock = std::chrono::steady_clock;
    class Relay;
    enum class Route { unknown, asked, ucx, tcp };
    struct Peer {
        Route route = Route::unknown;
        std::vector<Letter> waiting;  // for the address
        // The number of active messages that this process confirms to the peer once they have arrived.
        std::optional<std::uint64_t> to_confirm;
        bool owes_confirmation = false;  // the peer has yet to confirm that it has all active messages
        bool lost = false;
    };

    void ask_address(std::uint32_t peer, Sink& sink);
    void on_control(const Label& label, Payload payload, Sink& sink);
    void on_address(std::uint32_t peer, const std::byte* address, std::size_t bytes, Sink& sink);
    void deliver(Sink& sink);
    void confirm(std::uint32_t peer, Sink& sink);
    void end_data(Sink& sink);
    void say_farewell(Sink& sink);
    void lose(std::uint32_t peer, const std::string& reason, Sink& sink);
    void send_control(std::uint32_t to, LetterKind kind, std::uint64_t number, std::vector<std::byte> payload,
                      Sink& sink);

    std::unique_ptr<TcpTransport> control_;
    std::unique_ptr<UcxWorker> worker_;
    const std::uint32_t rank_;
    int epoll_ = -1;
    int leftover_ = -1;  // an eventfd, readable if letters have arrived outside of `progress`
    std::vector<Peer> peers_;
    std::size_t waiting_ = 0;
    std::uint64_t polls_ = 0;
    std::optional<Letter> farewell_;  // to be sent when all peers have confirmed, or at the latest:
    Clock::time_point farewell_at_{};
};

}  // namespace unisono
