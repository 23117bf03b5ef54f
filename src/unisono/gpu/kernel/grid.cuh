// Blocks of threads that work on whole arrays, on the device and on the host.
//
// On the host a block is one thread, and blocks run one after another: `run_blocks` calls the body of a kernel for each.
#pragma once

#include "codec.cuh"

namespace unisono_kernel::coding {

using wire::u16;
using wire::u32;
using wire::u64;
using wire::u8;

#if defined(UNISONO_HOST)

constexpr u32 THREADS = 1, WARP = 1;
#define CODING_SHARED static thread_local
struct Grid {
    u32 block, blocks;
};
inline thread_local Grid grid{0, 1};
inline u32 thread() { return 0; }
inline u32 block() { return grid.block; }
inline u32 blocks() { return grid.blocks; }
inline void barrier() {}
inline void fence() {}
inline u32 sum_before_in_warp(u32, u32& total, u32 mine) { return total = mine, 0; }
inline u32 add(u32* to, u32 value) { return (*to += value) - value; }
inline u64 add(u64* to, u64 value) { return (*to += value) - value; }
inline float quotient(float a, float b) { return a / b; }
// A kernel is an ordinary function, with the number of blocks as the last parameter.
#define CODING_KERNEL(name, ...) extern "C" void name(__VA_ARGS__, unsigned int block_count)
#define CODING_BLOCKS \
    for (coding::grid = {0, block_count}; coding::grid.block < block_count; ++coding::grid.block)

#else

constexpr u32 THREADS = 512, WARP = 32;
#define CODING_SHARED __shared__
CODEC_FUNCTION u32 thread() { return threadIdx.x; }
CODEC_FUNCTION u32 block() { return blockIdx.x; }
CODEC_FUNCTION u32 blocks() { return gridDim.x; }
CODEC_FUNCTION void barrier() { __syncthreads(); }
CODEC_FUNCTION void fence() { __threadfence(); }
CODEC_FUNCTION u32 add(u32* to, u32 value) { return atomicAdd(to, value); }
CODEC_FUNCTION u64 add(u64* to, u64 value) { return atomicAdd(to, value); }
CODEC_FUNCTION float quotient(float a, float b) { return __fdiv_rn(a, b); }

// Returns the sum of `mine` over the lanes before this one, and the total over the warp.
CODEC_FUNCTION u32 sum_before_in_warp(u32 lane, u32& total, u32 mine) {
    u32 sum = mine;
#pragma unroll
    for (u32 distance = 1; distance < WARP; distance *= 2) {
        const u32 other = __shfl_up_sync(0xffffffffu, sum, distance);
        if (lane >= distance) sum += other;
    }
    total = __shfl_sync(0xffffffffu, sum, WARP - 1);
    return sum - mine;
}
#define CODING_KERNEL(name, ...) extern "C" __global__ void __launch_bounds__(512, 2) name(__VA_ARGS__)
#define CODING_BLOCKS

#endif

constexpr u32 WARPS = THREADS / WARP;

// Returns the sum of `mine` over the threads of the block before this one, and the total over the block.
template <typename T>
CODEC_FUNCTION T sum_before_in_block(T mine, T (&shared)[THREADS], T& total) {
    const u32 t = thread();
    shared[t] = mine;
    barrier();
    for (u32 distance = 1; distance < THREADS; distance *= 2) {
        const T other = t >= distance ? shared[t - distance] : T{};
        barrier();
        shared[t] += other;
        barrier();
    }
    total = shared[THREADS - 1];
    const T before = shared[t] - mine;
    barrier();
    return before;
}

// Returns true in the last block that arrives; what the others stored before is then visible to it.
CODEC_FUNCTION bool arrives_last(u32* arrived) {
    CODING_SHARED bool last;
    barrier();
    if (thread() == 0) {
        fence();
        last = add(arrived, 1u) == blocks() - 1;
        fence();
    }
    barrier();
    return last;
}

// Loads or stores the elements of a lane; those after the last one are 0, and are not stored. With `Whole`, the array is
// aligned to 16 bytes and there are none.
template <bool Whole>
CODEC_FUNCTION wire::Part load_floats(const float* from, u64 n, u64 first) {
    wire::Part part;
    for (u32 i = 0; i < wire::LANE_ELEMENTS; ++i) part.v[i] = first + i < n ? from[first + i] : 0.0f;
    return part;
}
template <bool Whole>
CODEC_FUNCTION void store_floats(float* to, u64 n, u64 first, const wire::Part& part) {
    for (u32 i = 0; i < wire::LANE_ELEMENTS; ++i)
        if (first + i < n) to[first + i] = part.v[i];
}
#if !defined(UNISONO_HOST)
template <>
CODEC_FUNCTION wire::Part load_floats<true>(const float* from, u64, u64 first) {
    const float4 four = *reinterpret_cast<const float4*>(from + first);
    return {{four.x, four.y, four.z, four.w}};
}
template <>
CODEC_FUNCTION void store_floats<true>(float* to, u64, u64 first, const wire::Part& part) {
    *reinterpret_cast<float4*>(to + first) = make_float4(part.v[0], part.v[1], part.v[2], part.v[3]);
}
#endif
CODEC_FUNCTION bool is_aligned(const float* array) { return reinterpret_cast<u64>(array) % 16 == 0; }

}  // namespace unisono_kernel::coding
