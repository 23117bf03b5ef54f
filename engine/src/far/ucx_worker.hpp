// Active messages of UCX between the processes of a job: letters leave and arrive, by rank of the peer.
//
// UCX authenticates nothing, so each active message carries the ticket of its direction (see tcp_transport.hpp); one
// with a wrong ticket is dropped. As with TCP, nothing is encrypted.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ucx_abi.hpp"
#include "unisono/tcp_transport.hpp"
#include "unisono/ucx_context.hpp"

namespace unisono {

// Not safe for threads. UCX calls back from `progress`, and the callbacks only take notes.
class UcxWorker {
  public:
    using Clock = std::chrono::steady_clock;
    struct Arrived {
        Label label;
        std::array<std::byte, Sink::borrowed_bytes> short_payload;
        Payload payload;  // of a longer one; it must not outlive the worker
    };

    // For a job of `size` ranks. Throws std::runtime_error.
    UcxWorker(std::shared_ptr<UcxContext> context, std::uint32_t size);
    ~UcxWorker();
    UcxWorker(const UcxWorker&) = delete;
    UcxWorker& operator=(const UcxWorker&) = delete;

    const std::vector<std::byte>& address() const { return address_; }
    int event_descriptor() const { return descriptor_; }
    std::uint64_t rejected() const { return rejected_; }  // active messages without a valid ticket

    // Until then, all messages that arrive are dropped.
    void know_peers(const std::vector<TcpPeer>& peers);
    // Returns false if the address cannot be used.
    bool connect(std::uint32_t peer, const std::byte* address);
    void post(std::uint32_t to, Letter letter);
    bool progress();
    // To be called before waiting for the descriptor; returns false if there is work already.
    bool arm();
    // Moves letters until the condition holds; returns false if the time is over first.
    bool await(Clock::duration longest, const std::function<bool()>& condition);

    // The letters that have arrived, for the caller to take away.
    std::vector<Arrived> arrived;
    // Takes the next letter to a peer that UCX no longer needs, in the order of `post`.
    bool take_sent(std::uint32_t peer, Label& label);
    bool has_sent() const { return completed_; }  // since the last call of `clear_sent`
    void clear_sent() { completed_ = false; }

    std::size_t unsent() const { return unsent_; }
    bool reads_payloads(std::uint64_t communicator) const;
    bool reads_payloads_for(std::uint32_t peer, std::uint64_t communicator) const;
    std::uint64_t posted(std::uint32_t peer) const { return peers_[peer].posted; }
    std::uint64_t received(std::uint32_t peer) const { return peers_[peer].received; }
    // Why a peer cannot be reached, and since when; empty if it can.
    const std::string& failure(std::uint32_t peer) const { return peers_[peer].failure; }
    Clock::time_point failed_at(std::uint32_t peer) const { return peers_[peer].failed_at; }
    void fail(std::uint32_t peer, const std::string& reason);
    // Ends the connection to a peer; unsent letters are dropped and not reported.
    void disconnect(std::uint32_t peer);

  private:
    struct Header {
        Label label;
        Ticket ticket;
    };
    // A letter that UCX may still read.
    struct InFlight {
        Header header;
        Letter letter;
        UcxWorker* worker;
        bool done = false;
    };
    struct Peer {
        UcxWorker* worker = nullptr;
        bool is_far = false;
        Ticket ticket_to{}, ticket_from{};
        ucx::RemoteEndpoint* endpoint = nullptr;
        std::deque<InFlight> in_flight;  // in the order of `post`
        std::uint64_t posted = 0, received = 0;
        std::string failure;
        Clock::time_point failed_at{};
        bool disconnected = false;
    };

    static ucx::Status on_message(void* self, const void* header, std::size_t header_bytes, void* data,
                                  std::size_t bytes, const ucx::ReceiveParameters* parameters);
    static void on_sent(void* request, ucx::Status status, void* in_flight);
    static void on_error(void* peer, ucx::RemoteEndpoint* endpoint, ucx::Status status);
    static void release(void* self, std::byte* data);
    void create();
    void handle(unsigned id, std::uint32_t flags);
    bool keep(const Header& header, std::byte* data, bool may_keep);
    void close_endpoint(Peer& peer);
    bool is_closing();

    std::shared_ptr<UcxContext> context_;
    const ucx::Functions& ucp_;
    ucx::Worker* worker_ = nullptr;
    int descriptor_ = -1;
    std::vector<std::byte> address_;
    std::vector<Peer> peers_;
    std::vector<void*> closing_;  // requests that end endpoints
    PayloadPool pool_;
    std::size_t unsent_ = 0;
    bool completed_ = false;
    std::uint64_t rejected_ = 0;
};

}  // namespace unisono
