// Entries, signals, faults: everything that a block says to its peers and hears from them.
#pragma once

#include "program.cuh"

namespace unisono_kernel {

constexpr u32 POLLS_BETWEEN_CHECKS = 64;
// A thread that polls longer than any short call takes rests between its polls, and its loads acquire nothing: an
// acquiring load empties the L1 cache of the multiprocessor, on which another rank may be moving data.
constexpr u32 POLLS_IN_HASTE = 32;
constexpr u32 REST_NS = 300;

DEVICE State* state_of(u64 state) { return reinterpret_cast<State*>(state); }
DEVICE Record* record_of(u64 state, u32 index) {
    return reinterpret_cast<Record*>(state + sizeof(State)) + index;
}

struct Position {
    u32 kind, peer, step, pass;
};

// Writes the mailbox, unless another thread of this rank has. (Rare, so its registers are not those of the fast path.)
DEVICE_CALL void report(u64 state, u64 mailbox_address, u32 fault, u32 kind, u32 peer, u32 step, u32 pass) {
    if (!claim(&state_of(state)->fault_claimed)) return;
    Mailbox* const mailbox = reinterpret_cast<Mailbox*>(mailbox_address);
    store_relaxed(&mailbox->peer, peer);
    store_relaxed(&mailbox->step, step);
    store_relaxed(&mailbox->pass, pass);
    store_relaxed(&mailbox->kind, kind);
    store_relaxed(&mailbox->calls, load_relaxed(&state_of(state)->calls));
    fence();
    store_relaxed(&mailbox->fault, fault);
}
DEVICE void report(const Launch& launch, u32 fault, const Position& at) {
    report(launch.state, launch.mailbox, fault, at.kind, at.peer, at.step, at.pass);
}

// The word in host memory can be set even while the process is stuck in a call of the driver, or by other processes.
DEVICE bool is_aborted(const Launch& launch) {
    const State* const state = state_of(launch.state);
    if (load_relaxed(&state->abort) != 0) return true;
    const u64 in_host = load_relaxed(&state->abort_in_host);
    return in_host != 0 && load_relaxed(reinterpret_cast<const u32*>(in_host)) != 0;
}

// Says when a thread that polls must give up: the communicator has been aborted, or the wait is too long.
struct Patience {
    u32 polls = 0;
    u64 start = 0;

    DEVICE_MEMBER bool in_haste() const { return polls < POLLS_IN_HASTE; }
    DEVICE_MEMBER bool ends(const Launch& launch, const Position& position) {
        if (!in_haste()) rest(REST_NS);
        if (++polls % POLLS_BETWEEN_CHECKS != 0) return false;
        if (is_aborted(launch)) {
            report(launch, FAULT_ABORTED, position);
            return true;
        }
        const u64 now = now_ns();
        if (start == 0) start = now;
        if (now - start <= launch.timeout_ns) return false;
        report(launch, FAULT_TIMEOUT, position);
        return true;
    }
};

DEVICE void post_entry(const Launch& launch, Record* theirs, u32 peer, u32 sequence) {
    const u64 upper = static_cast<u64>(sequence) << ENTRY_BITS;
    u64* const entry = theirs->entry[sequence & 1][launch.rank];
    store_relaxed(entry + ENTRY_INPUT, (launch.peers[peer].input & ENTRY_VALUE) | upper);
    store_relaxed(entry + ENTRY_OUTPUT, (launch.peers[peer].output & ENTRY_VALUE) | upper);
    store_relaxed(entry + ENTRY_FINGERPRINT, (launch.peers[peer].fingerprint & ENTRY_VALUE) | upper);
}

// Learns where a peer's buffers lie; in MODE_CALL waits until the peer has posted it. Returns false if it does not, or
// if it makes another call than this rank.
DEVICE bool take_entry(const Launch& launch, const Record* record, u32 peer, u32 sequence) {
    const u64* const entry = record->entry[sequence & 1][peer];
    const Position position{WAIT_ENTRY, peer, 0, 0};
    u64 input, output, fingerprint;
    for (Patience patience;;) {
        // The peer stores all three words after its fence, so acquiring one of them acquires what it published.
        input = load_relaxed(entry + ENTRY_INPUT);
        fingerprint = load_relaxed(entry + ENTRY_FINGERPRINT);
        const bool acquires = patience.in_haste();
        output = acquires ? load_acquire(entry + ENTRY_OUTPUT) : load_relaxed(entry + ENTRY_OUTPUT);
        const u64 older = ((input ^ output) | (input ^ fingerprint)) >> ENTRY_BITS;
        if (launch.mode != MODE_CALL || (older == 0 && input >> ENTRY_BITS == sequence)) {
            if (!acquires) output = load_acquire(entry + ENTRY_OUTPUT);
            break;
        }
        if (patience.ends(launch, position)) return false;
    }
    if (((fingerprint ^ launch.peers[peer].fingerprint) & (launch.mode == MODE_CALL ? ENTRY_VALUE : ~0ull)) != 0) {
        report(launch, FAULT_MISMATCH, position);
        return false;
    }
    shared.base[peer][BUFFER_INPUT] = input & ENTRY_VALUE;
    shared.base[peer][BUFFER_OUTPUT] = output & ENTRY_VALUE;
    shared.base[peer][BUFFER_SCRATCH] = launch.peers[peer].scratch;
    return true;
}

DEVICE bool wait_for_signal(const Launch& launch, const Record* record, u32 count, const Position& position) {
    const u32* const signal = &record->signal[position.peer];
    for (Patience patience;;) {
        const bool acquires = patience.in_haste();
        const u32 seen = acquires ? load_acquire(signal) : load_relaxed(signal);
        if (static_cast<int>(seen - count) >= 0) {
            if (!acquires) load_acquire(signal);
            return true;
        }
        if (patience.ends(launch, position)) return false;
    }
}

}  // namespace unisono_kernel
