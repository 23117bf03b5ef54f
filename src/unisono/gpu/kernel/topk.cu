// Top-k on the device: the wire of engine/include/unisono/topk.hpp, bit for bit.
//
// The *limit* is the k-th largest magnitude. Magnitudes are the lower 31 bits of the floats: compared as integers they
// are ordered like the numbers, with NaN above infinity. Kept are all elements above the limit and the first of those
// equal to it, so that there are k.
//
//     kernel            runs     reads        writes
//     count_magnitudes  3 times  4 n each     finds 11, 10 and 10 bits of the limit, the highest first
//     count_kept        once     4 n          elements above and equal to the limit, for each tile; 16 bytes per tile
//     write_kept        once     4 n          the wire, 4 (k + n / 65536)
//     start_pieces      once     4 n / 65536  for each piece, where its windows start; 8 bytes per window
//     add_pieces        once     4 k each     4 n
//
// So encoding n elements moves 20 n + 4 k bytes, and adding p pieces moves 4 n + 4 p k. The last block of a kernel to
// finish combines what all blocks found, so no other launch is needed for it.
#include "grid.cuh"

namespace unisono_kernel::coding {

constexpr u32 WINDOW = 65536;  // elements whose positions have 16 bits
constexpr u32 TILE = 8192;     // elements that a block works on at a time
constexpr u32 WINDOW_TILES = WINDOW / TILE;
constexpr u32 PASSES = 3, MOST_BINS = 2048;
CODEC_FUNCTION u32 shift_of(u32 pass) { return pass == 0 ? 20 : pass == 1 ? 10 : 0; }
CODEC_FUNCTION u32 bins_of(u32 pass) { return pass == 0 ? 2048 : 1024; }

// The state of one encoding; zero at the start.
struct Selection {
    u64 bins[PASSES][MOST_BINS];
    u64 wanted;   // of the elements that have the prefix, this many are kept: the largest, of equal ones the first
    u32 prefix;   // the highest bits of the limit; after all passes, the limit
    u32 arrived[PASSES + 1];
};

// The numbers of elements before a tile, or in it.
struct Tally {
    u64 above, equal;
};

CODEC_FUNCTION u32 magnitude(float value) { return wire::bits_of(value) & wire::magnitude_mask; }

CODEC_FUNCTION u64 at_most(u64 a, u64 b) { return a < b ? a : b; }

// A warp works on consecutive elements of a tile, in rounds of 4 elements per lane.
constexpr u32 WARP_ELEMENTS = TILE / WARPS, ROUND = 4 * WARP, WARP_ROUNDS = WARP_ELEMENTS / ROUND;

struct Held {
    wire::Quad quad[WARP_ROUNDS];
};

// Loads the elements of this lane in a tile; elements after the last one are 0.
CODEC_FUNCTION Held load_tile(const float* from, u64 n, u64 begin) {
    Held held;
    const u64 mine = begin + thread() / WARP * WARP_ELEMENTS + thread() % WARP * 4;
#if !defined(UNISONO_HOST)
    if (begin + TILE <= n && is_aligned(from)) {
#pragma unroll
        for (u32 i = 0; i < WARP_ROUNDS; ++i) {
            const float4 four = *reinterpret_cast<const float4*>(from + mine + i * ROUND);
            held.quad[i] = {{four.x, four.y, four.z, four.w}};
        }
        return held;
    }
#pragma unroll
#endif
    for (u32 i = 0; i < WARP_ROUNDS; ++i)
        for (u32 j = 0; j < 4; ++j) {
            const u64 element = mine + i * ROUND + j;
            held.quad[i].v[j] = element < n ? from[element] : 0.0f;
        }
    return held;
}

// Calls `action(begin)` for every tile of this block.
template <typename Action>
CODEC_FUNCTION void for_each_tile(u64 n, Action action) {
    for (u64 begin = u64{block()} * TILE; begin < n; begin += u64{blocks()} * TILE) action(begin);
}

// Finds the bin with the limit. Bin 0 is not counted, because it often holds most elements, zeros for instance; it is
// the one if the others have too few.
CODEC_FUNCTION void choose_bin(Selection& selection, u32 pass, u64 k) {
    CODING_SHARED u64 sums[THREADS];
    const u32 bins = bins_of(pass), share = (bins + THREADS - 1) / THREADS;
    const u64 wanted = pass == 0 ? k : selection.wanted;
    const u64* const counts = selection.bins[pass];
    // A thread has consecutive bins, and the first thread the highest ones.
    const u32 highest = bins - 1 - thread() * share;
    u64 mine = 0, total;
    for (u32 i = 0; i < share; ++i)
        if (thread() * share + i < bins - 1) mine += counts[highest - i];
    u64 above = sum_before_in_block(mine, sums, total);
    const u32 prefix = selection.prefix << (pass == 0 ? 0 : 10);
    barrier();
    for (u32 i = 0; i < share; ++i) {
        if (thread() * share + i >= bins) break;
        const bool is_last = thread() * share + i == bins - 1;  // bin 0
        const u64 count = is_last ? wanted : counts[highest - i];
        if (above < wanted && wanted <= above + count) {
            selection.prefix = prefix | (highest - i);
            selection.wanted = wanted - above;
        }
        above += count;
    }
}

CODEC_FUNCTION void count_magnitudes_in_block(const float* from, u64 n, u64 k, Selection& selection, u32 pass) {
    // Lanes count in different copies, because neighbours often fall into the same bin.
    constexpr u32 COPIES = WARP < 4 ? 1 : 4;
    CODING_SHARED u32 counts[MOST_BINS * COPIES];
    const u32 bins = bins_of(pass), shift = shift_of(pass);
    const u32 prefix_shift = pass == 0 ? 31 : shift_of(pass - 1);
    const u32 prefix = selection.prefix;  // at first it has no bits and is 0, like every magnitude >> 31
    for (u32 i = thread(); i < bins * COPIES; i += THREADS) counts[i] = 0;
    barrier();
    for_each_tile(n, [&](u64 begin) {
        const Held held = load_tile(from, n, begin);
        for (const wire::Quad& quad : held.quad)
            for (const float value : quad.v) {
                const u32 found = magnitude(value), bin = (found >> shift) & (bins - 1);
                if (found >> prefix_shift == prefix && bin != 0) add(&counts[bin * COPIES + thread() % COPIES], 1u);
            }
    });
    barrier();
    for (u32 bin = thread(); bin < bins; bin += THREADS) {
        u64 sum = 0;
        for (u32 i = 0; i < COPIES; ++i) sum += counts[bin * COPIES + i];
        if (sum != 0) add(&selection.bins[pass][bin], sum);
    }
    if (arrives_last(&selection.arrived[pass])) choose_bin(selection, pass, k);
}

// Counts the elements of this lane above the limit and equal to it: above << 16 | equal, both at most TILE.
CODEC_FUNCTION u32 tally_of(const wire::Quad& quad, u32 limit, u64 first, u64 n) {
    u32 packed = 0;
    for (u32 j = 0; j < 4; ++j) {
        const u32 found = magnitude(quad.v[j]);
        if (first + j < n) packed += (found > limit ? 1u << 16 : 0u) + (found == limit ? 1u : 0u);
    }
    return packed;
}

// Returns the sum of `mine` over the lanes of the warps before this one, and the total over the block.
CODEC_FUNCTION u32 sum_before_warp(u32 mine, u32& total) {
    CODING_SHARED u32 sums[WARPS];
    u32 of_warp;
    sum_before_in_warp(thread() % WARP, of_warp, mine);
    if (thread() % WARP == 0) sums[thread() / WARP] = of_warp;
    barrier();
    u32 before = 0;
    total = 0;
    for (u32 i = 0; i < WARPS; ++i) {
        if (i == thread() / WARP) before = total;
        total += sums[i];
    }
    barrier();
    return before;
}

CODEC_FUNCTION u64 first_of_lane(u64 begin) {
    return begin + thread() / WARP * WARP_ELEMENTS + thread() % WARP * 4;
}

// Makes tallies of tiles those of the elements before them, and stores the number of elements kept in each window.
CODEC_FUNCTION void start_tiles(u32* counts, u64 n, u64 wanted, Tally* tallies) {
    CODING_SHARED u64 sums[THREADS];
    const u64 tiles = (n + TILE - 1) / TILE, windows = (n + WINDOW - 1) / WINDOW;
    const u64 share = (windows + THREADS - 1) / THREADS * WINDOW_TILES;  // a thread has consecutive, whole windows
    const u64 first = at_most(thread() * share, tiles), end = at_most(first + share, tiles);
    u64 above = 0, equal = 0, total;
    for (u64 tile = first; tile < end; ++tile) {
        above += tallies[tile].above;
        equal += tallies[tile].equal;
    }
    above = sum_before_in_block(above, sums, total);
    equal = sum_before_in_block(equal, sums, total);
    u64 kept_before = above + at_most(equal, wanted);
    for (u64 tile = first; tile < end; ++tile) {
        const Tally own = tallies[tile];
        tallies[tile] = {above, equal};
        above += own.above;
        equal += own.equal;
        if (tile % WINDOW_TILES != WINDOW_TILES - 1 && tile != tiles - 1) continue;
        const u64 kept = above + at_most(equal, wanted);
        counts[tile / WINDOW_TILES] = static_cast<u32>(kept - kept_before);
        kept_before = kept;
    }
}

CODEC_FUNCTION void count_kept_in_block(const float* from, u32* counts, u64 n, Selection& selection, Tally* tallies) {
    const u32 limit = selection.prefix;
    for_each_tile(n, [&](u64 begin) {
        const Held held = load_tile(from, n, begin);
        u32 packed = 0, total;
        for (u32 i = 0; i < WARP_ROUNDS; ++i)
            packed += tally_of(held.quad[i], limit, first_of_lane(begin) + i * ROUND, n);
        sum_before_warp(packed, total);
        if (thread() == 0) tallies[begin / TILE] = {total >> 16, total & 0xffffu};
    });
    if (arrives_last(&selection.arrived[PASSES])) start_tiles(counts, n, selection.wanted, tallies);
}

CODEC_FUNCTION void write_kept_in_block(const float* from, u16* positions, u16* values, u64 n,
                                        const Selection& selection, const Tally* tallies) {
    const u32 limit = selection.prefix;
    const u64 wanted = selection.wanted;
    for_each_tile(n, [&](u64 begin) {
        u32 packed[WARP_ROUNDS], sum = 0, total;
        {
            const Held held = load_tile(from, n, begin);
            for (u32 i = 0; i < WARP_ROUNDS; ++i)
                sum += packed[i] = tally_of(held.quad[i], limit, first_of_lane(begin) + i * ROUND, n);
        }
        u32 before_round = sum_before_warp(sum, total);
        if (total == 0) return;
        const Tally before_tile = tallies[begin / TILE];
        for (u32 i = 0; i < WARP_ROUNDS; ++i) {
            u32 of_round;
            const u32 before = before_round + sum_before_in_warp(thread() % WARP, of_round, packed[i]);
            before_round += of_round;
            if (packed[i] == 0) continue;  // the usual case; the few elements that are kept are loaded again
            u64 above = before_tile.above + (before >> 16), equal = before_tile.equal + (before & 0xffffu);
            const u64 first = first_of_lane(begin) + i * ROUND, end = at_most(first + 4, n);
            for (u64 element = first; element < end; ++element) {
                const float value = from[element];
                const u32 found = magnitude(value);
                if (found > limit || (found == limit && equal < wanted)) {
                    const u64 at = above + at_most(equal, wanted);
                    positions[at] = static_cast<u16>(element % WINDOW);
                    values[at] = static_cast<u16>(wire::round_any<wire::BrainFloat, false>(value, 0).code);
                }
                above += found > limit;
                equal += found == limit;
            }
        }
    });
}

// The sections of a piece: the wire of one rank.
struct Piece {
    const u32* counts;
    const u16 *positions, *values;
};
CODEC_FUNCTION Piece piece_at(const u8* pieces, u64 i, u64 n, u64 k) {
    const u64 windows = (n + WINDOW - 1) / WINDOW;
    const u8* const begin = pieces + i * 4 * (windows + k);
    const u16* const positions = reinterpret_cast<const u16*>(begin + 4 * windows);
    return {reinterpret_cast<const u32*>(begin), positions, positions + k};
}

// Makes `starts[piece][window]` the number of elements in the windows before; at most k, whatever the wire says.
CODEC_FUNCTION void start_piece(const u8* pieces, u64 piece, u64 n, u64 k, u64* starts, u32* fault) {
    CODING_SHARED u64 sums[THREADS];
    const u64 windows = (n + WINDOW - 1) / WINDOW, share = (windows + THREADS - 1) / THREADS;
    const u32* const counts = piece_at(pieces, piece, n, k).counts;
    u64* const mine = starts + piece * (windows + 1);
    const u64 first = at_most(thread() * share, windows), end = at_most(first + share, windows);
    u64 sum = 0, total;
    for (u64 window = first; window < end; ++window) sum += counts[window];
    sum = sum_before_in_block(sum, sums, total);
    for (u64 window = first; window < end; ++window) {
        mine[window] = at_most(sum, k);
        sum += counts[window];
    }
    if (thread() != 0) return;
    mine[windows] = k;
    if (total != k) *fault = 1;
}

constexpr u32 PART = TILE;        // elements that a block adds up in shared memory
constexpr u32 PIECES = 64;        // whose ranges are found at once

// Returns the first of the increasing positions that is not below `least`.
CODEC_FUNCTION u64 first_at_least(const u16* positions, u64 first, u64 end, u32 least) {
    while (first < end) {
        const u64 middle = (first + end) / 2;
        if (positions[middle] < least)
            first = middle + 1;
        else
            end = middle;
    }
    return first;
}

// Adds the elements of all pieces, in their order, in one part of the array. Invalid positions change nothing.
CODEC_FUNCTION void add_pieces_in_part(const u8* pieces, float* out, u64 n, u64 k, u32 piece_count, const u64* starts,
                                       float divisor, u32* fault, u64 begin) {
    CODING_SHARED float sums[PART];
    CODING_SHARED u64 ranges[2 * PIECES];
    const u64 windows = (n + WINDOW - 1) / WINDOW, window = begin / WINDOW;
    const u32 offset = static_cast<u32>(begin % WINDOW), length = static_cast<u32>(at_most(n - begin, PART));
    for (u32 i = thread(); i < length; i += THREADS) sums[i] = 0;
    for (u32 batch = 0; batch < piece_count; batch += PIECES) {
        const u32 count = static_cast<u32>(at_most(PIECES, piece_count - batch));
        for (u32 i = thread(); i < 2 * count; i += THREADS) {
            const u64* const start = starts + (batch + i / 2) * (windows + 1) + window;
            const u16* const positions = piece_at(pieces, batch + i / 2, n, k).positions;
            // In the last part of a window, all that is left, so that an invalid position is found.
            const bool is_last = i % 2 == 1 && (offset + PART == WINDOW || begin + length == n);
            ranges[i] = is_last ? start[1] : first_at_least(positions, start[0], start[1], offset + i % 2 * PART);
        }
        barrier();
        for (u32 i = 0; i < count; ++i) {
            const Piece piece = piece_at(pieces, batch + i, n, k);
            for (u64 at = ranges[2 * i] + thread(); at < ranges[2 * i + 1]; at += THREADS) {
                const u32 position = piece.positions[at] - offset;
                if (position >= length) {
                    *fault = 1;
                    continue;
                }
                sums[position] = wire::settled(wire::sum(sums[position], wire::BrainFloat::widen(piece.values[at])));
            }
            barrier();
        }
    }
    for (u32 i = thread(); i < length; i += THREADS)
        out[begin + i] = divisor == 1 ? sums[i] : wire::settled(quotient(sums[i], divisor));
    barrier();
}

}  // namespace unisono_kernel::coding

