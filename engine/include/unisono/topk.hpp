// The wire of the codec "topk:F": the largest elements of an array (docs/codecs.md).
//
// Kept are the k elements that are largest in magnitude, where NaN is larger than any number and of equal elements the
// first ones are kept, so that exactly k remain. The position of an element has 16 bits, within its window of
// `topk_window` elements; its value is a bf16, rounded as in wire.hpp. On the wire: the number of elements kept in each
// window (32 bits each), the positions, the values; positions increase within a window. There is no header; both ends
// know n and k.
#pragma once

#include <cstddef>

namespace unisono {

inline constexpr std::size_t topk_window = 65536;

constexpr std::size_t topk_bytes(std::size_t n, std::size_t k) {
    return (n + topk_window - 1) / topk_window * 4 + 4 * k;
}

// `k` is at most `n`.
void encode_topk(const float* from, std::byte* to, std::size_t n, std::size_t k);

// out[i] += value for every element kept. Throws std::invalid_argument if the bytes are not a valid wire.
void add_topk(const std::byte* from, float* out, std::size_t n, std::size_t k);

}  // namespace unisono
