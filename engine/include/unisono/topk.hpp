// The few largest of many numbers on the wire (codec "topk:F" of docs/codecs.md).
//
// Kept are the k elements largest in magnitude, NaN before all numbers; of equal ones those that come first, so that they
// are exactly k. An element's position is 16 bits, within its block of `topk_window` elements, and its value a bf16, rounded
// as wire.hpp does. On the wire: how many are kept of each block (32 bits each), the positions, the values; positions are in
// rising order within a block. There is no header; both ends know n and k.
#pragma once

#include <cstddef>

namespace unisono {

inline constexpr std::size_t topk_window = 65536;

constexpr std::size_t topk_bytes(std::size_t n, std::size_t k) { return (n + topk_window - 1) / topk_window * 4 + 4 * k; }

// `k` is at most `n`.
void encode_topk(const float* from, std::byte* to, std::size_t n, std::size_t k);

// out[i] += value, for all that was kept. Throws std::invalid_argument if the bytes are no such wire.
void add_topk(const std::byte* from, float* out, std::size_t n, std::size_t k);

}  // namespace unisono