using namespace unisono_kernel;
using wire::u32;
using wire::u64;
using wire::u8;

CODING_KERNEL(count_magnitudes, const float* from, u64 n, u64 k, coding::Selection* selection, u64 pass) {
    CODING_BLOCKS coding::count_magnitudes_in_block(from, n, k, *selection, static_cast<u32>(pass));
}

CODING_KERNEL(count_kept, const float* from, u32* to, u64 n, coding::Selection* selection, coding::Tally* tallies) {
    CODING_BLOCKS coding::count_kept_in_block(from, to, n, *selection, tallies);
}

CODING_KERNEL(write_kept, const float* from, u8* to, u64 n, u64 k, const coding::Selection* selection,
              const coding::Tally* tallies) {
    const coding::Piece piece = coding::piece_at(to, 0, n, k);
    CODING_BLOCKS coding::write_kept_in_block(from, const_cast<coding::u16*>(piece.positions),
                                              const_cast<coding::u16*>(piece.values), n, *selection, tallies);
}

CODING_KERNEL(start_pieces, const u8* pieces, u64 n, u64 k, u64 piece_count, u64* starts, u32* fault) {
    CODING_BLOCKS for (u64 piece = coding::block(); piece < piece_count; piece += coding::blocks())
        coding::start_piece(pieces, piece, n, k, starts, fault);
}

// out = the sum of the pieces / divisor.
CODING_KERNEL(add_pieces, const u8* pieces, float* out, u64 n, u64 k, u64 piece_count, const u64* starts, float divisor,
              u32* fault) {
    CODING_BLOCKS coding::for_each_tile(n, [&](u64 begin) {
        coding::add_pieces_in_part(pieces, out, n, k, static_cast<u32>(piece_count), starts, divisor, fault, begin);
    });
}
