// The part of Endpoint that reports a timeout: it searches for the rank that holds up the others.
#include <chrono>
#include <cstdio>
#include <set>
#include <utility>

#include "unisono/endpoint.hpp"

namespace unisono {

void Endpoint::report_timeout(const Wait& what, Nanoseconds waited) {
    char seconds[32];
    std::snprintf(seconds, sizeof seconds, "%.1f", std::chrono::duration<double>(waited).count());
    FaultMessage message(what.in_collective ? "timed_out_in_call" : "timed_out");
    message.with_value("rank", own_value()).with_value("peer", value_of(what.peer)).with("seconds", seconds);
    add_location(message, what);
    if (what.peer == any_rank) fail(Fault::timeout, -1, message.with_detail(FaultMessage("no_such_message")));
    const int culprit = follow_waits(message, what);
    throw Failure(report_fault(Fault::timeout, culprit, message));
}

// Follows the waiting ranks, from each rank to the one that it waits for, and describes each in the message. Returns
// the last of these ranks, as a rank of the job: it holds up the others. If ranks wait in a circle, that is the rank
// for which this one waits.
int Endpoint::follow_waits(FaultMessage& message, const Wait& what) {
    std::set<std::uint32_t> seen{settings.rank};
    std::uint32_t rank = what.peer;
    for (; seen.insert(rank).second;) {
        const Board& theirs = board(rank);
        const int culprit = names.job_rank(static_cast<int>(rank));
        const auto detail = [&](const char* id) { return FaultMessage(id).with_value("rank", names.value(rank)); };
        if (settings.is_far(rank) && !far_->refresh_board(rank)) {
            message.with_detail(detail("no_answer").with("host", far_->host(rank)));
            return culprit;
        }
        const bool stopped = is_stopped(settings.processes[rank]);
        const auto describe = [&](FaultMessage description) {
            message.with_detail(std::move(description));
            if (stopped)
                message.with_detail(
                    FaultMessage("stopped").with_value("rank", names.value(rank, settings.processes[rank])));
        };
        const std::uint64_t calls = theirs.calls.load(std::memory_order_acquire);
        if (what.in_collective && calls < number_of(what)) {
            describe(detail("not_entered").with("made", calls).with("expected", number_of(what)));
            return stopped ? culprit : follow_waits_elsewhere(message, rank);
        }
        const std::int32_t waiting_for = theirs.waiting_for.load(std::memory_order_acquire);
        if (waiting_for == 0) {
            // While a GPU waits, the processor does not: a rank that is absent holds up the others.
            const auto absent = what.call != 0 && !stopped ? absent_from(what.call) : std::nullopt;
            if (absent) {
                rank = *absent;
                continue;
            }
            describe(detail(what.in_collective ? "busy_in_call" : "busy"));
            return stopped ? culprit : follow_waits_elsewhere(message, rank);
        }
        if (waiting_for < 0) {
            describe(detail("waits_for_any"));
            return culprit;
        }
        const auto next = static_cast<std::uint32_t>(waiting_for - 1);
        const std::uint32_t step = theirs.waiting_step.load(std::memory_order_relaxed);
        FaultMessage waits = detail(step > 0 ? "waits" : "waits_in_transfer").with_value("peer", names.value(next));
        if (step > 0) waits.with("step", step);
        describe(waits);
        if (stopped) return culprit;
        rank = next;
    }
    return names.job_rank(static_cast<int>(what.peer));
}

// Continues with a rank that waits for no rank of this communicator: it may wait in another one.
int Endpoint::follow_waits_elsewhere(FaultMessage& message, std::uint32_t rank) {
    int culprit = names.job_rank(static_cast<int>(rank));
    std::set<std::uint32_t> seen{settings.first_rank(settings.rank)};
    std::string last = names.value(rank);
    for (std::uint32_t first = settings.first_rank(rank); seen.insert(first).second;) {
        const auto entry = job_board_.entry(first);
        if (!entry || !entry->waits_for) return culprit;
        const auto job_rank = job_rank_of(*entry->waits_for);
        if (!job_rank) return culprit;
        const std::string next = std::string("@").append(std::to_string(*job_rank));
        message.with_detail(FaultMessage("waits_elsewhere").with_value("rank", last).with_value("peer", next));
        first = *entry->waits_for;
        last = next;
        culprit = static_cast<int>(*job_rank);
        const auto reached = job_board_.entry(first);
        if (reached && is_stopped(reached->process)) {
            message.with_detail(FaultMessage("stopped").with_value("rank", last));
            return culprit;
        }
    }
    return names.job_rank(static_cast<int>(rank));
}

// Returns the first rank that has not announced a call.
std::optional<std::uint32_t> Endpoint::absent_from(std::uint64_t call) const {
    for (std::uint32_t rank = 0; rank < settings.geometry.size; ++rank)
        if (rank != settings.rank && board(rank).calls.load(std::memory_order_acquire) < call) return rank;
    return {};
}

// Returns the rank in the job of a rank of the first communicator in this memory, if it is known here: the ranks of
// this communicator are, and all are if the first communicator is that of the whole job.
std::optional<std::uint32_t> Endpoint::job_rank_of(std::uint32_t first_rank) const {
    bool all_known = true;
    for (std::uint32_t rank = 0; rank < settings.geometry.size; ++rank) {
        const auto job_rank = static_cast<std::uint32_t>(names.job_rank(static_cast<int>(rank)));
        if (settings.first_rank(rank) == first_rank) return job_rank;
        all_known = all_known && settings.first_rank(rank) == job_rank;
    }
    if (all_known) return first_rank;
    return {};
}

}  // namespace unisono
