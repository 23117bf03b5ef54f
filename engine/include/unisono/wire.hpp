// Smaller numbers on the wire: float32 in memory, fewer bits while they travel (docs/codecs.md).
//
// fp16 and bf16 are rounded element by element. The others go in blocks: `codec_block_elements` elements share one scale, a
// power of two, and each has a code of 8 bits; the number is code * scale. A scale is one byte, the exponent field of a
// float: byte b means 2^(b - 127), and b is never less than 1 (2^-126). It is the smallest at which no finite element of
// the block rounds past the largest code.
//
// n elements on the wire are: the scales of their ceil(n / 32) blocks, then their n codes. Blocks are counted from the
// first element, and the last one may be short. There is no header; both ends know codec and n.
//
// Numbers that were decoded are encoded exactly; with rounding to nearest even to the same bytes. Let s be a block's
// scale and c its largest code. At scale s / 2 the largest element rounded past the largest code. So does c * s, as c
// is at least half of the first magnitude that is no code (480 / 2 for e4m3, 65536 / 2 for e5m2, 128 / 2 for int8):
// these halves are codes themselves, and rounding keeps order. At scale s all elements are codes already. Thus s is
// chosen again, and no code changes. (If s is the smallest scale that there is, or the largest, it is chosen again for
// that reason.) With stochastic rounding c may be a little less, and s / 2 be chosen: all codes are then doubled.
//
// What is too large becomes the largest number, never infinity: 65504 for fp16, 1.75 * 2^127 = 2.98e38 for both fp8,
// 127 * 2^121 = 3.38e38 for int8, 3.39e38 for bf16. Infinity and NaN have no part in the choice of a scale; fp16, bf16
// and e5m2 keep both, e4m3 and int8 make NaN of both (codes 0x7f and -128). Every NaN becomes the one NaN.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "unisono/reduce.hpp"

namespace unisono {

enum class Wire : std::uint8_t { none, fp16, bf16, fp8_e4m3, fp8_e5m2, int8 };
inline constexpr std::array wire_names{"none", "fp16", "bf16", "fp8_e4m3", "fp8_e5m2", "int8"};

// How many elements share a scale. Pieces of a whole number of blocks can be encoded one by one: the bytes are as many.
inline constexpr std::size_t codec_block_elements = 32;

// The bytes of n elements on the wire.
constexpr std::size_t encoded_bytes(Wire wire, std::size_t n) {
    switch (wire) {
        case Wire::none: return 4 * n;
        case Wire::fp16:
        case Wire::bf16: return 2 * n;
        default: return (n + codec_block_elements - 1) / codec_block_elements + n;
    }
}

// To the nearest number, of two equally near ones to the even one; or stochastic: to one of the two neighbours, to the
// nearer one the more often, so that the expectation is the number itself. The dice are a function of the seed and of
// the element's index alone, so that nothing depends on how an array is cut into pieces of whole blocks.
struct Rounding {
    bool stochastic = false;
    std::uint64_t seed = 0;
    std::uint64_t first = 0;  // the index of the first element of this piece; it counts modulo 2^32
};

// The loops of a codec. Nothing needs to be aligned. The wire overlaps no array; `out` may be `left`.
using DecodeCombine = void (*)(const std::byte* from, const float* left, float* out, std::size_t n);
struct WireLoops {
    void (*encode)(const float* from, std::byte* to, std::size_t n, Rounding rounding);
    // Rounds the source as well: it is then what decode makes of the wire, to the bit.
    void (*encode_rounding_source)(float* source, std::byte* to, std::size_t n, Rounding rounding);
    void (*decode)(const std::byte* from, float* out, std::size_t n);
    // out[i] = left[i] (op) decoded[i], with the bits that `Combine` gives; nullptr for bitwise reductions.
    DecodeCombine (*find_decode_combine)(Reduction reduction);
};

// The loops for this processor, or those of another variant (Variant::find_wire). Wire::none has none: it is a copy.
const WireLoops& wire_loops(Wire wire);

inline void encode(Wire wire, const float* from, std::byte* to, std::size_t n, Rounding rounding = {}) {
    wire_loops(wire).encode(from, to, n, rounding);
}
inline void encode_rounding_source(Wire wire, float* source, std::byte* to, std::size_t n, Rounding rounding = {}) {
    wire_loops(wire).encode_rounding_source(source, to, n, rounding);
}
inline void decode(Wire wire, const std::byte* from, float* out, std::size_t n) {
    wire_loops(wire).decode(from, out, n);
}
inline void decode_combine(Wire wire, Reduction reduction, const std::byte* from, const float* left, float* out,
                           std::size_t n) {
    wire_loops(wire).find_decode_combine(reduction)(from, left, out, n);
}

}  // namespace unisono
