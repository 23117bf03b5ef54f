// Waiting for another rank: spin, then yield the core, then sleep until it is woken.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace unisono {

using Clock = std::chrono::steady_clock;
using Nanoseconds = std::chrono::nanoseconds;

struct WaitPolicy {
    Nanoseconds spin;   // quickest, but the core is busy; nothing where there are more ranks than cores
    Nanoseconds yield;  // lets another rank run that shares the core
    Nanoseconds background_spin = spin;  // of threads in the background, while the one they work for computes
};

// How long to spin the next time. Who spins may keep the rank that it waits for from its core, where other processes have
// the other cores and the system sees no reason to move anybody. So each time in vain makes the next one shorter, and each
// time that was worth it makes it longer again. (Several threads may wait: which of them counts last does not matter.)
class SpinLength {
  public:
    Nanoseconds next(Nanoseconds longest) const {
        return std::max(longest / part_.load(std::memory_order_relaxed), std::min(longest, shortest));
    }
    void was_in_vain() { set(std::min(part_.load(std::memory_order_relaxed) * 4, 64)); }
    void was_worth_it() { set(std::max(part_.load(std::memory_order_relaxed) / 2, 1)); }

  private:
    void set(int part) { part_.store(part, std::memory_order_relaxed); }

    static constexpr Nanoseconds shortest{20'000};
    std::atomic<int> part_ = 1;  // of the longest: one in so many
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

// Runs a memory fence on every core that runs a thread of a process that has called `join_fence` (membarrier). The caller
// pays about a microsecond; the other threads are interrupted for less. `join_fence` returns false where the kernel has
// no such fence.
bool join_fence();
void fence_everywhere();

// Sleeps until `word` is no longer `seen`, somebody wakes us, or the time is over.
void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t seen, Nanoseconds longest);
void futex_wake_all(std::atomic<std::uint32_t>& word);

}  // namespace unisono
