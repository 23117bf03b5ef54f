// The kernel that runs a program: steps of waits, moves and signals. One kernel serves all programs.
//
// Every block runs the whole program on its own tiles, with flags of its own, so blocks never wait for each other.
#include "flags.cuh"
#include "moves.cuh"

namespace unisono_kernel {

// One block of one launch.
struct Run {
    const Launch& launch;
    Shared& shared;
    Record* record;
    const u32* program;
    Header header;
};

DEVICE u32 next_sequence(const Run& run, u32 peer) { return (run.shared.calls[peer] + 1) & 0xffff; }
DEVICE bool is_contact(const Run& run, u32 peer) { return run.header.contacts >> peer & 1; }

DEVICE void load_program(Run& run) {
    if (run.header.words > PROGRAM_WORDS) return;
    for (u32 i = thread(); i < run.header.words; i += THREADS) run.shared.program[i] = run.program[i];
    run.program = run.shared.program;
}

// Posts this rank's entries, loads the program while they travel, and waits for those of the contacts. The counters and
// the header are loaded together; nothing else in global memory is needed before the entries are posted.
DEVICE bool enter(Run& run) {
    const Launch& launch = run.launch;
    Shared& shared = run.shared;
    for (u32 peer = thread(); peer < launch.size; peer += THREADS) {
        shared.calls[peer] = run.record->calls[peer];
        shared.sent[peer] = run.record->sent[peer];
        shared.received[peer] = run.record->received[peer];
        if (peer == launch.rank || !is_contact(run, peer)) continue;
        fence();  // publishes the inputs, which earlier kernels of this stream have written
        post_entry(launch, record_of(launch.peers[peer].state, launch.record + block()), peer, next_sequence(run, peer));
    }
    load_program(run);
    bool failed = false;
    for (u32 peer = thread(); peer < launch.size && !failed; peer += THREADS)
        if (peer != launch.rank && is_contact(run, peer))
            failed = !wait_for_entry(launch, shared, run.record, peer, next_sequence(run, peer));
    return !failed;
}

// Reads the entries that stream operations have already awaited.
DEVICE bool read_entries(Run& run) {
    const Launch& launch = run.launch;
    load_program(run);
    bool failed = load_relaxed(&state_of(launch.state)->abort) != 0;
    for (u32 peer = thread(); peer < launch.size && !failed; peer += THREADS) {
        if (peer == launch.rank || !is_contact(run, peer)) continue;
        const u64* const entry = run.record->entry[launch.parity & 1][peer];
        failed = !take_entry(launch, run.shared, peer, load_relaxed(entry + ENTRY_INPUT),
                             load_relaxed(entry + ENTRY_OUTPUT), load_relaxed(entry + ENTRY_FINGERPRINT));
    }
    return !failed;
}

// Writes the addresses of the refs of as many moves as fit into shared memory, one thread per ref. Starts with the last
// thread, because the first ones may be waiting. Returns the number of moves.
DEVICE u32 resolve(const Run& run, Move move, u32 moves, u64 first) {
    u32 used = 0, resolved = 0;
    for (; resolved < moves && used + move.refs() <= POINTERS; ++resolved, move = move.next()) {
        const u32 refs = move.refs();
        for (u32 p = THREADS - 1 - thread(); p < used + refs; p += THREADS)
            if (p >= used) run.shared.pointer[p] = address_of(run.shared, move.ref(p - used), first);
        used += refs;
    }
    return resolved;
}

DEVICE void run_move(const Run& run, const Move& move, const u64* pointer, u64 first) {
    const u32 divisor = (move.flags() & MOVE_DIVIDE) != 0 ? run.launch.size : 0;
    sweep({pointer, move.sources(), move.destinations(), move.bytes(first, run.header.segment_bytes), divisor});
}

// Runs the moves of a step after a barrier, at which all threads leave if one of them has failed.
DEVICE bool run_moves(const Run& run, Move move, u32 moves, u64 first, bool failed) {
    for (;;) {
        const u32 resolved = resolve(run, move, moves, first);
        if (barrier_or(failed)) return false;
        const u64* pointer = run.shared.pointer;
        for (u32 i = 0; i < resolved; ++i, move = move.next()) {
            if (i > 0 && (move.flags() & MOVE_APART) == 0) barrier();
            run_move(run, move, pointer, first);
            pointer += move.refs();
        }
        moves -= resolved;
        barrier();
        if (moves == 0) return true;
    }
}

DEVICE bool run_step(const Run& run, const u32* step, u32 number, u32 pass) {
    const u32 waits = step[0], moves = step[1], signals = step[2];
    const u32* const trailer = run.program + run.header.words - 2 * run.launch.size;
    bool failed = false;
    for (u32 w = thread(); w < waits && !failed; w += THREADS) {
        const u32 word = step[STEP_WORDS + w], peer = word >> 16;
        const u32 count = run.shared.received[peer] + pass * trailer[2 * peer + 1] + (word & 0xffff);
        failed = !wait_for_signal(run.launch, run.record, count, {WAIT_SIGNAL, peer, number, pass});
    }
    if (!run_moves(run, {step + STEP_WORDS + waits}, moves, pass * run.header.segment_bytes, failed)) return false;
    for (u32 s = thread(); s < signals; s += THREADS) {
        const u32 word = step[step[3] - signals + s], peer = word >> 16;
        const u32 count = run.shared.sent[peer] + pass * trailer[2 * peer] + (word & 0xffff);
        fence();
        store_relaxed(&record_of(run.launch.peers[peer].state, run.launch.record + block())->signal[run.launch.rank],
                      count);
    }
    return true;
}

DEVICE bool run_steps(const Run& run) {
    for (u32 pass = 0; pass < run.header.passes; ++pass) {
        const u32* step = run.program + HEADER_WORDS;
        for (u32 number = 0; number < run.header.steps; ++number, step += step[3])
            if (!run_step(run, step, number, pass)) return false;
    }
    return true;
}

// MODE_MOVES: the moves of some steps, without waits and signals.
DEVICE void run_some_moves(const Run& run) {
    const u32* step = run.program + HEADER_WORDS;
    for (u32 number = 0; number < run.launch.first_step; ++number) step += step[3];
    for (u32 number = 0; number < run.launch.steps; ++number, step += step[3])
        run_moves(run, {step + STEP_WORDS + step[0]}, step[1], run.launch.pass * run.header.segment_bytes, false);
}

DEVICE void write_counters(const Run& run) {
    const u32* const trailer = run.program + run.header.words - 2 * run.launch.size;
    for (u32 peer = thread(); peer < run.launch.size; peer += THREADS) {
        if (peer == run.launch.rank || !is_contact(run, peer)) continue;
        run.record->calls[peer] = run.shared.calls[peer] + 1;
        run.record->sent[peer] = run.shared.sent[peer] + run.header.passes * trailer[2 * peer];
        run.record->received[peer] = run.shared.received[peer] + run.header.passes * trailer[2 * peer + 1];
    }
}

DEVICE void run_launch(const Launch& launch, Shared& shared) {
    const u32* const program = reinterpret_cast<const u32*>(launch.program);
    const bool call = launch.mode == MODE_CALL;
    Run run{launch, shared, record_of(launch.state, launch.record + (call ? block() : 0)), program,
            {program[0], program[1], program[2], long_at(program + 4), long_at(program + 6)}};
    if (thread() == THREADS - 1) {
        shared.base[launch.rank][BUFFER_INPUT] = launch.input;
        shared.base[launch.rank][BUFFER_OUTPUT] = launch.output;
        shared.base[launch.rank][BUFFER_SCRATCH] = launch.scratch;
    }
    // The thread that keeps the number of calls; another one than those that wait.
    const bool counts = call && block() == 0 && thread() == THREADS - 1;
    Mailbox* const mailbox = reinterpret_cast<Mailbox*>(launch.mailbox);
    u32 calls = 0;
    if (counts) {
        calls = state_of(launch.state)->calls + 1;
        store_relaxed(&mailbox->started, calls);
    }
    const bool entered = call ? enter(run) : read_entries(run);
    if (barrier_or(!entered)) return;
    if (!call) return run_some_moves(run);
    if (!run_steps(run)) return;
    write_counters(run);
    if (counts) {
        state_of(launch.state)->calls = calls;
        store_relaxed(&mailbox->completed, calls);
    }
}

}  // namespace unisono_kernel

#if defined(UNISONO_HOST)
extern "C" void unisono_host_run(const unisono_kernel::Launch* launch, unsigned blocks) {
    static thread_local unisono_kernel::Shared shared;
    for (unsigned block = 0; block < blocks; ++block) {
        unisono_kernel::grid = {block, blocks};
        unisono_kernel::run_launch(*launch, shared);
    }
}
#else
extern "C" __global__ void __launch_bounds__(512, 2) run_program(const __grid_constant__ unisono_kernel::Launch launch) {
    __shared__ unisono_kernel::Shared shared;
    unisono_kernel::run_launch(launch, shared);
}
#endif
