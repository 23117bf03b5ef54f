// Codecs: float32 in memory, fewer bits on the wire (docs/codecs.md).
//
// fp16 and bf16 are rounded element by element. The other formats work in codec blocks: `codec_block_elements` elements
// share one scale, a power of two, and each has a code of 8 bits; the number is code * scale. A scale is one byte, the
// exponent field of a float: byte b means 2^(b - 127), and b is never less than 1 (2^-126). It is the smallest scale at
// which no finite element of the block rounds past the largest code.
//
// n elements on the wire are: the scales of their ceil(n / 32) codec blocks, then their n codes. Blocks are counted
// from the first element, and the last one may be short. There is no header; both ends know codec and n.
//
// Decoded numbers are encoded exactly; with rounding to nearest even, to the same bytes. Let s be the scale of a block
// and c its largest code. At scale s / 2 the largest element rounded past the largest code. So does c * s, because c is
// at least half of the first magnitude that is not a code (480 / 2 for e4m3, 65536 / 2 for e5m2, 128 / 2 for int8):
// these halves are codes themselves, and rounding is monotonic. At scale s all elements are codes already. Thus s is
// chosen again, and no code changes. (If s is the smallest or the largest scale, it is chosen again for that reason.)
// With stochastic rounding c may be slightly less, and s / 2 may be chosen: all codes are then doubled.
//
// Numbers that are too large become the largest number, never infinity: 65504 for fp16, 1.75 * 2^127 = 2.98e38 for both
// fp8, 127 * 2^121 = 3.38e38 for int8, 3.39e38 for bf16. Infinity and NaN do not influence the choice of a scale; fp16,
// bf16 and e5m2 keep both, e4m3 and int8 turn both into NaN (codes 0x7f and -128). Every NaN becomes the same NaN.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "unisono/reduce.hpp"

namespace unisono {

enum class Wire : std::uint8_t { none, fp16, bf16, fp8_e4m3, fp8_e5m2, int8 };
inline constexpr std::array wire_names{"none", "fp16", "bf16", "fp8_e4m3", "fp8_e5m2", "int8"};

// The number of elements that share a scale. Pieces of whole blocks can be encoded one by one: the total length is the
// same.
inline constexpr std::size_t codec_block_elements = 32;

// Returns the bytes of n elements on the wire.
constexpr std::size_t encoded_bytes(Wire wire, std::size_t n) {
    switch (wire) {
        case Wire::none: return 4 * n;
        case Wire::fp16:
        case Wire::bf16: return 2 * n;
        default: return (n + codec_block_elements - 1) / codec_block_elements + n;
    }
}

// Rounding to nearest even, or stochastic rounding: to one of the two neighbours, with probabilities such that the
// expected value is the number itself. The random bits depend only on the seed and the index of the element, so the
// result does not depend on how an array is divided into pieces of whole blocks.
struct Rounding {
    bool stochastic = false;
    std::uint64_t seed = 0;
    std::uint64_t first = 0;  // the index of the first element of this piece, modulo 2^32
};

// The loops of a codec. No alignment is required. The wire overlaps no array; `out` may be `left`.
using DecodeCombine = void (*)(const std::byte* from, const float* left, float* out, std::size_t n);
struct WireLoops {
    void (*encode)(const float* from, std::byte* to, std::size_t n, Rounding rounding);
    // Also rounds the source: it becomes, bit for bit, what `decode` returns.
    void (*encode_rounding_source)(float* source, std::byte* to, std::size_t n, Rounding rounding);
    void (*decode)(const std::byte* from, float* out, std::size_t n);
    // out[i] = left[i] (op) decoded[i], with the bits that `Combine` gives; nullptr for bitwise reductions.
    DecodeCombine (*find_decode_combine)(Reduction reduction);
};

// Returns the loops for this processor. Wire::none has none, because it is a copy.
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
