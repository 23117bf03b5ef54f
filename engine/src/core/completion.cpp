#include "unisono/completion.hpp"

namespace unisono {

namespace {

constexpr auto look_every = std::chrono::milliseconds(50);

}  // namespace

void Completion::finish(const FaultReport& report, std::int64_t source) {
    const std::lock_guard lock(mutex_);
    if (done()) return;
    report_ = report;
    source_ = source;
    done_.store(true, std::memory_order_release);
    changed_.notify_all();
}

bool Completion::wait_until(Clock::time_point deadline) {
    if (done()) return true;
    std::unique_lock lock(mutex_);
    return changed_.wait_until(lock, deadline, [&] { return done(); });
}

void Completion::finish_or_fail(Endpoint& endpoint) {
    while (!wait_until(Clock::now() + look_every)) endpoint.check_interrupt();
    const FaultReport found = fault_report();
    if (found.fault != Fault::none) throw Failure(found);
}

FaultReport Completion::fault_report() const { return done() ? report_ : FaultReport{}; }

std::int64_t Completion::source() const { return done() ? source_ : -1; }

}  // namespace unisono
