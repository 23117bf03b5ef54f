// Threads, barriers, flags and memory, on the GPU and on the host.
//
// On the host a block is one thread, its shared memory belongs to the thread, and a barrier does nothing.
//
// How a value reaches another rank (PTX memory model, scope sys):
//   release: all threads of the block store; barrier; each signalling thread executes `fence`, then stores a flag.
//            The barrier orders the stores of the whole block before the fence, and the fence, which is cumulative,
//            orders them before the flag.
//   acquire: the waiting thread reads the flag with `load_acquire`, once more if it saw the value with a relaxed load;
//            barrier; all threads load. Loads are ordinary, coherent ones (never ld.global.nc), so they see what the
//            release published.
#pragma once

#include "launch.cuh"

#if defined(UNISONO_HOST)
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#define DEVICE static inline
#define DEVICE_MEMBER inline
#define DEVICE_CALL static inline
#define SHARED static thread_local
#define UNROLL
#define ROLLED
#else
#define DEVICE static __device__ __forceinline__
#define DEVICE_MEMBER __device__ __forceinline__
#define DEVICE_CALL static __device__ __noinline__
#define SHARED static __shared__
#define UNROLL _Pragma("unroll")
#define ROLLED _Pragma("unroll 1")
#endif

namespace unisono_kernel {

constexpr u32 TILE_BYTES = 8192;
constexpr u32 VECTOR_BYTES = 16;

struct alignas(16) Vector {
    u32 w[4];
};

template <bool First, typename A, typename B>
struct ChoiceOf {
    using Type = A;
};
template <typename A, typename B>
struct ChoiceOf<false, A, B> {
    using Type = B;
};
template <bool First, typename A, typename B>
using Choice = typename ChoiceOf<First, A, B>::Type;

template <typename To, typename From>
DEVICE To bits_as(From from) {
    static_assert(sizeof(To) == sizeof(From));
#if defined(UNISONO_HOST)
    To to;
    std::memcpy(&to, &from, sizeof to);
    return to;
#else
    return __builtin_bit_cast(To, from);
#endif
}

#if defined(UNISONO_HOST)

constexpr u32 THREADS = 1;
struct Grid {
    u32 block, blocks;
};
inline thread_local Grid grid;
DEVICE u32 thread() { return 0; }
DEVICE u32 block() { return grid.block; }
DEVICE u32 blocks() { return grid.blocks; }
DEVICE void barrier() {}
DEVICE bool barrier_or(bool any) { return any; }

DEVICE void fence() { std::atomic_thread_fence(std::memory_order_seq_cst); }
DEVICE u32 load_acquire(const u32* from) {
    return std::atomic_ref(*const_cast<u32*>(from)).load(std::memory_order_acquire);
}
DEVICE u64 load_acquire(const u64* from) {
    return std::atomic_ref(*const_cast<u64*>(from)).load(std::memory_order_acquire);
}
DEVICE u64 load_relaxed(const u64* from) {
    return std::atomic_ref(*const_cast<u64*>(from)).load(std::memory_order_relaxed);
}
DEVICE u32 load_relaxed(const u32* from) {
    return std::atomic_ref(*const_cast<u32*>(from)).load(std::memory_order_relaxed);
}
DEVICE void store_relaxed(u32* to, u32 value) { std::atomic_ref(*to).store(value, std::memory_order_relaxed); }
DEVICE void store_relaxed(u64* to, u64 value) { std::atomic_ref(*to).store(value, std::memory_order_relaxed); }
DEVICE bool claim(u32* flag) { return std::atomic_ref(*flag).exchange(1) == 0; }
DEVICE void add_relaxed(u32* to, u32 value) { std::atomic_ref(*to).fetch_add(value, std::memory_order_relaxed); }
// On the host, all ranks share few cores: a thread that polls would take them from the rank that it waits for.
DEVICE void rest(u32) { usleep(200); }
DEVICE u64 now_ns() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<u64>(now.tv_sec) * 1'000'000'000u + static_cast<u64>(now.tv_nsec);
}

DEVICE Vector load_vector(u64 from) {
    Vector value;
    std::memcpy(&value, reinterpret_cast<const void*>(from), sizeof value);
    return value;
}
DEVICE void store_vector(u64 to, const Vector& value) {
    std::memcpy(reinterpret_cast<void*>(to), &value, sizeof value);
}
template <typename T>
DEVICE T load_as(u64 from) {
    T value;
    std::memcpy(&value, reinterpret_cast<const void*>(from), sizeof value);
    return value;
}
template <typename T>
DEVICE void store_as(u64 to, T value) {
    std::memcpy(reinterpret_cast<void*>(to), &value, sizeof value);
}

#else

constexpr u32 THREADS = 512;
DEVICE u32 thread() { return threadIdx.x; }
DEVICE u32 block() { return blockIdx.x; }
DEVICE u32 blocks() { return gridDim.x; }
DEVICE void barrier() { __syncthreads(); }
DEVICE bool barrier_or(bool any) { return __syncthreads_or(any); }

DEVICE void fence() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }
DEVICE u32 load_acquire(const u32* from) {
    u32 value;
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
    return value;
}
DEVICE u64 load_acquire(const u64* from) {
    u64 value;
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(from) : "memory");
    return value;
}
DEVICE u64 load_relaxed(const u64* from) {
    u64 value;
    asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(from) : "memory");
    return value;
}
DEVICE u32 load_relaxed(const u32* from) {
    u32 value;
    asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
    return value;
}
DEVICE void store_relaxed(u32* to, u32 value) {
    asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
}
DEVICE void store_relaxed(u64* to, u64 value) {
    asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(to), "l"(value) : "memory");
}
DEVICE bool claim(u32* flag) { return atomicExch(flag, 1u) == 0; }
DEVICE void add_relaxed(u32* to, u32 value) {
    asm volatile("red.relaxed.gpu.global.add.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
}
DEVICE void rest(u32 ns) { asm volatile("nanosleep.u32 %0;" ::"r"(ns)); }
DEVICE u64 now_ns() {
    u64 now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    return now;
}

// Data is used once, so it is not kept in L1. (A hint only: the load is coherent.) Loads are volatile, so that the
// compiler keeps the order in which they are written: all loads of a group before the first use.
DEVICE Vector load_vector(u64 from) {
    Vector v;
    asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.w[0]), "=r"(v.w[1]), "=r"(v.w[2]), "=r"(v.w[3])
                 : "l"(from)
                 : "memory");
    return v;
}
DEVICE void store_vector(u64 to, const Vector& v) {
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(v.w[0]), "r"(v.w[1]), "r"(v.w[2]),
                 "r"(v.w[3])
                 : "memory");
}
// For addresses that are multiples of the size.
template <typename T>
DEVICE T load_as(u64 from) {
    return *reinterpret_cast<const T*>(from);
}
template <typename T>
DEVICE void store_as(u64 to, T value) {
    *reinterpret_cast<T*>(to) = value;
}

#endif

}  // namespace unisono_kernel
