#include "unisono/waiting.hpp"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace unisono {

// The words are shared between processes, so FUTEX_PRIVATE_FLAG must not be used.
void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t seen, Nanoseconds longest) {
    const timespec limit{static_cast<time_t>(longest.count() / 1'000'000'000),
                         static_cast<long>(longest.count() % 1'000'000'000)};
    syscall(SYS_futex, &word, FUTEX_WAIT, seen, &limit, nullptr, 0);
}

void futex_wake_all(std::atomic<std::uint32_t>& word) {
    syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

bool join_fence() {
    static const bool joined = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
    return joined;
}

void fence_everywhere() { syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0); }

// Clock is CLOCK_MONOTONIC; this is the same clock with a coarser resolution.
Clock::time_point coarse_now() {
    timespec now;
    ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return Clock::time_point(std::chrono::seconds(now.tv_sec) + Nanoseconds(now.tv_nsec));
}

}  // namespace unisono
