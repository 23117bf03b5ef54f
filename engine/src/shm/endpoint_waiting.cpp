// The part of Endpoint that waits: it spins, yields, sleeps, and checks meanwhile that the other ranks are alive.
#include <sched.h>

#include <algorithm>
#include <thread>

#include "unisono/endpoint.hpp"

namespace unisono {

namespace {

using std::chrono::milliseconds;

// A waker writes a message and then reads whether the receiver sleeps. The processor may swap the two, because a fence
// between them would cost every message more than it saves the few receivers that sleep. The sleeper pays instead:
// after it has announced that it sleeps, and before it looks for the message one last time, it runs a fence on the
// cores of all ranks (`fence_everywhere`). Then either the waker sees the sleeper or the sleeper sees the message, as
// an exhaustively checked model shows (tests/engine/test_wake_up_model.py). On kernels without such a fence a wake-up
// can be lost, and the length of a sleep bounds the delay.
constexpr Nanoseconds shortest_sleep = milliseconds(1);
constexpr Nanoseconds longest_sleep = milliseconds(8);
// The interval at which a waiting rank checks that the others are alive and that it was not interrupted.
constexpr Nanoseconds liveness_check_every = milliseconds(20);

}  // namespace

void Endpoint::wake(Board& theirs, std::uint32_t rank) {
    if (settings.is_far(rank)) return far_->push(rank);
    theirs.wake_word.fetch_add(1, std::memory_order_release);
    futex_wake_all(theirs.wake_word);
}

void Endpoint::wake_host() {
    for (std::uint32_t rank = 0; rank < settings.geometry.size; ++rank)
        if (!settings.is_far(rank)) wake_if_asleep(rank);
}

void Endpoint::wait_slowly(std::function<bool()> ready, const Wait& what) {
    // If ranks share cores, the rank that we wait for may itself be waiting for this core.
    for (int yields = 0; yields < first_yields_; ++yields) {
        if (far_) far_->poll();
        ::sched_yield();
        if (ready()) return;
    }
    const Clock::time_point began = Clock::now();
    const Nanoseconds longest = in_background ? settings.wait_policy.background_spin : settings.wait_policy.spin;
    const Nanoseconds spin = far_ ? spin_.next_far(longest) : spin_.next(longest);
    const auto note_length = [&] {
        if (far_) spin_.far_wait_lasted(Clock::now() - began);
    };
    while (Clock::now() - began < spin) {
        for (int look = 0; look < 64; ++look) {
            if (far_)
                far_->poll();
            else
                pause_core();
            if (ready()) {
                note_length();
                return spin_.was_worth_it();
            }
        }
    }
    if (is_in_this_call(what)) spin_.was_in_vain();
    Board& mine = board(settings.rank);
    struct Notice {  // tells the other ranks what we wait for
        Board& mine;
        const JobBoard& job_board;
        std::int64_t announced = -1;
        Notice(Board& board, const JobBoard& job_board, const Wait& what) : mine(board), job_board(job_board) {
            mine.waiting_step.store(what.in_collective ? what.step + 1 : 0, std::memory_order_relaxed);
            mine.waiting_for.store(what.peer == any_rank ? -1 : static_cast<std::int32_t>(what.peer) + 1,
                                   std::memory_order_release);
        }
        void announce_in_job(std::uint32_t peer) {
            announced = peer;
            job_board.announce(peer);
        }
        ~Notice() {
            mine.waiting_for.store(0, std::memory_order_release);
            if (announced >= 0) job_board.withdraw(static_cast<std::uint32_t>(announced));
        }
    } notice(mine, job_board_, what);

    Clock::time_point now = Clock::now();
    Clock::time_point next_check = now + settings.wait_policy.yield;
    Nanoseconds nap = shortest_sleep;
    for (;;) {
        if (far_) far_->poll();
        if (ready()) return note_length();
        if (broken() && !ready()) throw Failure(fault_report());
        now = Clock::now();
        if (now >= next_check || now >= what.deadline.ends) {
            check_liveness(ready, what);
            if (now - began > liveness_check_every && what.peer != any_rank)
                notice.announce_in_job(settings.first_rank(what.peer));
            next_check = now + liveness_check_every;
        }
        if (now - began < spin + settings.wait_policy.yield) {
            ::sched_yield();
            continue;
        }
        const std::uint32_t seen = mine.wake_word.load(std::memory_order_acquire);
        struct Asleep {  // withdrawn even if `ready` throws
            Board& mine;
            explicit Asleep(Board& board) : mine(board) { mine.asleep.fetch_add(1, std::memory_order_seq_cst); }
            ~Asleep() { mine.asleep.fetch_sub(1, std::memory_order_relaxed); }
        } asleep(mine);
        if (far_) far_->hand_over();
        if (has_fence_) fence_everywhere();
        if (!ready() && !broken())
            futex_wait(mine.wake_word, seen,
                       std::min(nap, std::max<Nanoseconds>(what.deadline.ends - now, Nanoseconds(1))));
        nap = std::min(2 * nap, longest_sleep);
    }
}

void Endpoint::send_slowly(std::uint64_t bytes) {
    wait_for_slow_link();
    traffic.carry(bytes);
}

void Endpoint::wait_for_slow_link() {
    for (;;) {
        const Clock::time_point now = Clock::now(), free_at = traffic.free_at();
        if (now >= free_at) return;
        if (check_interrupt() || broken()) throw Failure(fault_report());
        std::this_thread::sleep_for(std::min<Nanoseconds>(free_at - now, liveness_check_every));
    }
}

bool Endpoint::check_interrupt() {
    if (!interrupted || !interrupted()) return false;
    break_with(Fault::interrupted, static_cast<int>(settings.rank),
               FaultMessage("interrupted").with_value("rank", own_value()));
    return true;
}

void Endpoint::check_liveness(const std::function<bool()>& ready, const Wait& what) {
    if (check_interrupt()) throw Failure(fault_report());
    for (const std::uint32_t rank : lost_ranks()) {
        if (ready()) return;  // messages that a rank sent before it ended count
        report_peer_ended(rank, what);
    }
    if (far_) check_far_ranks(ready, what);
    if (has_left(what.peer) && !ready()) report_peer_closed(what);
    if (what.in_collective)
        for (std::uint32_t rank = 0; rank < settings.geometry.size; ++rank)
            if (rank != settings.rank) check_same_call(rank);
    const Clock::time_point now = Clock::now();
    // The call may have waited several times: the error states the time since its begin.
    if (now >= what.deadline.ends && !ready()) report_timeout(what, now - what.deadline.began);
}

// A rank that closed the communicator before its process ended has left in good order.
std::vector<std::uint32_t> Endpoint::lost_ranks() const {
    std::vector<std::uint32_t> lost = peers_.lost();
    std::erase_if(lost, [&](std::uint32_t rank) { return board(rank).closed.load(std::memory_order_acquire) != 0; });
    return lost;
}

void Endpoint::check_running(const NumberedCall& call, const Wait& what, const std::function<bool()>& over) {
    for (const std::uint32_t rank : lost_ranks()) {
        if (over()) return;
        report_peer_ended(rank, what);
    }
    if (!what.in_collective) {
        // A rank completes its transfers before it closes the communicator.
        if (has_left(what.peer) && !over()) report_peer_closed(what);
        return;
    }
    for (std::uint32_t rank = 0; rank < settings.geometry.size; ++rank) {
        if (rank == settings.rank) continue;
        check_same_call(rank, call);
        const bool absent = board(rank).calls.load(std::memory_order_acquire) < call.number;
        if (!has_left(rank) || !absent || over()) continue;
        Wait closed = what;
        closed.peer = rank;
        report_peer_closed(closed);
    }
}

void Endpoint::check_far_ranks(const std::function<bool()>& ready, const Wait& what) {
    for (std::uint32_t rank = 0; rank < settings.geometry.size; ++rank) {
        if (!settings.far[rank] || far_->has_left(rank)) continue;
        const std::string reason = far_->lost(rank);
        if (reason.empty()) continue;
        if (ready()) return;
        report_far_peer_lost(rank, reason, what);
    }
}

// Returns whether the rank that we wait for has entered this call: it then has nothing to do but to answer.
bool Endpoint::is_in_this_call(const Wait& what) const {
    return what.in_collective && board(what.peer).calls.load(std::memory_order_relaxed) >= call_;
}

// Returns whether the peer, or every other rank, has closed the communicator.
bool Endpoint::has_left(std::uint32_t peer) const {
    if (peer != any_rank)
        return settings.is_far(peer) ? far_->has_left(peer) : board(peer).closed.load(std::memory_order_acquire) != 0;
    for (std::uint32_t rank = 0; rank < settings.geometry.size; ++rank)
        if (rank != settings.rank && !has_left(rank)) return false;
    return true;
}

}  // namespace unisono
