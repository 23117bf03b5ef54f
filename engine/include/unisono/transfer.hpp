// Send and recv: a message from one rank to another, with a tag, through a channel apart from all collectives.
//
// Each ordered pair of ranks has a channel (see memory.hpp). A message longer than a slot of it goes in several slots, one
// directly after the other, and every header says the same of it:
//
//     fingerprint   its label: type and number of elements, and so its length
//     offset        its tag. Elsewhere this word says where the payload lies; but the slots of a pair are used in turn, so
//                   here both sides know that from the number of the header
//
// What is sent goes out in the order of the calls (transfer_outbox.hpp). What comes in goes to the receive that asked for its tag,
// or is kept as unexpected until one does (transfer_inbox.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "unisono/reduce.hpp"

namespace unisono {

struct Transfer {
    bool sending;
    std::uint32_t peer;  // where it receives, also any_rank
    std::byte* data;
    std::uint64_t bytes;
    std::uint64_t label;  // must be the same on both sides
    std::uint32_t tag = 0;
    std::uint64_t moved = 0;  // of what is sent
    bool done = false;
    std::uint64_t began = 0;   // ticks; 0: it is not recorded
    std::uint64_t number = 0;  // how many slots the channel had filled before it: both sides know it by that
};

// The label of so many elements of a type.
std::uint64_t transfer_label(DType dtype, std::uint64_t count);
// How long a message with this label is.
std::uint64_t bytes_of_label(std::uint64_t label);
// Such as "3 float32 elements".
std::string label_in_words(std::uint64_t label);

}  // namespace unisono
