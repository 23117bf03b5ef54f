// Moves with encoded sources or destinations (float32 only), and moves whose result is rounded as if it were encoded.
//
// The unit is the codec block of 32 elements; a tile is a whole number of them, so tiles have the same owners as in
// other moves. The sources are combined in order; the result is rounded by encoding it; encoded destinations get its
// codes, plain ones the rounded numbers, divided if the move says so.
#pragma once

#include "codec.cuh"
#include "program.cuh"
#include "reductions.cuh"

namespace unisono_kernel {

using wire::Part;
using Float32 = dtype_float32;

DEVICE Part load_plain(u64 from, u64 elements, u64 first) {
    Part part;
    UNROLL for (u32 i = 0; i < wire::LANE_ELEMENTS; ++i)
        part.v[i] = first + i < elements ? bits_as<float>(load_as<u32>(from + (first + i) * 4)) : 0.0f;
    return part;
}

DEVICE void store_plain(u64 to, u64 elements, u64 first, const Part& part) {
    UNROLL for (u32 i = 0; i < wire::LANE_ELEMENTS; ++i)
        if (first + i < elements) store_as<u32>(to + (first + i) * 4, bits_as<u32>(part.v[i]));
}

// Whether a ref of the move at a position of the program is encoded.
DEVICE bool is_encoded(u32 at, u32 ref) {
    return (shared.program[at + MOVE_WORDS + ref * REF_WORDS] >> 24 & REF_ENCODED) != 0;
}

DEVICE Part load_part(u32 at, u32 pointer, u32 ref, u64 elements, u64 first) {
    const u64 from = shared.pointer[pointer + ref];
    return is_encoded(at, ref) ? wire::load(reinterpret_cast<const u8*>(from), elements, first)
                               : load_plain(from, elements, first);
}

DEVICE bool needs_codec(u32 at) {
    const Move move(at);
    bool encoded = (move.flags() & MOVE_ROUND) != 0;
    ROLLED for (u32 ref = 0; ref < move.refs(); ++ref) encoded |= is_encoded(at, ref);
    return encoded;
}

template <Op O>
DEVICE_CALL void sweep_encoded(u32 at, u32 pointer, u64 bytes, u32 divisor) {
    constexpr u32 tile_elements = TILE_BYTES / 4, lanes = tile_elements / wire::LANE_ELEMENTS;
    const Move move(at);
    const u64 elements = bytes / 4;
    bool rounds = (move.flags() & MOVE_ROUND) != 0;
    ROLLED for (u32 ref = move.sources(); ref < move.refs(); ++ref) rounds |= is_encoded(at, ref);
    ROLLED for (u64 tile = block(); tile * tile_elements < elements; tile += blocks()) {
        ROLLED for (u32 lane = thread(); lane < lanes; lane += THREADS) {
            const u64 first = tile * tile_elements + lane * wire::LANE_ELEMENTS;
            // All lanes of a codec block stay together.
            if (first / wire::BLOCK_ELEMENTS * wire::BLOCK_ELEMENTS >= elements) continue;
            Part total = load_part(at, pointer, 0, elements, first);
            if (move.sources() > 1) {
                ROLLED for (u32 ref = 1; ref < move.sources(); ++ref) {
                    const Part addend = load_part(at, pointer, ref, elements, first);
                    UNROLL for (u32 i = 0; i < wire::LANE_ELEMENTS; ++i)
                        total.v[i] = combine<O, Float32>(total.v[i], addend.v[i]);
                }
                UNROLL for (u32 i = 0; i < wire::LANE_ELEMENTS; ++i)
                    total.v[i] = bits_as<float>(Float32::narrow(total.v[i]));
            }
            Part rounded = total;
            bool stored = false;
            ROLLED for (u32 ref = move.sources(); ref < move.refs(); ++ref) {
                if (!is_encoded(at, ref)) continue;
                rounded = total;
                wire::store(reinterpret_cast<u8*>(shared.pointer[pointer + ref]), elements, first, rounded);
                stored = true;
            }
            if (rounds && !stored) wire::store(nullptr, elements, first, rounded);
            if (divisor != 0)
                UNROLL for (u32 i = 0; i < wire::LANE_ELEMENTS; ++i)
                    rounded.v[i] = bits_as<float>(Float32::divide(bits_as<u32>(rounded.v[i]), Float32::divisor(divisor)));
            ROLLED for (u32 ref = move.sources(); ref < move.refs(); ++ref)
                if (!is_encoded(at, ref)) store_plain(shared.pointer[pointer + ref], elements, first, rounded);
        }
    }
}

}  // namespace unisono_kernel
