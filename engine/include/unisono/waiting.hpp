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
    Nanoseconds background_spin = spin;  // of threads in the background, while the one they work for computes
};

// Threads that make calls in the background say so.
inline thread_local bool in_background = false;

// The time as of some milliseconds ago: near enough for a deadline, and at a tenth of the price.
Clock::time_point coarse_now();

inline void pause_core() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("isb" ::: "memory");
#endif
}

// A fence for all threads of all processes that have said that they want it, wherever they are. It costs who calls it
// microseconds, and the others next to nothing. False: this system has none.
bool join_fence();
void fence_everywhere();

// Sleeps until `word` is no longer `seen`, somebody wakes us, or the time is over.
void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t seen, Nanoseconds longest);
void futex_wake_all(std::atomic<std::uint32_t>& word);

}  // namespace unisono
