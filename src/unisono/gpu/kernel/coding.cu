// Encodes, rounds and decodes whole arrays, compiled for one format (UNISONO_WIRE; UNISONO_STOCHASTIC).
//
// Each kernel reads every byte once and writes every byte once: n elements are 4 n bytes of floats and encoded_bytes(n)
// bytes of the wire. (`correct` reads and writes two arrays of floats and no wire.) A block works on tiles; a thread first loads its elements of the whole tile, so that enough loads
// are in flight to keep the memory busy.
#include "grid.cuh"

namespace unisono_kernel::coding {

constexpr u32 ROUND_ELEMENTS = THREADS * wire::LANE_ELEMENTS;  // a tile is several rounds

// What a kernel does with the elements of a lane. `Held` is what it loads, for each of the rounds of a tile.
struct Encode {
    static constexpr u32 rounds = 4;
    using Held = wire::Part;
    const float* from;
    u8* to;
    u64 n;
    wire::Rounding rounding;

    CODEC_FUNCTION bool aligned() const { return is_aligned(from) && wire::codes_are_aligned<wire::Format>(to, n); }
    template <bool Whole>
    CODEC_FUNCTION Held load(u64 first) const {
        return load_floats<Whole>(from, n, first);
    }
    template <bool Whole>
    CODEC_FUNCTION void use(u64 first, Held& part) const {
        wire::store_as<wire::Format, UNISONO_STOCHASTIC != 0, Whole>(to, n, first, part, rounding);
    }
};

struct EncodeRoundingSource : Encode {
    float* source;

    template <bool Whole>
    CODEC_FUNCTION void use(u64 first, Held& part) const {
        Encode::use<Whole>(first, part);
        store_floats<Whole>(source, n, first, part);
    }
};

struct Decode {
    static constexpr u32 rounds = 4;
    using Held = wire::Encoded;
    const u8* from;
    float* out;
    u64 n;

    CODEC_FUNCTION bool aligned() const { return is_aligned(out) && wire::codes_are_aligned<wire::Format>(from, n); }
    template <bool Whole>
    CODEC_FUNCTION Held load(u64 first) const {
        return wire::fetch_as<wire::Format, Whole>(from, n, first);
    }
    template <bool Whole>
    CODEC_FUNCTION void use(u64 first, Held& encoded) const {
        store_floats<Whole>(out, n, first, wire::decoded<wire::Format>(encoded));
    }
};

// Error feedback: the residual of earlier steps is added, and what rounding then drops is the new residual. What becomes
// infinite or NaN has none.
struct Correct {
    static constexpr u32 rounds = 2;  // of two arrays: no more fit into the registers
    struct Held {
        wire::Part value, residual;
    };
    float *values, *residuals;
    u64 n;
    wire::Rounding rounding;

    CODEC_FUNCTION bool aligned() const { return is_aligned(values) && is_aligned(residuals); }
    template <bool Whole>
    CODEC_FUNCTION Held load(u64 first) const {
        return {load_floats<Whole>(values, n, first), load_floats<Whole>(residuals, n, first)};
    }
    template <bool Whole>
    CODEC_FUNCTION void use(u64 first, Held& held) const {
        for (u32 i = 0; i < wire::LANE_ELEMENTS; ++i) held.value.v[i] = wire::sum(held.value.v[i], held.residual.v[i]);
        wire::Part sent = held.value;
        wire::store_as<wire::Format, UNISONO_STOCHASTIC != 0, Whole>(nullptr, n, first, sent, rounding);
        for (u32 i = 0; i < wire::LANE_ELEMENTS; ++i) {
            const bool finite = (wire::bits_of(sent.v[i]) & wire::magnitude_mask) < wire::infinity_bits;
            held.residual.v[i] = finite ? wire::sum(held.value.v[i], -sent.v[i]) : 0.0f;
        }
        store_floats<Whole>(values, n, first, sent);
        store_floats<Whole>(residuals, n, first, held.residual);
    }
};

template <bool Whole, typename Action>
CODEC_FUNCTION void run_tile(const Action& action, u64 begin) {
    typename Action::Held held[Action::rounds];
#pragma unroll
    for (u32 i = 0; i < Action::rounds; ++i) held[i] = action.template load<Whole>(begin + i * ROUND_ELEMENTS);
#pragma unroll
    for (u32 i = 0; i < Action::rounds; ++i) action.template use<Whole>(begin + i * ROUND_ELEMENTS, held[i]);
}

// All threads of a block work on every part of a tile, also on elements after the last one.
template <typename Action>
CODEC_FUNCTION void run_tiles(const Action& action) {
    constexpr u32 tile_elements = Action::rounds * ROUND_ELEMENTS;
    const u64 whole_tiles = action.aligned() ? action.n / tile_elements : 0;
    const u64 tiles = (action.n + tile_elements - 1) / tile_elements;
    u64 tile = block();
    const u64 lane = u64{thread()} * wire::LANE_ELEMENTS;
    for (; tile < whole_tiles; tile += blocks()) run_tile<true>(action, tile * tile_elements + lane);
    for (; tile < tiles; tile += blocks()) run_tile<false>(action, tile * tile_elements + lane);
}

}  // namespace unisono_kernel::coding

using namespace unisono_kernel;

CODING_KERNEL(encode, const float* from, wire::u8* to, wire::u64 n, wire::u64 seed, wire::u64 first_index) {
    CODING_BLOCKS
    coding::run_tiles(coding::Encode{from, to, n, wire::Rounding::of(seed, first_index)});
}

// The source becomes what `decode` returns. Without a wire (null) it only rounds.
CODING_KERNEL(encode_rounding_source, float* source, wire::u8* to, wire::u64 n, wire::u64 seed, wire::u64 first_index) {
    CODING_BLOCKS
    coding::run_tiles(
        coding::EncodeRoundingSource{{source, to, n, wire::Rounding::of(seed, first_index)}, source});
}

CODING_KERNEL(decode, const wire::u8* from, float* out, wire::u64 n) {
    CODING_BLOCKS
    coding::run_tiles(coding::Decode{from, out, n});
}

CODING_KERNEL(correct, float* values, float* residuals, wire::u64 n, wire::u64 seed) {
    CODING_BLOCKS
    coding::run_tiles(coding::Correct{values, residuals, n, wire::Rounding::of(seed, 0)});
}
