// The part of Endpoint that describes faults and reports them to every rank.
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <system_error>
#include <utility>

#include "unisono/endpoint.hpp"

namespace unisono {

FaultReport Endpoint::break_with(Fault fault, int culprit, const FaultMessage& message) {
    return report_fault(fault, names.job_rank(culprit), message);
}

FaultReport Endpoint::report_fault(Fault fault, int job_culprit, const FaultMessage& message) {
    std::uint32_t whole = 0;
    if (control_->broken.compare_exchange_strong(whole, 1)) {
        const std::string group = names.group();
        const std::string text = message.text() + (group.empty() ? "" : "\n" + group);
        FaultReport report;
        report.fault = fault;
        report.culprit = job_culprit;
        std::strncpy(report.text, text.c_str(), sizeof report.text - 1);
        write_report(far_ ? far_->settle(report) : report);
    }
    return fault_report();
}

FaultReport Endpoint::adopt(const FaultReport& verdict) {
    std::uint32_t whole = 0;
    if (control_->broken.compare_exchange_strong(whole, 1)) write_report(verdict);
    return control_->broken.load(std::memory_order_acquire) == 2 ? control_->report : FaultReport{};
}

void Endpoint::write_report(const FaultReport& report) {
    control_->report = report;
    control_->broken.store(2, std::memory_order_release);
    // One write for the whole line, so that the lines of several ranks do not mix.
    if (settings.fault_log >= 0)
        ::dprintf(settings.fault_log, "%u %d\n", static_cast<unsigned>(report.fault), report.culprit);
    wake_host();
}

FaultReport Endpoint::fault_report() const {
    if (survivor_vote_->excludes(settings.rank)) return exclusion();
    // The rank that began to write the report may have died before it finished, so the wait is limited.
    for (int look = 0; look < (far_ ? 5000 : 1000); ++look) {
        const std::uint32_t state = control_->broken.load(std::memory_order_acquire);
        if (state == 0) return {};
        if (state == 2) return control_->report;
        ::usleep(100);
    }
    FaultReport unknown;
    unknown.fault = Fault::peer_lost;
    std::strncpy(unknown.text, "reporter_died", sizeof unknown.text - 1);
    return unknown;
}

// Describes to this rank that the others continue without it.
FaultReport Endpoint::exclusion() const {
    FaultReport report;
    report.fault = Fault::excluded;
    report.culprit = names.job_rank(static_cast<int>(settings.rank));
    const std::string text = FaultMessage("excluded")
                                 .with_value("rank", own_value())
                                 .with("survivors", names.listed(survivor_vote_->result()->members))
                                 .text();
    std::strncpy(report.text, text.c_str(), sizeof report.text - 1);
    return report;
}

void Endpoint::fail(Fault fault, int culprit, const FaultMessage& message) {
    throw Failure(break_with(fault, culprit, message));
}

void Endpoint::report_mismatch(std::uint32_t peer, const NumberedCall& call) {
    if (settings.is_far(peer)) far_->refresh_board(peer);
    fail(Fault::mismatch, static_cast<int>(peer),
         FaultMessage("call_mismatch")
             .with("number", call.number)
             .with_value("rank", own_value())
             .with_value("own_call", own_call_value(call.number, call.text))
             .with_value("peer", names.value(peer))
             .with_value("peer_call", call_value(peer, call.number)));
}

void Endpoint::report_length(std::uint32_t peer, std::uint64_t sent, std::uint64_t expected, std::uint32_t step) {
    fail(Fault::mismatch, static_cast<int>(peer),
         FaultMessage("length_mismatch")
             .with_value("peer", names.value(peer))
             .with("sent", sent)
             .with_value("rank", own_value())
             .with("expected", expected)
             .with("step", step + std::uint64_t{1}));
}

void Endpoint::report_peer_ended(std::uint32_t peer, const Wait& what) {
    // Where there are several hosts, all of them get this report, so it names the host.
    FaultMessage message(far_ ? (what.in_collective ? "peer_ended_on_host_in_call" : "peer_ended_on_host")
                              : (what.in_collective ? "peer_ended_in_call" : "peer_ended"));
    message.with_value("peer", names.value(peer, settings.processes[peer]))
        .with_value("rank", own_value())
        .with_value("waited_for", value_of(what.peer));
    if (far_) message.with("host", far_->host(peer));
    add_location(message, what);
    fail(Fault::peer_lost, static_cast<int>(peer), message);
}

void Endpoint::report_far_peer_lost(std::uint32_t peer, const std::string& reason, const Wait& what) {
    FaultMessage message(what.in_collective ? "far_peer_lost_in_call" : "far_peer_lost");
    message.with_value("peer", names.value(peer))
        .with("host", far_->host(peer))
        .with("reason", reason)
        .with_value("rank", own_value())
        .with_value("waited_for", value_of(what.peer));
    add_location(message, what);
    fail(Fault::peer_lost, static_cast<int>(peer), message);
}

void Endpoint::report_peer_closed(const Wait& what) {
    const bool any = what.peer == any_rank;
    FaultMessage message(what.in_collective ? "peer_closed_in_call" : any ? "all_closed" : "peer_closed");
    message.with_value("peer", value_of(what.peer)).with_value("rank", own_value());
    add_location(message, what);
    fail(Fault::peer_lost, any ? -1 : static_cast<int>(what.peer), message);
}

// Adds the step and the call, or the tag of a transfer.
void Endpoint::add_location(FaultMessage& message, const Wait& what) const {
    if (!what.in_collective) {
        message.with("tag", what.step);
        return;
    }
    message.with("step", what.step + std::uint64_t{1}).with_value("call", own_call_value(number_of(what), what.text));
}

// The description of a call on a GPU may have left the board, because many later calls were announced.
std::string Endpoint::own_call_value(std::uint64_t number, const std::string* text) const {
    return text != nullptr ? FaultMessage::escaped(*text) : call_value(settings.rank, number);
}

std::string Endpoint::call_value(std::uint32_t rank, std::uint64_t number) const {
    const auto call = board(rank).recent[number % remembered_calls].load();
    if (!call || call->number != number) return unknown_call_value;
    return FaultMessage::escaped(board(rank).texts[call->text % remembered_texts]);
}

std::thread Endpoint::start_thread(std::function<void()> work) {
    try {
        return std::thread(std::move(work));
    } catch (const std::system_error& error) {
        fail(Fault::no_memory, static_cast<int>(settings.rank),
             FaultMessage("no_thread").with_value("rank", own_value()).with("reason", error.code().message()));
    }
}

}  // namespace unisono
