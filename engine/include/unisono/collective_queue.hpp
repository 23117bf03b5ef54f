// The queue of collectives: one thread executes asynchronous calls in the order in which they were made.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "unisono/completion.hpp"
#include "unisono/executor.hpp"

namespace unisono {

// The collectives of one communicator, which run one at a time.
class CollectiveQueue {
  public:
    explicit CollectiveQueue(Executor& executor) : executor_(executor) {}
    ~CollectiveQueue() { stop(); }

    struct Call {
        std::shared_ptr<Plan> plan;
        const void* input;
        void* output;
        Nanoseconds timeout;  // from the moment when the call begins to run
        Kept kept = nullptr;
    };
    // Runs the call on the caller's thread if nothing is queued; otherwise waits for its turn. Throws Failure.
    void run(const Call& call);
    std::shared_ptr<Completion> start(const Call& call);
    void stop();

    // For calls that are not executed here (on a GPU) but take their turn: `try_take` returns false if other calls
    // are queued or running; after `true`, no call runs until `give_back`.
    bool try_take() {
        if (queued_.load(std::memory_order_acquire) > 0 || taken_.exchange(true, std::memory_order_acquire))
            return false;
        if (queued_.load(std::memory_order_acquire) == 0) return true;
        give_back();
        return false;
    }
    void give_back() { taken_.store(false, std::memory_order_release); }

  private:
    void work();
    void execute(const Call& call);

    Executor& executor_;
    std::atomic<bool> taken_ = false;      // held by the thread that executes a call
    std::atomic<std::size_t> queued_ = 0;  // calls that were started and have not finished
    std::mutex mutex_;                     // guards the members below
    std::condition_variable changed_;
    std::deque<std::pair<Call, std::shared_ptr<Completion>>> waiting_;
    std::thread thread_;  // started by the first call that is queued
    bool stopping_ = false;
};

}  // namespace unisono
