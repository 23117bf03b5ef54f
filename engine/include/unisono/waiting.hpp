// Waiting for another rank: spin, then yield the core, then sleep until its bell rings.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace unisono {

using Clock = std::chrono::steady_clock;
using Nanoseconds = std::chrono::nanoseconds;

struct Patience {
    Nanoseconds spin;   // quickest, but the core is busy; nothing where there are more ranks than cores
    Nanoseconds yield;  // lets another rank run that shares the core
};

// Threads that make calls in the background say so. They spin for a moment only: the thread that they work for computes
// meanwhile, and wants the core.
inline thread_local bool in_background = false;
inline constexpr Nanoseconds longest_background_spin = std::chrono::microseconds(50);

// The time as of some milliseconds ago: near enough for a deadline, and at a tenth of the price.
Clock::time_point coarse_now();

inline void pause_core() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("isb" ::: "memory");
#endif
}

// Sleeps until `word` is no longer `seen`, somebody wakes us, or the time is over.
void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t seen, Nanoseconds longest);
void futex_wake_all(std::atomic<std::uint32_t>& word);

}  // namespace unisono
