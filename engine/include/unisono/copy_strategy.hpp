// Copies messages into the staging area, in whichever of two ways is the quicker one here and now.
//
// Plain stores leave a message in the cache of the core, from where its reader gets it quickly. But first the copies that
// the reader still has of what lay there before must go, and where the two cores are far apart, on two dies or sockets,
// that takes its time: 3 GB/s were measured, where neighbours have 20. Stores past the caches do not wait for it: 27 GB/s,
// and the reader has 16 from memory instead of 42. So it depends on who sits where, and on virtual machines that changes
// from one second to the next. Hence both are tried again and again, a few times in a hundred, and timed.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "unisono/copy.hpp"

namespace unisono {

class CopyStrategy {
  public:
    // Below this, reading the clock would cost more than there is to be gained.
    static constexpr std::size_t worth_it = 16384;

    // Whether it is past the caches at present.
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
    // What a copy took, in ns per byte.
    void note(bool past, float cost) {
        float& known = cost_[past];
        known = known == 0 ? cost : known + (cost - known) / 4;
        past_caches_ = cost_[true] != 0 && cost_[true] + dearer_to_read < cost_[false];
    }

  private:
    static constexpr std::uint64_t timed_every = 8, tried_every = 128, first_tried = 16;
    static_assert(first_tried % timed_every == 0 && tried_every % timed_every == 0, "what is tried is timed");
    static constexpr float dearer_to_read = 0.2f;  // ns per byte, for the reader, from memory instead of a cache

    static void copy(bool past, void* to, const void* from, std::size_t bytes) {
        if (past)
            copy_streaming(to, from, bytes);
        else
            copy_bytes(to, from, bytes);
    }

    bool past_caches_ = false;
    std::uint64_t puts_ = 0;
    float cost_[2] = {};  // ns per byte of either way, a mean that forgets; 0: not known yet
};

}  // namespace unisono
