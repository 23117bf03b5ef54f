// What an endpoint needs to reach the ranks of other hosts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "unisono/memory.hpp"

namespace unisono {

class Endpoint;

// The far channels of one endpoint. The functions may be called by any thread of its rank.
class FarLink {
  public:
    virtual ~FarLink() = default;
    // The endpoint has written a message for a far rank, or taken one from it.
    virtual void push(std::uint32_t rank) = 0;
    // Moves letters, unless another thread does.
    virtual void poll() = 0;
    // The calling thread stops polling: from now on the thread of the courier moves the letters.
    virtual void hand_over() = 0;
    // The calling thread leaves its call. If letters still wait to be sent, it hands over.
    virtual void finish_call() = 0;
    // The memory of a channel from or to a far rank is allocated. `track`: see Layout::Pair.
    virtual void opened(std::uint32_t rank, std::size_t track, bool incoming) = 0;
    // Asks a far rank to report when it has entered a call.
    virtual void ask_entry(std::uint32_t rank, std::uint64_t call) = 0;
    // Copies the board of a far rank into the memory of this host. Returns false if it does not answer.
    virtual bool refresh_board(std::uint32_t rank) = 0;
    // Returns why a far rank cannot be reached; empty if it can.
    virtual std::string lost(std::uint32_t rank) = 0;
    virtual std::string host(std::uint32_t rank) const = 0;
    // Returns whether a far rank has closed the communicator, and all messages it has sent to this rank have arrived.
    // Then those that the endpoint has not taken are in their channel, as many as it holds.
    virtual bool has_left(std::uint32_t rank) = 0;
    // Agrees with the other hosts on the fault that all ranks report, tells them, and returns it.
    virtual FaultReport settle(const FaultReport& noticed) = 0;
    // Tells the far ranks that this rank has left, after sending what it has written.
    virtual void leave() = 0;
    virtual std::uint64_t sent_bytes() const = 0;
};

// Makes the far link of an endpoint.
class FarSide {
  public:
    virtual ~FarSide() = default;
    virtual std::unique_ptr<FarLink> join(Endpoint& endpoint) = 0;
};

}  // namespace unisono
