// The peers' memory that this process has opened. Used by the service thread only, but for has_looked_at.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "unisono/endpoint.hpp"
#include "unisono/gpu/board.hpp"
#include "unisono/gpu/driver.hpp"

namespace unisono::gpu {

class Mappings {
  public:
    Mappings(const Driver& driver, Endpoint& endpoint, RegistrationBoard& board);

    // Opens the blocks that peers have offered since the last call, and answers.
    void open_offers();
    // Returns whether a version of a peer's offers was looked at: what could be opened is open. For any thread.
    bool has_looked_at(std::uint32_t owner, std::uint32_t version) const {
        return static_cast<std::int32_t>(looked_at_[owner].load(std::memory_order_acquire) - version) >= 0;
    }
    // To close memory may wait for the device, so blocks are closed later than they are withdrawn.
    bool has_withdrawn() const { return !withdrawn_.empty(); }
    void close_withdrawn();
    void close_all();

  private:
    struct Mapping {
        std::uint32_t generation = 0;
        cuda::Address address = 0;
    };
    void look_at(std::uint32_t owner);
    void withdraw(Mapping& mapping);

    const Driver& driver_;
    Endpoint& endpoint_;
    RegistrationBoard& board_;
    std::vector<std::vector<Mapping>> mappings_;  // by owner and slot
    std::vector<std::uint32_t> versions_;         // of the owners' sections, seen last
    std::vector<std::atomic<std::uint32_t>> looked_at_;
    std::vector<cuda::Address> withdrawn_;
};

}  // namespace unisono::gpu
