// The wire formats: float32 numbers in fewer bits, in blocks of 32 elements that may share a scale.
//
// This is a placeholder without formats; it fixes the interface that moves.cuh calls.
//
// On a GPU, 8 neighbouring lanes of a warp handle one codec block, 4 elements each, and all 8 call a function together.
// On the host, one lane handles the whole block. `first` is the number of the lane's first element in the segment,
// `elements` the length of the segment. Elements past the end exist in the last block: `load` returns zeros for them,
// `store` gets zeros and stores nothing.
#pragma once

#include "launch.cuh"
#include "platform.cuh"

namespace unisono_kernel::wire {

struct wire_none {
    static constexpr bool used = false;
};

using Format = UNISONO_WIRE;

constexpr u32 BLOCK_ELEMENTS = 32;
#if defined(UNISONO_HOST)
constexpr u32 LANES = 1;
#else
constexpr u32 LANES = 8;
#endif
constexpr u32 LANE_ELEMENTS = BLOCK_ELEMENTS / LANES;

// The elements of one lane.
struct Part {
    float v[LANE_ELEMENTS];
};

// Decodes: load(base, elements, first).
DEVICE Part load(const u8*, u64, u64) { return {}; }

// Encodes: store(base, elements, first, part); the elements are rounded on return. Without a base (null) it only rounds.
DEVICE void store(u8*, u64, u64, Part&) {}

}  // namespace unisono_kernel::wire
