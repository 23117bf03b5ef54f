// The memory that the host and the kernel share: the arguments of a launch, the flags of a rank, and its mailbox.
//
// The same structures are compiled for the GPU and for the host. MOST is the largest number of ranks.
#pragma once

#ifndef UNISONO_MOST
#define UNISONO_MOST 16
#endif

namespace unisono_kernel {

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;

constexpr u32 MOST = UNISONO_MOST;

// An entry is three words, {input, output, fingerprint}: the value in the lower 48 bits, the number of the call of that
// pair of ranks (mod 2^16) in the upper 16. Each word says by itself whether it is current, so their order is free.
enum EntryWord : u32 { ENTRY_INPUT, ENTRY_OUTPUT, ENTRY_FINGERPRINT, ENTRY_WORDS };
constexpr u32 ENTRY_BITS = 48;
constexpr u64 ENTRY_VALUE = (1ull << ENTRY_BITS) - 1;

// The flags of one thread block. Peers write `entry` (the parity of the call chooses the half) and `signal`; the other
// three belong to the block itself: per peer, the calls that both took part in, and the signals sent and received in
// all of them. They live in memory, so that a launch has no argument that changes from call to call and a CUDA graph
// can replay it.
struct Record {
    u64 entry[2][MOST][ENTRY_WORDS];
    u32 signal[MOST];
    u32 calls[MOST], sent[MOST], received[MOST];
};

// The memory of a rank that its peers can reach; the records follow.
struct State {
    u32 abort;          // not 0: whoever waits leaves
    u32 fault_claimed;  // the first thread that meets a fault sets it and writes the mailbox
    u64 abort_in_host;  // the address of a second such word, in host memory: to set it takes no call of the driver
    u32 calls;          // that are over, in MODE_CALL
    u32 pad[27];
};

// In host memory, written by the kernel.
struct Mailbox {
    u32 fault;  // a Fault; written last
    u32 peer, step, pass;
    u32 started, completed;  // calls in stream mode, written by stream operations
    u32 kind;                // a WaitKind
    u32 calls;               // State::calls at the time of the fault
};
// FAULT_ABORTED says only where a thread waited when it found the abort word set.
enum Fault : u32 { FAULT_NONE, FAULT_MISMATCH, FAULT_TIMEOUT, FAULT_ABORTED };
enum WaitKind : u32 { WAIT_ENTRY, WAIT_SIGNAL };

// `state` and `scratch` are addresses of the peer's memory in this process. `input` and `output` are what this rank
// posts to the peer: addresses of its own memory, valid in the peer's process. In MODE_MOVES the host posts entries, and
// `fingerprint` is the whole word that the peer's entry must hold, with its sequence number.
struct Peer {
    u64 state, input, output, fingerprint, scratch;
};

enum Mode : u32 { MODE_CALL, MODE_MOVES };

struct Launch {
    u64 program, state, mailbox, input, output, scratch;
    u64 timeout_ns;
    u32 rank, size, record;
    u32 mode;                             // a Mode
    u32 first_step, steps, pass, parity;  // of MODE_MOVES; the parity is that of the sequence numbers, unused here
    Peer peers[MOST];
};

static_assert(sizeof(Record) == MOST * (2 * 3 * 8 + 4 * 4));
static_assert(sizeof(State) == 128);
static_assert(sizeof(Mailbox) == 32);
static_assert(sizeof(Launch) == 7 * 8 + 8 * 4 + MOST * 40);

}  // namespace unisono_kernel
