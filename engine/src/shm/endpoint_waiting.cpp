// How an endpoint waits: what it looks at meanwhile, and what it says when there is nothing more to wait for.
#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "unisono/endpoint.hpp"

namespace unisono {

namespace {

using std::chrono::milliseconds;

// A waker writes a message and then reads whether the receiver sleeps. The processor may swap the two, because a fence
// between them would cost every message more than it is worth to the few receivers that sleep. The sleeper pays instead:
// after it has announced that it sleeps, and before it looks for the message a last time, it runs a fence on the cores of
// all ranks (`fence_everywhere`). Either the waker then sees the sleeper, or the sleeper sees the message; a model that
// is checked exhaustively says so (tests/engine/test_wake_up_model.py). Where the kernel has no such fence, a wake-up can
// be lost, and the length of a sleep bounds the delay.
constexpr Nanoseconds shortest_sleep = milliseconds(1);
constexpr Nanoseconds longest_sleep = milliseconds(8);
// How often a waiting rank looks whether the others still live, and whether somebody wants it to stop.
constexpr Nanoseconds liveness_check_every = milliseconds(20);

}  // namespace

void Endpoint::wake(Board& theirs) {
    theirs.wake_word.fetch_add(1, std::memory_order_release);
    futex_wake_all(theirs.wake_word);
}

void Endpoint::wait_slowly(std::function<bool()> ready, const Wait& what) {
    // Where cores are shared, the rank that we wait for may only be waiting for this core.
    for (int yields = 0; yields < first_yields_; ++yields) {
        ::sched_yield();
        if (ready()) return;
    }
    const Clock::time_point began = Clock::now();
    const Nanoseconds spin = spin_.next(in_background ? settings.wait_policy.background_spin : settings.wait_policy.spin);
    while (Clock::now() - began < spin) {
        for (int look = 0; look < 64; ++look) {
            pause_core();
            if (ready()) return spin_.was_worth_it();
        }
    }
    if (is_in_this_call(what)) spin_.was_in_vain();
    Board& mine = board(settings.rank);
    struct Notice {  // what others may read while we wait
        Board& mine;
        Notice(Board& board, const Wait& what) : mine(board) {
            mine.waiting_step.store(what.in_collective ? what.step : 0, std::memory_order_relaxed);
            mine.waiting_for.store(what.peer == any_rank ? -1 : static_cast<std::int32_t>(what.peer) + 1,
                                   std::memory_order_release);
        }
        ~Notice() { mine.waiting_for.store(0, std::memory_order_release); }
    } notice(mine, what);

    Clock::time_point now = Clock::now();
    Clock::time_point next_check = now + settings.wait_policy.yield;
    Nanoseconds nap = shortest_sleep;
    for (;;) {
        if (ready()) return;
        if (broken() && !ready()) throw Failure(fault_report());
        now = Clock::now();
        if (now >= next_check || now >= what.deadline) {
            check_liveness(ready, what, began);
            next_check = now + liveness_check_every;
        }
        if (now - began < spin + settings.wait_policy.yield) {
            ::sched_yield();
            continue;
        }
        const std::uint32_t wake_word = mine.wake_word.load(std::memory_order_acquire);
        struct Asleep {  // also if `ready` throws
            Board& mine;
            explicit Asleep(Board& board) : mine(board) { mine.asleep.fetch_add(1, std::memory_order_seq_cst); }
            ~Asleep() { mine.asleep.fetch_sub(1, std::memory_order_relaxed); }
        } asleep(mine);
        if (has_fence_) fence_everywhere();
        if (!ready() && !broken())
            futex_wait(mine.wake_word, wake_word, std::min(nap, std::max<Nanoseconds>(what.deadline - now, Nanoseconds(1))));
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
    break_with(Fault::interrupted, static_cast<int>(settings.rank), own_name() + " was interrupted");
    return true;
}

void Endpoint::check_liveness(const std::function<bool()>& ready, const Wait& what, Clock::time_point began) {
    const std::string me = own_name();
    if (check_interrupt()) throw Failure(fault_report());
    for (const std::uint32_t rank : peers_.lost()) {
        // What a rank sent before it ended counts; and one that closed first has left in good order.
        if (ready()) return;
        if (board(rank).closed.load(std::memory_order_acquire)) continue;
        fail(Fault::peer_lost, static_cast<int>(rank),
             names.name(rank, "process " + std::to_string(settings.processes[rank])) + " has ended; " + me +
                 " was waiting for " + name_of(what.peer) + where_waiting(what));
    }
    if (has_left(what.peer) && !ready())
        fail(Fault::peer_lost, what.peer == any_rank ? -1 : static_cast<int>(what.peer),
             (what.peer == any_rank ? "every other rank" : name_of(what.peer)) + " has closed its communicator while " +
                 me + " waits for it" +
                 (what.in_collective ? " in " + call_of(settings.rank, call_) : where_waiting(what)));
    if (what.in_collective)
        for (std::uint32_t rank = 0; rank < settings.geometry.size; ++rank)
            if (rank != settings.rank) check_same_call(rank);
    const Clock::time_point now = Clock::now();
    if (now >= what.deadline && !ready()) {
        const auto [text, culprit] = describe_wait(what, std::chrono::duration<double>(now - began).count());
        fail(Fault::timeout, culprit, text);
    }
}

// Whether the rank that we wait for has come as far as this call: it then has nothing to do but to answer.
bool Endpoint::is_in_this_call(const Wait& what) const {
    return what.in_collective && board(what.peer).calls.load(std::memory_order_relaxed) >= call_;
}

// Whether there is nobody left to wait for.
bool Endpoint::has_left(std::uint32_t peer) const {
    if (peer != any_rank) return board(peer).closed.load(std::memory_order_acquire) != 0;
    for (std::uint32_t rank = 0; rank < settings.geometry.size; ++rank)
        if (rank != settings.rank && !has_left(rank)) return false;
    return true;
}

std::string Endpoint::where_waiting(const Wait& what) const {
    const std::string number = std::to_string(what.step);
    return what.in_collective ? " at step " + number + " of " + call_of(settings.rank, call_) : " (tag " + number + ")";
}

// Follows the ranks from one that waits to the one that it waits for, as far as that goes.
std::pair<std::string, int> Endpoint::describe_wait(const Wait& what, double seconds) const {
    char length[32];
    std::snprintf(length, sizeof length, "%.1f s", seconds);
    std::string text = own_name() + " gave up at its timeout after " + length +
                       (what.in_collective ? where_waiting(what) : " in send or recv") + ": it waits for " +
                       name_of(what.peer) + (what.in_collective ? "" : where_waiting(what));
    if (what.peer == any_rank) return {text + ", and no rank has sent a message with this tag", -1};
    std::uint32_t rank = what.peer;
    for (std::uint32_t hops = 0; hops < settings.geometry.size; ++hops) {
        const Board& theirs = board(rank);
        const std::uint64_t calls = theirs.calls.load(std::memory_order_acquire);
        if (what.in_collective && calls < call_) {
            text += ", which has not entered this call (it has made " + std::to_string(calls) + " of " +
                    std::to_string(call_) + ")";
            break;
        }
        const std::int32_t waiting_for = theirs.waiting_for.load(std::memory_order_acquire);
        if (waiting_for == 0) {
            text += what.in_collective
                        ? ", which is in the call but does not wait for anyone: it may be stopped, or very slow"
                        : ", which does not wait for anyone: it may be stopped, very slow, or busy with something else";
            break;
        }
        if (waiting_for < 0) {
            text += ", which waits for a message from any rank";
            break;
        }
        const std::int32_t next = waiting_for - 1;
        text += ", which waits at step " + std::to_string(theirs.waiting_step.load(std::memory_order_relaxed)) +
                " for " + names.name(static_cast<std::uint32_t>(next));
        rank = static_cast<std::uint32_t>(next);
        if (rank == settings.rank) return {text, static_cast<int>(what.peer)};  // in a circle: nobody in particular
    }
    return {text, static_cast<int>(rank)};
}

}  // namespace unisono
