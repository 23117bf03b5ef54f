// A call that goes on while its starter does something else, as the starter sees it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>

#include "unisono/endpoint.hpp"

namespace unisono {

// What must live for as long as a call does, such as its arrays. Nothing is known of it but how it is given back, which
// may take locks of its own: so it is never given back under one of ours.
using Kept = std::shared_ptr<void>;

class Completion {
  public:
    // `source`: the rank that a message came from, where the call was to receive one.
    void finish(const FaultReport& report, std::int64_t source = -1);
    bool done() const { return done_.load(std::memory_order_acquire); }
    // Waits until the call is over, or the time; says whether it is over.
    bool wait_until(Clock::time_point deadline);
    // Waits until the call is over; throws Failure if it went wrong. Ctrl-C breaks the communicator, and so ends it.
    void finish_or_fail(Endpoint& endpoint);
    FaultReport fault_report() const;      // fault none: all went well, or is not over
    std::int64_t source() const;  // -1: none, or not yet

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    // What follows it is written before it is set, and never again. Who sees it set needs no lock: in a forked child, nobody
    // may ever release one.
    std::atomic<bool> done_ = false;
    FaultReport report_;
    std::int64_t source_ = -1;
};

}  // namespace unisono
