#include "unisono/ticks.hpp"

#include <fstream>
#include <string>

namespace unisono {

bool counter_is_clock() {
    std::ifstream file("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    std::string name;
    return file >> name && name == "tsc";
}

// Reads the clock between two readings of the counter, several times, and keeps the closest pair: in the others the
// thread may have been preempted.
ClockPair ClockPair::now() {
    ClockPair best{};
    std::uint64_t narrowest = ~std::uint64_t{0};
    for (int reading = 0; reading < 8; ++reading) {
        const std::uint64_t before = read_ticks(), ns = clock_ns(), after = read_ticks();
        if (after - before >= narrowest) continue;
        narrowest = after - before;
        best = {before + narrowest / 2, ns};
    }
    return best;
}

std::uint64_t ns_of(std::uint64_t ticks, const ClockPair& first, const ClockPair& last) {
    if (ticks <= first.ticks || last.ticks <= first.ticks) return first.ns;
    const double part = static_cast<double>(ticks - first.ticks) / static_cast<double>(last.ticks - first.ticks);
    return first.ns + static_cast<std::uint64_t>(part * static_cast<double>(last.ns - first.ns) + 0.5);
}

}  // namespace unisono
