// Counts the bytes that a rank sends and, for experiments, limits their rate to that of a slow link.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "unisono/waiting.hpp"

namespace unisono {

class TrafficMeter {
  public:
    // Returns the bytes of all messages so far; a message to several ranks counts once for each.
    std::uint64_t bytes() const {
        return collectives_.load(std::memory_order_relaxed) + transfers_.load(std::memory_order_relaxed);
    }
    // Collectives run one at a time, so no other thread writes this counter.
    void count_in_collective(std::uint64_t bytes) {
        collectives_.store(collectives_.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
    }
    // Several threads may send and receive.
    void count_in_transfer(std::uint64_t bytes) { transfers_.fetch_add(bytes, std::memory_order_relaxed); }

    // Limits the rate from now on; 0 removes the limit.
    void limit(double bytes_per_s);
    bool is_limited() const { return limited_.load(std::memory_order_relaxed); }
    // Returns the time at which the slow link will have carried everything.
    Clock::time_point free_at();
    // Adds bytes to what the slow link has to carry.
    void carry(std::uint64_t bytes);

  private:
    std::atomic<std::uint64_t> collectives_ = 0, transfers_ = 0;
    std::atomic<bool> limited_ = false;
    std::mutex mutex_;  // guards the members below
    double seconds_per_byte_ = 0;
    Clock::time_point free_at_{};
};

}  // namespace unisono
