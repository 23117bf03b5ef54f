// What a rank sends to others: counted, and, for experiments, slowed down to the rate of a slow link.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "unisono/waiting.hpp"

namespace unisono {

class TrafficMeter {
  public:
    // Bytes of messages so far; what goes to several ranks counts once for each.
    std::uint64_t bytes() const {
        return collectives_.load(std::memory_order_relaxed) + transfers_.load(std::memory_order_relaxed);
    }
    // Collectives run one after the other, on one thread at a time: nobody else adds.
    void count_in_collective(std::uint64_t bytes) {
        collectives_.store(collectives_.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
    }
    // Send and recv may run on several threads.
    void count_in_transfer(std::uint64_t bytes) { transfers_.fetch_add(bytes, std::memory_order_relaxed); }

    // So many bytes per second from now on; 0: as fast as can be.
    void limit(double bytes_per_s);
    bool is_limited() const { return limited_.load(std::memory_order_relaxed); }
    // Says when all that was given to the slow link has left it.
    Clock::time_point free_at();
    // Gives the slow link so many bytes to carry, after what it carries already.
    void carry(std::uint64_t bytes);

  private:
    std::atomic<std::uint64_t> collectives_ = 0, transfers_ = 0;
    std::atomic<bool> limited_ = false;
    std::mutex mutex_;  // guards what follows
    double seconds_per_byte_ = 0;
    Clock::time_point free_at_{};
};

}  // namespace unisono
