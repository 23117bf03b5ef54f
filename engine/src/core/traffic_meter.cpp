#include "unisono/traffic_meter.hpp"

#include <algorithm>
#include <chrono>

namespace unisono {

namespace {

// Sleeping threads wake some tens of microseconds late. Idle time up to this limit is made up for, so that the average
// rate is as requested.
constexpr std::chrono::microseconds catch_up_limit{500};

}  // namespace

void TrafficMeter::limit(double bytes_per_s) {
    const std::lock_guard lock(mutex_);
    limited_.store(bytes_per_s > 0, std::memory_order_relaxed);
    seconds_per_byte_ = bytes_per_s > 0 ? 1 / bytes_per_s : 0;
    free_at_ = Clock::now();
}

Clock::time_point TrafficMeter::free_at() {
    const std::lock_guard lock(mutex_);
    return free_at_;
}

void TrafficMeter::carry(std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    const std::chrono::duration<double> taken(static_cast<double>(bytes) * seconds_per_byte_);
    free_at_ = std::max(free_at_, Clock::now() - catch_up_limit) + std::chrono::duration_cast<Clock::duration>(taken);
}

}  // namespace unisono
