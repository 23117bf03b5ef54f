// Primitives for waiting: a rank spins, then yields the core, then sleeps until it is woken.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace unisono {

using Clock = std::chrono::steady_clock;
using Nanoseconds = std::chrono::nanoseconds;

// The time limit of a call.
struct Deadline {
    Clock::time_point began{};
    Clock::time_point ends{};
};

inline Deadline deadline_after(Nanoseconds timeout, Clock::time_point began = Clock::now()) {
    return {began, began + timeout};
}

struct WaitPolicy {
    Nanoseconds spin;                    // fastest, but keeps the core busy; 0 if there are more ranks than cores
    Nanoseconds yield;                   // lets other ranks on the same core run
    Nanoseconds background_spin = spin;  // for threads of asynchronous calls, while the caller computes
};

// The duration of the next spin. If other processes occupy the other cores, a spinning rank may keep the rank that it
// waits for from running. So each spin without success shortens the next one, and each successful spin lengthens it
// again. (Several threads may wait; their updates may overwrite each other, which does no harm.)
class SpinLength {
  public:
    Nanoseconds next(Nanoseconds longest) const { return next(longest, shortest); }
    void was_in_vain() { set(std::min(part_.load(std::memory_order_relaxed) * 4, 64)); }
    void was_worth_it() { set(std::max(part_.load(std::memory_order_relaxed) / 2, 1)); }

    // Where messages cross a network, a spin that is shorter than a trip through it never succeeds, so a spin covers
    // several trips of a fast network. While messages take longer than that, because the link is slow or vectors are
    // long, spinning only costs processor time.
    Nanoseconds next_far(Nanoseconds longest) const {
        const bool is_slow = Nanoseconds(far_wait_.load(std::memory_order_relaxed)) > longest_fast_wait;
        return is_slow ? std::min(longest, shortest) : next(longest, shortest_far);
    }
    void far_wait_lasted(Nanoseconds wait) {
        const Nanoseconds::rep known = far_wait_.load(std::memory_order_relaxed);
        far_wait_.store(known + (std::min(wait, longest_counted).count() - known) / 4, std::memory_order_relaxed);
    }

  private:
    static constexpr Nanoseconds shortest{20'000}, shortest_far{200'000}, longest_fast_wait{400'000};
    static constexpr Nanoseconds longest_counted{2'000'000};  // so that a rank that comes late is soon forgotten

    Nanoseconds next(Nanoseconds longest, Nanoseconds at_least) const {
        return std::max(longest / part_.load(std::memory_order_relaxed), std::min(longest, at_least));
    }
    void set(int part) { part_.store(part, std::memory_order_relaxed); }

    std::atomic<int> part_ = 1;                   // the divisor of the longest spin
    std::atomic<Nanoseconds::rep> far_wait_ = 0;  // the duration of waits, as a moving average
};

// Set in the threads that execute asynchronous calls.
inline thread_local bool in_background = false;

// Returns a time that may be some milliseconds old: precise enough for a deadline, at a tenth of the cost.
Clock::time_point coarse_now();

inline void pause_core() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("isb" ::: "memory");
#endif
}

// `fence_everywhere` runs a memory fence on every core that runs a thread of a process that has called `join_fence`
// (membarrier). It takes the caller about a microsecond and interrupts the other threads for less. `join_fence` returns
// false if the kernel has no such fence.
bool join_fence();
void fence_everywhere();

// Sleeps until `word` differs from `seen`, another thread wakes the caller, or the time is over.
void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t seen, Nanoseconds longest);
void futex_wake_all(std::atomic<std::uint32_t>& word);

}  // namespace unisono
