// The part of FarChannels that deals with faults: what far ranks are doing, and the fault that all ranks report.
#include <unistd.h>

#include <cstddef>
#include <cstring>

#include "unisono/far_channels.hpp"

namespace unisono {

namespace {

constexpr Nanoseconds longest_answer = std::chrono::milliseconds(500);
constexpr Nanoseconds longest_settling = std::chrono::milliseconds(300);

template <typename Plain>
std::vector<std::byte> bytes_of(const Plain& value) {
    const auto* data = reinterpret_cast<const std::byte*>(&value);
    return {data, data + sizeof value};
}

// The part of a board that describes what its rank is doing.
struct State {
    struct Call {
        std::uint64_t number, fingerprint, text;
    };
    std::int64_t waiting_for;
    std::uint64_t waiting_step;
    Call recent[remembered_calls];
    char texts[remembered_texts][text_bytes];
};

}  // namespace

bool FarChannels::refresh_board(std::uint32_t rank) {
    std::uint64_t seen;
    {
        const Courier::Hold hold(courier_);
        seen = peers_[rank].states;
        send(rank, LetterKind::asks_state);
    }
    const Clock::time_point ends = Clock::now() + longest_answer;
    while (Clock::now() < ends) {
        courier_.poll();
        {
            const Courier::Hold hold(courier_);
            if (peers_[rank].states != seen) return true;
            if (courier_.lost_.contains(peers_[rank].job_rank)) return false;
        }
        ::usleep(200);
    }
    return false;
}

void FarChannels::send_state(std::uint32_t rank) {
    const Board& own = endpoint_.board(own_rank());
    State state;
    state.waiting_for = own.waiting_for.load(std::memory_order_acquire);
    state.waiting_step = own.waiting_step.load(std::memory_order_relaxed);
    for (std::size_t index = 0; index < remembered_calls; ++index) {
        const CallRecord::Call call = own.recent[index].load().value_or(CallRecord::Call{});
        state.recent[index] = {call.number, call.fingerprint, call.text};
    }
    std::memcpy(state.texts, own.texts, sizeof state.texts);
    send(rank, LetterKind::state, 0, bytes_of(state));
}

void FarChannels::write_state(std::uint32_t rank, const Label& label, const std::byte* payload) {
    State state;
    if (label.bytes != sizeof state) return;
    std::memcpy(&state, payload, sizeof state);
    Board& board = endpoint_.board(rank);
    std::memcpy(board.texts, state.texts, sizeof board.texts);
    for (auto& text : board.texts) text[text_bytes - 1] = '\0';
    for (std::size_t index = 0; index < remembered_calls; ++index) {
        const State::Call& call = state.recent[index];
        board.recent[index].store({call.number, call.fingerprint, static_cast<std::uint32_t>(call.text)});
    }
    board.waiting_step.store(static_cast<std::uint32_t>(state.waiting_step), std::memory_order_relaxed);
    board.waiting_for.store(static_cast<std::int32_t>(state.waiting_for), std::memory_order_release);
    ++peers_[rank].states;
}

void FarChannels::on_lost(std::uint32_t job_rank) {
    const std::uint32_t rank = rank_of(job_rank);
    if (rank >= size()) return;
    // The transport drops the letters to a lost peer, so nothing waits for them.
    for (std::size_t track = 0; track <= transfers(); ++track) {
        OutChannel& out = peers_[rank].out[track];
        if (!out.open || out.left == out.sent) continue;
        out.left = out.sent;
        taken(channel_number(own_rank(), rank, track)).messages.store(out.left, std::memory_order_release);
    }
    endpoint_.wake_if_asleep(own_rank());
}

// The lowest rank that can be reached decides between faults that several hosts notice at once. Its host has one
// report, which that host's processes share.
FaultReport FarChannels::settle(const FaultReport& noticed) {
    std::uint32_t judge = 0;
    {
        const Courier::Hold hold(courier_);
        if (verdict_) return *verdict_;
        while (judge < size() && peers_[judge].far && courier_.lost_.contains(peers_[judge].job_rank)) ++judge;
        if (judge < size() && peers_[judge].far) send(judge, LetterKind::proposal, 0, bytes_of(noticed));
    }
    if (judge < size() && peers_[judge].far) {
        const Clock::time_point ends = Clock::now() + longest_settling;
        while (Clock::now() < ends) {
            courier_.poll();
            {
                const Courier::Hold hold(courier_);
                if (verdict_) return *verdict_;
                if (courier_.lost_.contains(peers_[judge].job_rank)) break;
            }
            ::usleep(100);
        }
    }
    const Courier::Hold hold(courier_);
    if (verdict_) return *verdict_;
    verdict_ = noticed;
    send_verdict(noticed);
    return noticed;
}

void FarChannels::send_verdict(const FaultReport& report, std::int64_t except) {
    for (std::uint32_t rank = 0; rank < size(); ++rank)
        if (peers_[rank].far && rank != except) send(rank, LetterKind::verdict, 0, bytes_of(report));
}

void FarChannels::on_fault(std::uint32_t rank, const Label& label, const std::byte* payload) {
    if (label.bytes != sizeof(FaultReport)) return;
    FaultReport report;
    std::memcpy(static_cast<void*>(&report), payload, sizeof report);
    report.text[sizeof report.text - 1] = '\0';
    if (label.kind == LetterKind::verdict) {
        if (!verdict_) verdict_ = report;
        endpoint_.adopt(report);
        return;
    }
    // This rank judges. The report of its host stands if there is one.
    const FaultReport standing = endpoint_.adopt(report);
    if (standing.fault == Fault::none) return;  // a rank of this host is about to propose its own
    verdict_ = standing;
    send_verdict(standing);
    (void)rank;
}

}  // namespace unisono
