// A clock for event logs that is cheap to read.
//
// Reading Clock takes 36 ns on the machine we measured on, too much to do several times in a call of five microseconds.
// A *tick* is a unit of the processor's time stamp counter (14 ns to read). The kernel derives its clock from that
// counter and confirms that it is the same on all cores; if it does not, ticks are nanoseconds of Clock.
//
// The counter is read without waiting for earlier instructions, so a time may be off by some ten nanoseconds.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "unisono/waiting.hpp"

namespace unisono {

inline std::uint64_t clock_ns() { return static_cast<std::uint64_t>(Clock::now().time_since_epoch().count()); }

// Returns whether the kernel derives its clock from the processor's counter.
bool counter_is_clock();

inline std::uint64_t read_ticks() {
#if defined(__x86_64__)
    static const bool counts = counter_is_clock();
    if (counts) [[likely]]
        return __rdtsc();
#endif
    return clock_ns();
}

// One moment on both clocks. Two pairs define the conversion of all ticks in between.
struct ClockPair {
    std::uint64_t ticks, ns;
    static ClockPair now();
};
std::uint64_t ns_of(std::uint64_t ticks, const ClockPair& first, const ClockPair& last);

}  // namespace unisono
