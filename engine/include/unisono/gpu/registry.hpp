// The device memory of this rank that its peers can address.
//
// A *block* is an allocation of this process. When a call uses memory in a block for the first time, the block is
// offered on the registration board; the service threads of the peers open it and answer at which address it lies in
// their process. From then on the addresses are known. A block whose memory was freed has another buffer id; it is
// withdrawn, and the peers close it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "unisono/endpoint.hpp"
#include "unisono/gpu/board.hpp"
#include "unisono/gpu/driver.hpp"
#include "unisono/gpu/layout.hpp"

namespace unisono::gpu {

struct Block {
    cuda::Address base = 0;
    std::uint64_t bytes = 0;
    std::uint64_t buffer_id = 0;
    std::uint64_t serial = 0;  // of the registration, never reused
    bool shareable = false;    // whether all peers that were asked could open it
    std::uint32_t slot = 0;    // of a shareable block, on the board
    std::uint32_t generation = 0;
    std::uint64_t opened = 0;                  // bit r: rank r has opened it
    cuda::Address addresses[most_ranks] = {};  // of the block, in the processes of those ranks

    bool contains(cuda::Address address, std::uint64_t length) const {
        return address >= base && length <= bytes && address - base <= bytes - length;
    }
    bool is_open_to(std::uint64_t contacts) const { return shareable && (contacts & ~opened) == 0; }
    cuda::Address at(std::uint32_t peer, cuda::Address address) const { return addresses[peer] + (address - base); }
};

// Thrown for an address that is not in the memory of the endpoint's device.
struct ForeignMemory {
    cuda::Address address;
    int device;  // on which it lies; -1: on none
};

class Registry {
  public:
    Registry(const Driver& driver, int device, Endpoint& endpoint, RegistrationBoard& board)
        : driver_(driver), device_(device), endpoint_(endpoint), board_(board) {}

    // Returns the block of a range if it is known and still allocated; otherwise nullptr.
    Block* find(cuda::Address address, std::uint64_t bytes);
    // The same, but offers a block that is not known. Throws ForeignMemory.
    std::shared_ptr<Block> find_or_add(cuda::Address address, std::uint64_t bytes);
    // Waits until the contacts have opened a block; after that it may turn out not to be shareable. Throws Failure.
    void take_answers(Block& block);  // that are there
    void await(Block& block, std::uint64_t contacts, Wait what);
    void check_device(cuda::Address address) const;  // throws ForeignMemory
    // Withdraws the blocks that have been freed.
    void withdraw_freed();
    void withdraw_all();
    std::uint64_t registered() const { return blocks_.size(); }

  private:
    Block* known(cuda::Address address, std::uint64_t bytes) const;
    std::optional<std::uint64_t> buffer_id(cuda::Address address) const;
    bool offer(Block& block);
    void withdraw(Block& block);
    std::optional<std::uint32_t> free_slot();

    const Driver& driver_;
    const int device_;
    Endpoint& endpoint_;
    RegistrationBoard& board_;
    std::map<cuda::Address, std::shared_ptr<Block>> blocks_;  // by their base
    mutable Block* recent_[2] = {};                           // the blocks found last, by the parity of their serial
    std::vector<std::uint32_t> free_slots_;
    std::uint32_t used_slots_ = 0;
    std::uint64_t serials_ = 0;
};

}  // namespace unisono::gpu
