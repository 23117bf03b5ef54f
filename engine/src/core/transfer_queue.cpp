#include "unisono/transfer_queue.hpp"

#include <iterator>
#include <utility>

namespace unisono {

namespace {

constexpr Nanoseconds deadline_check_every = std::chrono::milliseconds(20);

template <typename Action>
FaultReport report_of(Action&& action) {
    try {
        action();
        return {};
    } catch (const Failure& failure) {
        return failure.report;
    }
}

}  // namespace

TransferQueue::TransferQueue(Endpoint& endpoint)
    : endpoint_(endpoint), outbox_(endpoint), inbox_(endpoint), lanes_(endpoint.settings.geometry.size) {}

std::uint32_t TransferQueue::run(const Transfer& made, Nanoseconds timeout) {
    const Transfer transfer = endpoint_.event_logs.stamped(made);
    if (!transfer.sending) return receive(transfer, timeout);
    send(transfer, timeout);
    return transfer.peer;
}

std::shared_ptr<Completion> TransferQueue::start(const Transfer& made, Nanoseconds timeout, Kept kept) {
    const Transfer transfer = endpoint_.event_logs.stamped(made);
    return transfer.sending ? start_send(transfer, timeout, std::move(kept))
                            : start_receive(transfer, timeout, std::move(kept));
}

// Sends on the caller's thread if nothing is queued; otherwise waits for its turn.
void TransferQueue::send(const Transfer& transfer, Nanoseconds timeout) {
    Lane& lane = lanes_[transfer.peer];
    std::unique_lock lock(mutex_);
    if (!lane.pending.empty() || lane.busy) {
        lock.unlock();
        start_send(transfer, timeout, nullptr)->finish_or_fail(endpoint_);
        return;
    }
    lane.busy = true;
    lock.unlock();
    Transfer moving = transfer;
    const FaultReport report = report_of([&] { outbox_.finish(moving, deadline_after(timeout)); });
    lock.lock();
    lane.busy = false;
    const bool others_wait = !lane.pending.empty();
    lock.unlock();
    if (others_wait) tell_thread();
    if (report.fault != Fault::none) throw Failure(report);
}

// Always runs on the caller's thread; earlier asynchronous receives come first because they were posted first.
std::uint32_t TransferQueue::receive(const Transfer& transfer, Nanoseconds timeout) {
    Receive mine;
    mine.transfer = transfer;
    mine.deadline = deadline_after(timeout);
    try {
        inbox_.post({std::shared_ptr<void>(), &mine});  // an object on the stack has no owner
        const auto is_done = [&] { return mine.done.load(std::memory_order_acquire); };
        while (!is_done()) {
            endpoint_.wait([&] { return is_done() || inbox_.progress_for(mine); }, mine.wait());
            // Progress on other messages must not postpone the deadline.
            if (!mine.has_begun() && coarse_now() > mine.deadline.ends) endpoint_.wait(is_done, mine.wait());
        }
    } catch (...) {
        inbox_.withdraw(&mine);
        throw;
    }
    return mine.source;
}

std::shared_ptr<Completion> TransferQueue::start_send(const Transfer& transfer, Nanoseconds timeout, Kept kept) {
    auto completion = std::make_shared<Completion>();
    {
        const std::lock_guard lock(mutex_);
        lanes_[transfer.peer].pending.push_back({transfer, deadline_after(timeout), completion, std::move(kept)});
        ++unsent_;
    }
    tell_thread();
    return completion;
}

std::shared_ptr<Completion> TransferQueue::start_receive(const Transfer& transfer, Nanoseconds timeout, Kept kept) {
    const auto receive = std::make_shared<Receive>();
    receive->transfer = transfer;
    receive->deadline = deadline_after(timeout);
    receive->completion = std::make_shared<Completion>();
    receive->kept = std::move(kept);
    const std::shared_ptr<Completion> completion = receive->completion;
    const FaultReport report = report_of([&] { inbox_.post(receive); });
    if (report.fault != Fault::none) completion->finish(report);
    if (!completion->done()) tell_thread();
    return completion;
}

// Tells the thread about new work. It may be asleep, waiting for another transfer.
void TransferQueue::tell_thread() {
    {
        const std::lock_guard lock(mutex_);
        started_.fetch_add(1);
        if (!thread_.joinable()) thread_ = endpoint_.start_thread([this] { work(); });
        changed_.notify_all();
    }
    endpoint_.wake_if_asleep(endpoint_.settings.rank);
}

// Sends as much as possible without waiting; returns whether any byte moved.
bool TransferQueue::advance_sends() {
    bool moved = false;
    for (Lane& lane : lanes_) {
        std::unique_lock lock(mutex_);
        if (lane.pending.empty() || lane.busy) continue;
        Pending& first = lane.pending.front();  // other threads only append, so the reference stays valid
        lock.unlock();
        const FaultReport report = report_of([&] { moved |= outbox_.advance(first.transfer); });
        if (report.fault == Fault::none && !first.transfer.done) continue;
        lock.lock();
        const Pending over = std::move(first);
        lane.pending.pop_front();
        --unsent_;
        lock.unlock();
        over.completion->finish(report);
        moved = true;
    }
    return moved;
}

// Returns the wait of the transfer with the earliest deadline; its deadline is max() if there is none.
Wait TransferQueue::most_urgent() {
    Wait urgent = inbox_.most_urgent();
    const std::lock_guard lock(mutex_);
    for (const Lane& lane : lanes_) {
        if (lane.pending.empty() || lane.pending.front().deadline.ends >= urgent.deadline.ends) continue;
        const Pending& first = lane.pending.front();
        urgent = {first.transfer.peer, first.transfer.tag, first.deadline, false};
    }
    return urgent;
}

// Reports a transfer whose deadline has passed although other transfers make progress.
void TransferQueue::check_deadlines() {
    const Clock::time_point now = coarse_now();
    if (now - deadlines_checked_ < deadline_check_every) return;
    deadlines_checked_ = now;
    const std::uint64_t seen = inbox_.finished();
    const Wait urgent = inbox_.most_urgent(false);
    // This wait reports the timeout.
    if (urgent.deadline.ends < now) endpoint_.wait([&] { return inbox_.finished() != seen; }, urgent);
}

void TransferQueue::work() {
    in_background = true;
    for (;;) {
        {
            const auto has_work = [&] { return unsent_ > 0 || inbox_.in_background() > 0; };
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [&] { return stopping_ || has_work(); });
            // Another thread may have done the work meanwhile, because a waiting thread makes progress on all messages,
            // without this lock. The thread must not end then, because no call would start it again.
            if (!has_work()) {
                if (stopping_) return;
                continue;
            }
        }
        const FaultReport report = report_of([&] {
            if (advance_all()) return check_deadlines();
            // Without progress: wait until something can move, new work arrives, or another thread has done the work.
            const std::uint64_t seen = changes();
            const Wait urgent = most_urgent();
            if (urgent.deadline.ends == Clock::time_point::max()) return;
            // The condition stays true once it is: it may have finished the transfer that `urgent` describes.
            bool is_over = false;
            endpoint_.wait([&] { return is_over = is_over || changes() != seen || advance_all(); }, urgent);
        });
        if (report.fault != Fault::none) give_up(report);
    }
}

void TransferQueue::give_up(const FaultReport& report) {
    std::vector<Pending> unsent;
    {
        const std::lock_guard lock(mutex_);
        for (Lane& lane : lanes_) {
            std::move(lane.pending.begin(), lane.pending.end(), std::back_inserter(unsent));
            lane.pending.clear();
        }
        unsent_ -= unsent.size();
    }
    for (const Pending& pending : unsent) pending.completion->finish(report);
    for (const auto& receive : inbox_.withdraw()) receive->completion->finish(report);
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
