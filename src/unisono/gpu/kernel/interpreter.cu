// The kernel that runs a program: steps of waits, moves and signals. One kernel serves all programs.
//
// Every block runs the whole program on its own tiles, with flags of its own, so blocks never wait for each other.
#include "flags.cuh"
#include "moves.cuh"

namespace unisono_kernel {

DEVICE Record* own_record(const Launch& launch) {
    return record_of(launch.state, launch.record + (launch.mode == MODE_CALL ? block() : 0));
}
DEVICE Record* record_at(const Launch& launch, u32 peer) {
    return record_of(launch.peers[peer].state, launch.record + block());
}
DEVICE u32 next_sequence(u32 peer) { return (shared.calls[peer] + 1) & 0xffff; }

// The first loads of a block: the header of the program and, with them, the counters of the record. Nothing else in
// global memory is needed to post the entries. Then the program is loaded, while the entries travel. Returns the contacts.
DEVICE u64 begin(const Launch& launch) {
    const u32* const program = reinterpret_cast<const u32*>(launch.program);
    const bool call = launch.mode == MODE_CALL;
    const u32 words = program[0];
    const u64 contacts = long_at(program + 6);
    ROLLED for (u32 peer = thread(); peer < launch.size; peer += THREADS) {
        const Record* const record = own_record(launch);
        const u32 calls = record->calls[peer], sent = record->sent[peer], received = record->received[peer];
        // Publishes the inputs, which earlier kernels of this stream have written. Nothing above needs the value of a
        // load yet, so the loads and the fence take their time together.
        if (call) fence();
        shared.calls[peer] = calls;
        shared.sent[peer] = sent;
        shared.received[peer] = received;
        if (!call || peer == launch.rank || (contacts >> peer & 1) == 0) continue;
        post_entry(launch, record_at(launch, peer), peer, next_sequence(peer));
    }
    const bool fits = words <= PROGRAM_WORDS;
    if (thread() == THREADS - 1) {
        shared.base[launch.rank][BUFFER_INPUT] = launch.input;
        shared.base[launch.rank][BUFFER_OUTPUT] = launch.output;
        shared.base[launch.rank][BUFFER_SCRATCH] = launch.scratch;
        shared.words = words;
        shared.steps = program[1];
        shared.passes = program[2];
        shared.segment_bytes = long_at(program + 4);
        shared.contacts = contacts;
        shared.program = fits ? shared.copy : program;
    }
    if (fits)
        ROLLED for (u32 i = thread(); i < words; i += THREADS) shared.copy[i] = program[i];
    return contacts;
}

// Learns the addresses of the contacts' buffers. In MODE_MOVES stream operations have already awaited the entries.
DEVICE bool take_entries(const Launch& launch, u64 contacts) {
    const Record* const record = own_record(launch);
    if (launch.mode != MODE_CALL && load_relaxed(&state_of(launch.state)->abort) != 0) return false;
    ROLLED for (u32 peer = thread(); peer < launch.size; peer += THREADS) {
        if (peer == launch.rank || (contacts >> peer & 1) == 0) continue;
        const u32 sequence = launch.mode == MODE_CALL ? next_sequence(peer)
                                                      : static_cast<u32>(launch.peers[peer].fingerprint >> ENTRY_BITS);
        if (!take_entry(launch, record, peer, sequence)) return false;
    }
    return true;
}

// Writes the addresses of the refs of as many moves as fit into shared memory, one thread per ref. Starts with the last
// thread, because the first ones may be waiting. Returns the number of moves.
DEVICE u32 resolve(u32 at, u32 moves, u32 pass) {
    u32 used = 0, resolved = 0;
    ROLLED for (; resolved < moves; ++resolved) {
        const Move move(at);
        if (used + move.refs() > POINTERS) break;
        ROLLED for (u32 r = (THREADS - 1 - thread() - used) % THREADS; r < move.refs(); r += THREADS)
            shared.pointer[used + r] = address_of(at + MOVE_WORDS + r * REF_WORDS, pass);
        used += move.refs();
        at += move.words();
    }
    return resolved;
}

// Runs the moves of a step after a barrier, at which all threads leave if one of them has failed.
DEVICE bool run_moves(const Launch& launch, u32 at, u32 moves, u32 pass, bool failed) {
    do {
        u32 resolved = resolve(at, moves, pass);
        moves -= resolved;
        const bool had = resolved > 0;
        if (barrier_or(failed)) return false;
        ROLLED for (u32 pointer = 0; resolved > 0; --resolved) {
            if (pointer > 0 && (Move(at).flags() & MOVE_APART) == 0) barrier();
            run_move(launch, at, pointer, pass);
            pointer += Move(at).refs();
            at += Move(at).words();
        }
        if (had) barrier();
    } while (moves > 0);
    return true;
}

// Runs a step; `left` steps, including this one, are still to be run.
DEVICE bool run_step(const Launch& launch, u32 step, u32 left, u32 pass) {
    const bool call = launch.mode == MODE_CALL;
    const u32 waits = shared.program[step];
    bool failed = false;
    ROLLED for (u32 w = thread(); call && w < waits && !failed; w += THREADS) {
        const u32 word = shared.program[step + STEP_WORDS + w], peer = word >> 16;
        const u32 count = shared.received[peer] + pass * received_per_pass(launch, peer) + (word & 0xffff);
        failed = !wait_for_signal(launch, own_record(launch), count, {WAIT_SIGNAL, peer, shared.steps - left, pass});
    }
    if (!run_moves(launch, step + STEP_WORDS + waits, shared.program[step + 1], pass, failed)) return false;
    const u32 signals = shared.program[step + 2], behind = step + shared.program[step + 3];
    ROLLED for (u32 s = thread(); call && s < signals; s += THREADS) {
        const u32 word = shared.program[behind - signals + s], peer = word >> 16;
        const u32 count = shared.sent[peer] + pass * sent_per_pass(launch, peer) + (word & 0xffff);
        fence();
        store_relaxed(&record_at(launch, peer)->signal[launch.rank], count);
    }
    return true;
}

// Runs all steps of all passes; in MODE_MOVES some steps of one pass, without waits and signals.
DEVICE bool run_steps(const Launch& launch) {
    const bool call = launch.mode == MODE_CALL;
    u32 pass = call ? 0 : launch.pass;
    do {
        u32 step = HEADER_WORDS, left = call ? shared.steps : launch.steps;
        ROLLED for (u32 skipped = call ? 0 : launch.first_step; skipped > 0; --skipped) step += shared.program[step + 3];
        ROLLED for (; left > 0; --left, step += shared.program[step + 3])
            if (!run_step(launch, step, left, pass)) return false;
    } while (++pass < (launch.mode == MODE_CALL ? shared.passes : 0));
    return true;
}

DEVICE void write_counters(const Launch& launch) {
    Record* const record = own_record(launch);
    ROLLED for (u32 peer = thread(); peer < launch.size; peer += THREADS) {
        if (peer == launch.rank || !is_contact(peer)) continue;
        record->calls[peer] = shared.calls[peer] + 1;
        record->sent[peer] = shared.sent[peer] + shared.passes * sent_per_pass(launch, peer);
        record->received[peer] = shared.received[peer] + shared.passes * received_per_pass(launch, peer);
    }
}

DEVICE void run_launch(const Launch& launch) {
    const bool call = launch.mode == MODE_CALL;
    const u64 contacts = begin(launch);
    const bool entered = take_entries(launch, contacts);
    if (barrier_or(!entered)) return;
    if (!run_steps(launch) || !call) return;
    write_counters(launch);
    // In device memory, and without waiting for the sum: a write to host memory would cost more than a microsecond.
    if (block() == 0 && thread() == THREADS - 1) add_relaxed(&state_of(launch.state)->calls, 1);
}

}  // namespace unisono_kernel

#if defined(UNISONO_HOST)
extern "C" void unisono_host_run(const unisono_kernel::Launch* launch, unsigned blocks) {
    for (unsigned block = 0; block < blocks; ++block) {
        unisono_kernel::grid = {block, blocks};
        unisono_kernel::run_launch(*launch);
    }
}
#else
extern "C" __global__ void __launch_bounds__(512, 2) run_program(const __grid_constant__ unisono_kernel::Launch launch) {
    unisono_kernel::run_launch(launch);
}
#endif
