// The state of an asynchronous call, as its caller sees it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>

#include "unisono/endpoint.hpp"

namespace unisono {

// Keeps alive what a call needs, such as its arrays. Releasing it may take locks (the interpreter's), so it is never
// released while one of the engine's locks is held.
using Kept = std::shared_ptr<void>;

class Completion {
  public:
    // `source`: the rank that the message came from, if the call was a receive.
    void finish(const FaultReport& report, std::int64_t source = -1);
    bool done() const { return done_.load(std::memory_order_acquire); }
    // Waits until the call is over or the deadline has passed; returns whether it is over.
    bool wait_until(Clock::time_point deadline);
    // Waits until the call is over; throws Failure if it failed. Ctrl-C breaks the communicator and thereby ends the
    // call.
    void finish_or_fail(Endpoint& endpoint);
    FaultReport fault_report() const;  // Fault::none if the call succeeded or is still running
    std::int64_t source() const;       // -1: none, or not known yet

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    // The members below are written before it is set, and never again. A thread that sees it set needs no lock; in a
    // forked child a lock might never be released.
    std::atomic<bool> done_ = false;
    FaultReport report_;
    std::int64_t source_ = -1;
};

}  // namespace unisono
