// A packed program (see the lowering for its meaning), and the shared memory in which a block keeps it.
//
//   header   words, steps, passes, flags, segment_bytes (2 words), contacts (2 words)
//   step     waits, moves, signals, words; then the waits, the moves, the signals
//     wait, signal   peer << 16 | count
//     move           sources | destinations << 8 | flags << 16, 0, length (2 words), rounding (2 words); then the refs
//       ref          rank | buffer << 16 | flags << 24, 0, offset (2 words)
//   trailer  per rank: signals sent to it in a pass, signals received from it in a pass
#pragma once

#include "platform.cuh"

namespace unisono_kernel {

constexpr u32 HEADER_WORDS = 8, STEP_WORDS = 4, MOVE_WORDS = 6, REF_WORDS = 4;
enum Buffer : u32 { BUFFER_INPUT, BUFFER_OUTPUT, BUFFER_SCRATCH, BUFFERS };
enum MoveFlag : u32 { MOVE_REDUCE = 1, MOVE_DIVIDE = 2, MOVE_ROUND = 4, MOVE_APART = 8 };
enum RefFlag : u32 { REF_ENCODED = 1 };

constexpr u32 PROGRAM_WORDS = 6144;  // longer programs are read from global memory
constexpr u32 POINTERS = 512;        // addresses of the refs of a step, or of some of its moves; a move has at most 510

// All that a block knows lies in shared memory, so that registers are free for the data in flight.
struct Shared {
    u64 base[MOST][BUFFERS];  // where the buffers of each rank lie in this process
    u64 pointer[POINTERS];
    u32 calls[MOST], sent[MOST], received[MOST];  // of this block's record, as this call found them
    u64 segment_bytes, contacts;
    u32 words, steps, passes;
    const u32* program;  // `copy`, or global memory
    u32 copy[PROGRAM_WORDS];
};
SHARED Shared shared;

// Reads the two words of a 64-bit number, which need not be aligned.
DEVICE u64 long_at(const u32* words) { return words[0] | static_cast<u64>(words[1]) << 32; }

// A move is named by the position of its first word in the program.
struct Move {
    u32 counts;
    DEVICE_MEMBER Move(u32 at) : counts(shared.program[at]) {}
    DEVICE_MEMBER u32 sources() const { return counts & 0xff; }
    DEVICE_MEMBER u32 destinations() const { return counts >> 8 & 0xff; }
    DEVICE_MEMBER u32 flags() const { return counts >> 16; }
    DEVICE_MEMBER u32 refs() const { return sources() + destinations(); }
    DEVICE_MEMBER u32 words() const { return MOVE_WORDS + refs() * REF_WORDS; }
};

// Returns the number of bytes of the move at a position of the program in a pass.
DEVICE u64 bytes_of(u32 at, u32 pass) {
    const u64 length = long_at(shared.program + at + 2), segment = shared.segment_bytes, first = pass * segment;
    return length <= first ? 0 : length - first < segment ? length - first : segment;
}

// Returns the address of the ref at a position of the program in a pass.
DEVICE u64 address_of(u32 at, u32 pass) {
    const u32* const ref = shared.program + at;
    const u32 buffer = ref[0] >> 16 & 0xff;
    return shared.base[ref[0] & 0xffff][buffer] + long_at(ref + 2) +
           (buffer == BUFFER_SCRATCH ? 0 : pass * shared.segment_bytes);
}

DEVICE bool is_contact(u32 peer) { return shared.contacts >> peer & 1; }

// The number of signals sent to a peer, and received from it, in a pass.
DEVICE u32 sent_per_pass(const Launch& launch, u32 peer) {
    return shared.program[shared.words - 2 * (launch.size - peer)];
}
DEVICE u32 received_per_pass(const Launch& launch, u32 peer) {
    return shared.program[shared.words - 2 * (launch.size - peer) + 1];
}

}  // namespace unisono_kernel
