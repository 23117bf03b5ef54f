#include <algorithm>
#include <iterator>
#include <utility>

#include "unisono/queue.hpp"

namespace unisono {

TransferQueue::TransferQueue(Endpoint& endpoint, Transfers& transfers)
    : endpoint_(endpoint), transfers_(transfers), lanes_(2 * std::size_t{endpoint.settings.geometry.size}) {}

Verdict TransferQueue::verdict_of(const std::function<void()>& action) {
    try {
        action();
        return {};
    } catch (const Failure& failure) {
        return failure.verdict;
    }
}

void TransferQueue::run(const Transfer& transfer, Nanoseconds timeout) {
    Lane& lane = lane_of(transfer);
    std::unique_lock lock(mutex_);
    if (lane.pending.empty() && !lane.busy) {
        lane.busy = true;
        lock.unlock();
        Transfer moving = transfer;
        const Verdict verdict = verdict_of([&] { transfers_.finish(moving, Clock::now() + timeout); });
        lock.lock();
        lane.busy = false;
        changed_.notify_all();
        started_.fetch_add(1);
        lock.unlock();
        endpoint_.rouse(endpoint_.settings.rank);
        if (verdict.fault != Fault::none) throw Failure(verdict);
        return;
    }
    lock.unlock();
    start(transfer, timeout)->finish_or_fail(endpoint_);
}

std::shared_ptr<Completion> TransferQueue::start(const Transfer& transfer, Nanoseconds timeout, Kept kept) {
    auto completion = std::make_shared<Completion>();
    {
        const std::lock_guard lock(mutex_);
        lane_of(transfer).pending.push_back({transfer, timeout, Clock::now() + timeout, completion, std::move(kept)});
        ++unfinished_;
        started_.fetch_add(1);
        if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
        changed_.notify_all();
    }
    endpoint_.rouse(endpoint_.settings.rank);  // the thread may be asleep, waiting for another transfer
    return completion;
}

// Moves what can be moved; says whether anything did.
bool TransferQueue::advance_all() {
    bool moved = false;
    for (Lane& lane : lanes_) {
        std::unique_lock lock(mutex_);
        if (lane.pending.empty() || lane.busy) continue;
        Pending& first = lane.pending.front();  // others only ever append: this one stays where it is
        lock.unlock();
        const Verdict verdict = verdict_of([&] { moved |= transfers_.advance(first.transfer); });
        if (verdict.fault == Fault::none && !first.transfer.done) continue;
        lock.lock();
        const Pending over = std::move(first);
        lane.pending.pop_front();
        --unfinished_;
        lock.unlock();
        over.completion->finish(verdict);
        moved = true;
    }
    return moved;
}

void TransferQueue::work() {
    in_background = true;
    for (;;) {
        std::uint64_t seen;
        Wait what{0, 0, Clock::time_point::max(), false};
        {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [&] { return stopping_ || unfinished_ > 0; });
            if (unfinished_ == 0) return;
            seen = started_.load();
            for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
                if (lanes_[lane].pending.empty() || lanes_[lane].pending.front().deadline >= what.deadline) continue;
                what.deadline = lanes_[lane].pending.front().deadline;
                what.peer = static_cast<std::uint32_t>(lane / 2);
            }
        }
        if (advance_all()) continue;
        // Nothing moves: wait until something can, or something new comes.
        const Verdict verdict = verdict_of([&] {
            endpoint_.wait([&] { return started_.load(std::memory_order_relaxed) != seen || advance_all(); }, what);
        });
        if (verdict.fault == Fault::none) continue;
        std::vector<Pending> over;
        {
            const std::lock_guard lock(mutex_);
            for (Lane& lane : lanes_) {
                std::move(lane.pending.begin(), lane.pending.end(), std::back_inserter(over));
                lane.pending.clear();
            }
            unfinished_ -= over.size();
        }
        for (const Pending& pending : over) pending.completion->finish(verdict);
    }
}

void TransferQueue::stop() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
        changed_.notify_all();
    }
    if (thread_.joinable()) thread_.join();
}

}  // namespace unisono
