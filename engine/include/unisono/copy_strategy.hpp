// Selects how messages are copied into the staging area: with plain stores, or with stores that bypass the caches.
//
// Plain stores leave a message in the cache of the core, from which its reader gets it fast. But first the reader's
// copies of the old contents must be invalidated, which is slow if the two cores are on different dies or sockets: we
// measured 3 GB/s, against 20 GB/s for neighbouring cores. Stores that bypass the caches do not wait for that: they
// reach 27 GB/s, and the reader gets 16 GB/s from memory instead of 42. The better choice depends on the placement of
// the ranks, which on virtual machines changes from one second to the next. So both ways are tried repeatedly, a few
// times in a hundred, and timed.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "unisono/copy.hpp"

namespace unisono {

class CopyStrategy {
  public:
    // For fewer bytes, reading the clock would cost more than the better choice saves.
    static constexpr std::size_t worth_it = 16384;

    // Returns whether messages currently bypass the caches.
    bool past_caches() const { return past_caches_; }

    void put(void* to, const void* from, std::size_t bytes) {
        if (bytes < worth_it) return copy_bytes(to, from, bytes);
        ++puts_;
        const bool tries_other = puts_ % tried_every == first_tried;
        const bool past = past_caches_ != tries_other;
        if (puts_ % timed_every != 0) return copy(past, to, from, bytes);
        const auto began = std::chrono::steady_clock::now();
        copy(past, to, from, bytes);
        const std::chrono::duration<float, std::nano> taken = std::chrono::steady_clock::now() - began;
        note(past, taken.count() / static_cast<float>(bytes));
    }
    // Takes note of the cost of a copy, in ns per byte.
    void note(bool past, float cost) {
        float& known = cost_[past];
        known = known == 0 ? cost : known + (cost - known) / 4;
        past_caches_ = cost_[true] != 0 && cost_[true] + dearer_to_read < cost_[false];
    }

  private:
    static constexpr std::uint64_t timed_every = 8, tried_every = 128, first_tried = 16;
    static_assert(first_tried % timed_every == 0 && tried_every % timed_every == 0, "every trial is timed");
    // The cost for the reader of reading from memory instead of a cache, in ns per byte.
    static constexpr float dearer_to_read = 0.2f;

    static void copy(bool past, void* to, const void* from, std::size_t bytes) {
        if (past)
            copy_streaming(to, from, bytes);
        else
            copy_bytes(to, from, bytes);
    }

    bool past_caches_ = false;
    std::uint64_t puts_ = 0;
    float cost_[2] = {};  // ns per byte of either way, as a moving average; 0: not known yet
};

}  // namespace unisono
