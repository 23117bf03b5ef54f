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

struct Header {
    u32 words, steps, passes;
    u64 segment_bytes, contacts;
};

constexpr u32 PROGRAM_WORDS = 6144;  // longer programs are read from global memory
constexpr u32 POINTERS = 512;        // addresses of the refs of a step, or of some of its moves; a move has at most 510

struct Shared {
    u64 base[MOST][BUFFERS];  // where the buffers of each rank lie in this process
    u64 pointer[POINTERS];
    u32 calls[MOST], sent[MOST], received[MOST];  // of this block's record, as this call found them
    u32 program[PROGRAM_WORDS];
};

// Reads the two words of a 64-bit number, which need not be aligned.
DEVICE u64 long_at(const u32* words) { return words[0] | static_cast<u64>(words[1]) << 32; }

struct Move {
    const u32* words;
    DEVICE_MEMBER u32 sources() const { return words[0] & 0xff; }
    DEVICE_MEMBER u32 destinations() const { return words[0] >> 8 & 0xff; }
    DEVICE_MEMBER u32 flags() const { return words[0] >> 16; }
    DEVICE_MEMBER u32 refs() const { return sources() + destinations(); }
    DEVICE_MEMBER const u32* ref(u32 index) const { return words + MOVE_WORDS + index * REF_WORDS; }
    DEVICE_MEMBER bool encoded(u32 index) const { return ref(index)[0] >> 24 & REF_ENCODED; }
    DEVICE_MEMBER Move next() const { return {words + MOVE_WORDS + refs() * REF_WORDS}; }
    DEVICE_MEMBER u64 bytes(u64 first, u64 segment) const {
        const u64 length = long_at(words + 2);
        return length <= first ? 0 : length - first < segment ? length - first : segment;
    }
};

DEVICE u64 address_of(const Shared& shared, const u32* ref, u64 first) {
    const u32 buffer = ref[0] >> 16 & 0xff;
    return shared.base[ref[0] & 0xffff][buffer] + long_at(ref + 2) + (buffer == BUFFER_SCRATCH ? 0 : first);
}

}  // namespace unisono_kernel
