#include "unisono/completion.hpp"

namespace unisono {

namespace {

constexpr auto look_every = std::chrono::milliseconds(50);

}  // namespace

void Completion::finish(const Verdict& verdict, std::int64_t source) {
    const std::lock_guard lock(mutex_);
    verdict_ = verdict;
    source_ = source;
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

void Completion::finish_or_fail(Endpoint& endpoint) {
    while (!wait_until(Clock::now() + look_every)) endpoint.look_for_interrupt();
    const Verdict found = verdict();
    if (found.fault != Fault::none) throw Failure(found);
}

Verdict Completion::verdict() const {
    const std::lock_guard lock(mutex_);
    return verdict_;
}

std::int64_t Completion::source() const {
    const std::lock_guard lock(mutex_);
    return source_;
}

}  // namespace unisono
