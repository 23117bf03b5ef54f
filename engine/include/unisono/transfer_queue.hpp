// The queue of send and recv: which transfer moves next, and on which thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "unisono/completion.hpp"
#include "unisono/transfer_inbox.hpp"
#include "unisono/transfer_outbox.hpp"

namespace unisono {

// Send and recv. Sends to one peer go one after the other, those to different peers at the same time; receives are all
// waited for at once. What was started is moved by one thread.
class TransferQueue {
  public:
    explicit TransferQueue(Endpoint& endpoint);
    ~TransferQueue() { stop(); }

    // Returns the other rank: for a receive from any rank, the one whose message it got. Throws Failure.
    std::uint32_t run(const Transfer& transfer, Nanoseconds timeout);
    std::shared_ptr<Completion> start(const Transfer& transfer, Nanoseconds timeout, Kept kept = nullptr);
    void stop();

  private:
    struct Pending {
        Transfer transfer;
        Clock::time_point deadline;
        std::shared_ptr<Completion> completion;
        Kept kept;
    };
    struct Lane {  // what is sent to one peer
        std::deque<Pending> pending;
        bool busy = false;  // somebody sends on their own thread
    };
    void send(const Transfer& transfer, Nanoseconds timeout);
    std::uint32_t receive(const Transfer& transfer, Nanoseconds timeout);
    std::shared_ptr<Completion> start_send(const Transfer& transfer, Nanoseconds timeout, Kept kept);
    std::shared_ptr<Completion> start_receive(const Transfer& transfer, Nanoseconds timeout, Kept kept);
    void tell_thread();
    void work();
    void look_at_the_time();
    bool advance_sends();
    bool advance_all() { return inbox_.progress_all() | advance_sends(); }
    Wait most_urgent();
    void give_up(const FaultReport& report);
    std::uint64_t changes() const { return started_.load(std::memory_order_relaxed) + inbox_.finished(); }

    Endpoint& endpoint_;
    Outbox outbox_;
    Inbox inbox_;
    std::mutex mutex_;  // guards the lanes, `unsent_` and the thread
    std::condition_variable changed_;
    std::vector<Lane> lanes_;
    std::size_t unsent_ = 0;
    std::atomic<std::uint64_t> started_ = 0;
    std::thread thread_;
    Clock::time_point looked_;  // at the time, by the thread
    bool stopping_ = false;
};

}  // namespace unisono
