// Send and recv: a message from one rank to another, with a tag, through channels that no collective uses.
//
// The implementation is in the files transfer*: transfer_outbox (sending), transfer_inbox (receiving, and the queue of
// unexpected messages) and transfer_queue (the order of transfers, and the thread of asynchronous ones).
//
// Each ordered pair of ranks has a channel (see memory.hpp). A message longer than a slot takes several consecutive
// slots, and all their headers are alike:
//
//     fingerprint   its label: the type and the number of elements, and thereby the length
//     offset        its tag. In collectives this field locates the payload; here both sides know the location from
//                   the number of the header, because the slots of a pair are used in turn
//
// Messages are sent in the order of the calls. A message goes to the receive that matches its tag, or into the queue of
// unexpected messages until such a receive is posted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "unisono/reduce.hpp"

namespace unisono {

struct Transfer {
    bool sending;
    std::uint32_t peer;  // for a receive, possibly any_rank
    std::byte* data;
    std::uint64_t bytes;
    std::uint64_t label;  // must be the same on both sides
    std::uint32_t tag = 0;
    std::uint64_t moved = 0;  // bytes sent so far
    bool done = false;
    std::uint64_t began = 0;  // ticks; 0: not recorded
    // The slots that the channel had used before: the same on both sides, so it identifies the message.
    std::uint64_t number = 0;
};

// The label of `count` elements of a type.
std::uint64_t transfer_label(DType dtype, std::uint64_t count);
std::uint64_t count_of_label(std::uint64_t label);
std::uint64_t bytes_of_label(std::uint64_t label);
std::string dtype_of_label(std::uint64_t label);

}  // namespace unisono
