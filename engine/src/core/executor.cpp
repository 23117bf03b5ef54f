#include "unisono/executor.hpp"

#include <algorithm>

namespace unisono {

Executor::Executor(Endpoint& endpoint) : endpoint_(endpoint) {
    const std::uint32_t tracks = endpoint.settings.geometry.tracks;
    tracks_.reserve(tracks);
    for (std::uint32_t number = 0; number < tracks; ++number)
        tracks_.emplace_back(endpoint, number, copy_strategy_, events_);
}

void Executor::run(Plan& plan, const void* input, void* output, const Deadline& deadline) {
    if (endpoint_.broken()) throw Failure(endpoint_.fault_report());
    events_.begin(endpoint_.event_logs);
    if (!plan.prepared) prepare(plan);
    const std::uint64_t number = endpoint_.enter(plan.fingerprint, plan.text, plan.number);
    const Call call{static_cast<std::byte*>(const_cast<void*>(input)), static_cast<std::byte*>(output),
                    plan.fingerprint + number * 0x9e3779b97f4a7c15u,  // equal calls at different times differ
                    deadline};
    if (!events_.on()) [[likely]]
        return perform(plan, call);
    events_.enter(number, plan.number);
    try {
        perform(plan, call);
    } catch (...) {
        events_.end(true);
        throw;
    }
    events_.end(false);
}

void Executor::perform(const Plan& plan, const Call& call) {
    if (tracks_of(plan) == 1) {
        tracks_.front().begin(call);
        tracks_.front().run_passes(plan);
    } else {
        run_several_at_a_time(plan, call);
    }
    if (!plan.program->silent_receivers.empty()) await_entry(plan, call.deadline);
    endpoint_.finish_call();
    if (endpoint_.traffic.is_limited()) [[unlikely]] {
        endpoint_.wait_for_slow_link();
        if (events_.on()) events_.begin_anew();
    }
}

void Executor::prepare(Plan& plan) {
    for (std::size_t track = 0; track < tracks_of(plan); ++track) tracks_[track].open(plan);
    plan.prepared = true;
    if (events_.on()) events_.begin_anew();
}

// Returns the number of tracks that a plan uses. Random rounding depends on the order of all passes, so they run one
// after another.
std::size_t Executor::tracks_of(const Plan& plan) const {
    return plan.stochastic ? 1 : std::min<std::uint64_t>(tracks_.size(), plan.passes);
}

// No rank leaves a collective before the ranks that it sent to have entered it; otherwise it could not learn that they
// called something else.
void Executor::await_entry(const Plan& plan, const Deadline& deadline) {
    for (const std::uint32_t peer : plan.program->silent_receivers) endpoint_.ask_entry(peer);
    for (const std::uint32_t peer : plan.program->silent_receivers) {
        const auto wait = [&] {
            endpoint_.wait([&] { return endpoint_.has_entered(peer); }, {peer, 0, deadline, true});
        };
        if (!events_.on())
            wait();
        else if (!endpoint_.has_entered(peer))
            events_.during_wait(EventKind::awaits_entry, peer, wait);
        endpoint_.check_same_call(peer);
    }
}

// ---- several passes at a time ----------------------------------------------------------------------------------

// Pass p runs on track p modulo the number of tracks. That is the same on all ranks, even where they know different
// lengths and therefore run different numbers of passes.
void Executor::run_several_at_a_time(const Plan& plan, const Call& call) {
    const std::size_t used = tracks_of(plan);
    for (std::size_t track = 0; track < used; ++track) {
        tracks_[track].begin(call);
        tracks_[track].start(track);
    }
    std::uint64_t oldest = 0;  // pass that is not finished; it goes first
    while (oldest < plan.passes) {
        bool any_ran = false;
        for (std::size_t index = 0; index < used; ++index) {
            Track& track = tracks_[(oldest + index) % used];
            if (!track.has_pass()) continue;
            any_ran |= track.advance(plan);
            if (!track.has_pass() && track.pass() + used < plan.passes) track.start(track.pass() + used);
        }
        const auto is_running = [&](std::uint64_t pass) {
            const Track& track = tracks_[pass % used];
            return track.has_pass() && track.pass() == pass;
        };
        while (oldest < plan.passes && !is_running(oldest)) ++oldest;
        if (oldest == plan.passes) break;
        endpoint_.poll();  // what other tracks wait for may have arrived
        if (!any_ran) await_any(plan, call, tracks_[oldest % used]);
    }
}

// Waits until a track can go on. Errors describe the oldest pass.
void Executor::await_any(const Plan& plan, const Call& call, Track& oldest) {
    const auto need = oldest.need(plan);
    if (!need) return;
    const auto ready = [&] {
        for (Track& track : tracks_) {
            if (!track.has_pass()) continue;
            const auto now = track.need(plan);
            // A rank that has done its part may leave, so we never wait for a rank that is no longer needed.
            if (!now || (&track == &oldest && now->peer != need->peer)) return true;
        }
        return false;
    };
    const Wait what{need->peer, need->step, call.deadline, true};
    if (!events_.on()) return endpoint_.wait(ready, what);
    events_.switch_to(oldest.pass(), oldest.next_instruction());
    events_.during_wait(need->kind, need->peer, [&] { endpoint_.wait(ready, what); });
}

}  // namespace unisono
