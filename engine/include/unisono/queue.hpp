// Calls that go on while the caller does something else: one thread takes them in the order in which they were made.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "unisono/executor.hpp"
#include "unisono/transfer.hpp"

namespace unisono {

// What must live for as long as a call does, such as its arrays. Nothing is known of it but how it is given back, which
// may take locks of its own: so it is never given back under one of ours.
using Kept = std::shared_ptr<void>;

// A call that was started, as its starter sees it.
class Completion {
  public:
    void finish(const Verdict& verdict);
    bool done() const;
    // Waits until the call is over, or the time; says whether it is over.
    bool wait_until(Clock::time_point deadline);
    // Waits until the call is over; throws Failure if it went wrong. Ctrl-C breaks the communicator, and so ends it.
    void finish_or_fail(Endpoint& endpoint);
    Verdict verdict() const;  // fault none: all went well

  private:
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    bool done_ = false;
    Verdict verdict_;
};

// The collectives of one communicator, one after the other.
class CollectiveQueue {
  public:
    explicit CollectiveQueue(Executor& executor) : executor_(executor) {}
    ~CollectiveQueue() { stop(); }

    struct Call {
        std::shared_ptr<Plan> plan;
        const void* input;
        void* output;
        Nanoseconds timeout;  // counted from when the call begins to run
        Kept kept = nullptr;
    };
    // Runs the call on the caller's thread if nothing is queued; else waits its turn. Throws Failure.
    void run(const Call& call);
    std::shared_ptr<Completion> start(const Call& call);
    void stop();

  private:
    void work();
    void execute(const Call& call);

    Executor& executor_;
    std::atomic<bool> taken_ = false;        // by whoever executes
    std::atomic<std::size_t> queued_ = 0;  // calls that were started and are not finished
    std::mutex mutex_;                     // guards what follows
    std::condition_variable changed_;
    std::deque<std::pair<Call, std::shared_ptr<Completion>>> waiting_;
    std::thread thread_;  // started by the first call that is queued
    bool stopping_ = false;
};

// Sends and receives that go on in the background. Those with one peer in one direction come one after the other;
// all others move at the same time.
class TransferQueue {
  public:
    TransferQueue(Endpoint& endpoint, Transfers& transfers);
    ~TransferQueue() { stop(); }

    void run(const Transfer& transfer, Nanoseconds timeout);
    std::shared_ptr<Completion> start(const Transfer& transfer, Nanoseconds timeout, Kept kept = nullptr);
    void stop();

  private:
    struct Pending {
        Transfer transfer;
        Nanoseconds timeout;
        Clock::time_point deadline;
        std::shared_ptr<Completion> completion;
        Kept kept;
    };
    struct Lane {  // one peer, one direction
        std::deque<Pending> pending;
        bool busy = false;  // somebody moves a transfer of this lane on their own thread
    };
    Lane& lane_of(const Transfer& transfer) { return lanes_[2 * transfer.peer + (transfer.sending ? 1 : 0)]; }
    void work();
    bool advance_all();
    Verdict verdict_of(const std::function<void()>& action);

    Endpoint& endpoint_;
    Transfers& transfers_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<Lane> lanes_;
    std::size_t unfinished_ = 0;
    std::atomic<std::uint64_t> started_ = 0;
    std::thread thread_;
    std::atomic<bool> stopping_ = false;
};

}  // namespace unisono
