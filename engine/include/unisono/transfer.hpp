// Send and recv between two ranks: a stream of bytes through a channel of its own, apart from all collectives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "unisono/channel.hpp"
#include "unisono/endpoint.hpp"
#include "unisono/reduce.hpp"

namespace unisono {

struct Transfer {
    bool sending;
    std::uint32_t peer;
    std::byte* data;
    std::uint64_t bytes;
    std::uint64_t label;  // type and number of elements, in one word: must be the same on both sides
    std::uint64_t moved = 0;
    bool done = false;
};

// The label of so many elements of a type.
std::uint64_t transfer_label(DType dtype, std::uint64_t count);

class Transfers {
  public:
    explicit Transfers(Endpoint& endpoint);

    // Moves what can be moved without waiting; says whether anything did. Transfers with the same peer in the same
    // direction must be advanced one after the other.
    bool advance(Transfer& transfer);
    // Waits until the transfer is done.
    void finish(Transfer& transfer, Clock::time_point deadline);
    // Whether a message of a peer is there.
    bool has_message(std::uint32_t peer);

  private:
    void open(const Transfer& transfer);
    bool can_move(Transfer& transfer);

    [[noreturn]] void report_mismatch(const Transfer& transfer, std::uint64_t sent);

    Endpoint& endpoint_;
    std::vector<Writer> writers_;
    std::vector<Reader> readers_;
};

}  // namespace unisono
