// The queue of send and recv: the order of transfers, and the thread that moves asynchronous ones.
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

// Sends to one peer take place one after the other, sends to different peers at the same time. All receives are waited
// for at once. One thread moves all asynchronous transfers.
class TransferQueue {
  public:
    explicit TransferQueue(Endpoint& endpoint);
    ~TransferQueue() { stop(); }

    // Returns the other rank; for a receive from any rank, the sender of the message. Throws Failure.
    std::uint32_t run(const Transfer& transfer, Nanoseconds timeout);
    std::shared_ptr<Completion> start(const Transfer& transfer, Nanoseconds timeout, Kept kept = nullptr);
    void stop();

  private:
    struct Pending {
        Transfer transfer;
        Deadline deadline;
        std::shared_ptr<Completion> completion;
        Kept kept;
    };
    struct Lane {  // sends to one peer
        std::deque<Pending> pending;
        bool busy = false;  // a thread is sending synchronously
    };
    void send(const Transfer& transfer, Nanoseconds timeout);
    std::uint32_t receive(const Transfer& transfer, Nanoseconds timeout);
    std::shared_ptr<Completion> start_send(const Transfer& transfer, Nanoseconds timeout, Kept kept);
    std::shared_ptr<Completion> start_receive(const Transfer& transfer, Nanoseconds timeout, Kept kept);
    void tell_thread();
    void work();
    void check_deadlines();
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
    Clock::time_point deadlines_checked_;  // by the thread
    bool stopping_ = false;
};

}  // namespace unisono
