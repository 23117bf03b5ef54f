#include "unisono/queue.hpp"

#include <utility>

namespace unisono {

void Completion::finish(const Verdict& verdict) {
    const std::lock_guard lock(mutex_);
    verdict_ = verdict;
    done_ = true;
    changed_.notify_all();
}

bool Completion::done() const {
    const std::lock_guard lock(mutex_);
    return done_;
}

bool Completion::wait_until(Clock::time_point deadline) {
    std::unique_lock lock(mutex_);
    return changed_.wait_until(lock, deadline, [&] { return done_; });
}

Verdict Completion::verdict() const {
    const std::lock_guard lock(mutex_);
    return verdict_;
}

void CollectiveQueue::execute(const Call& call) {
    executor_.run(*call.plan, call.input, call.output, Clock::now() + call.timeout);
}

void CollectiveQueue::run(const Call& call) {
    std::unique_lock lock(mutex_);
    if (unfinished_ == 0) {
        unfinished_ = 1;  // whoever comes now queues behind us
        lock.unlock();
        struct Finished {
            CollectiveQueue& queue;
            ~Finished() {
                const std::lock_guard again(queue.mutex_);
                --queue.unfinished_;
            }
        } finished{*this};
        const std::lock_guard running(running_);
        execute(call);
        return;
    }
    lock.unlock();
    const std::shared_ptr<Completion> completion = start(call);
    completion->wait_until(Clock::time_point::max());
    const Verdict verdict = completion->verdict();
    if (verdict.fault != Fault::none) throw Failure(verdict);
}

std::shared_ptr<Completion> CollectiveQueue::start(const Call& call) {
    auto completion = std::make_shared<Completion>();
    const std::lock_guard lock(mutex_);
    waiting_.emplace_back(call, completion);
    ++unfinished_;
    if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
    changed_.notify_one();
    return completion;
}

void CollectiveQueue::work() {
    for (;;) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
        if (waiting_.empty()) return;  // what was started before the stop is finished first
        auto [call, completion] = std::move(waiting_.front());
        waiting_.pop_front();
        lock.unlock();
        Verdict verdict;
        try {
            const std::lock_guard running(running_);
            execute(call);
        } catch (const Failure& failure) {
            verdict = failure.verdict;
        }
        lock.lock();
        --unfinished_;
        lock.unlock();
        completion->finish(verdict);
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
