#include "unisono/collective_queue.hpp"

#include <unistd.h>

#include <utility>

namespace unisono {

void CollectiveQueue::execute(const Call& call) {
    executor_.run(*call.plan, call.input, call.output, deadline_after(call.timeout, coarse_now()));
}

void CollectiveQueue::run(const Call& call) {
    if (!try_take()) return start(call)->finish_or_fail(executor_.endpoint());
    struct Taken {
        CollectiveQueue& queue;
        ~Taken() { queue.give_back(); }
    } taken{*this};
    execute(call);
}

std::shared_ptr<Completion> CollectiveQueue::start(const Call& call) {
    auto completion = std::make_shared<Completion>();
    const std::lock_guard lock(mutex_);
    // First, because it may fail.
    if (!thread_.joinable()) thread_ = executor_.endpoint().start_thread([this] { work(); });
    waiting_.emplace_back(call, completion);
    queued_.fetch_add(1, std::memory_order_release);
    changed_.notify_one();
    return completion;
}

void CollectiveQueue::work() {
    in_background = true;
    for (;;) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
        if (waiting_.empty()) return;  // calls started before the stop are finished first
        auto [call, completion] = std::move(waiting_.front());
        waiting_.pop_front();
        lock.unlock();
        while (taken_.exchange(true, std::memory_order_acquire)) ::usleep(20);  // a synchronous call is running
        FaultReport report;
        try {
            execute(call);
        } catch (const Failure& failure) {
            report = failure.report;
        }
        completion->finish(report);  // before other calls continue: calls finish in the order in which they were made
        taken_.store(false, std::memory_order_release);
        queued_.fetch_sub(1, std::memory_order_release);
    }
}

void CollectiveQueue::stop() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
        changed_.notify_all();
    }
    if (thread_.joinable()) thread_.join();
}

}  // namespace unisono
