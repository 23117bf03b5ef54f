// Collectives written by hand for one GPU, for comparison with the interpreter: the same communication, without a program.
//
// tools/by_hand.py compiles this file with nvcc into a library, which the ranks of tools/measure_gpu.py load, so that
// both run in the same processes, on the same memory, in the same timed loop. Each kernel meets its peers through flags
// in device memory before it reads their memory, and after it has written theirs. Kernels of several ranks must run at
// the same time: ranks that share a GPU need MPS.
//
// Every function returns nullptr, or the text of the error.

#include <cuda_runtime.h>

#include <cstddef>
#include <cstring>

namespace {

constexpr int most_ranks = 8;
constexpr int threads = 512;
constexpr int most_blocks = 256;
constexpr int flags_of_block = 32;  // a line of memory for each block
constexpr int failed = flags_of_block - 1;  // the flag of block 0 that says that a wait has timed out
constexpr unsigned most_polls = 4'000'000;  // some seconds: the ranks do not run at the same time
constexpr size_t flag_bytes = size_t(most_blocks) * flags_of_block * sizeof(unsigned);

struct Peers {
    float4* input[most_ranks];
    float4* output[most_ranks];
    unsigned* flags[most_ranks];
};

struct State {
    int rank = 0, size = 0;
    char* memory = nullptr;  // flags, then the input, then the output
    size_t bytes = 0;        // of the input, and of the output
    Peers peers{};
    unsigned passed = 0;  // synchronizations so far; equal on all ranks
};

State state;

// Wait for the same block of every rank. Thread p tells rank p, and waits for it.
__device__ void meet(const Peers& peers, int rank, int size, unsigned number) {
    __syncthreads();
    if (threadIdx.x < size) {
        unsigned* theirs = peers.flags[threadIdx.x] + blockIdx.x * flags_of_block + rank;
        unsigned* mine = peers.flags[rank] + blockIdx.x * flags_of_block + threadIdx.x;
        asm volatile("fence.acq_rel.sys; st.release.sys.global.u32 [%0], %1;" ::"l"(theirs), "r"(number) : "memory");
        unsigned seen, polls = 0;
        volatile unsigned* is_broken = peers.flags[rank] + failed;
        do {
            asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(mine) : "memory");
            if ((++polls & 1023) == 0 && (*is_broken || polls > most_polls)) {
                *is_broken = 1;
                break;
            }
        } while (int(seen - number) < 0);
    }
    __syncthreads();
}

__device__ float4 plus(float4 a, float4 b) { return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w); }

// Element `at` of every rank's input, added in the order of the ranks.
template <int size>
__device__ float4 sum_of_all(const Peers& peers, size_t at) {
    float4 loaded[size];
#pragma unroll
    for (int r = 0; r < size; ++r) loaded[r] = peers.input[r][at];
#pragma unroll
    for (int r = 1; r < size; ++r) loaded[0] = plus(loaded[0], loaded[r]);
    return loaded[0];
}

// `count` is the number of vectors of 16 bytes in a whole vector; a part is count / size of them.
template <int size>
__global__ void __launch_bounds__(threads, 2) all_reduce(Peers peers, int rank, size_t count, unsigned number) {
    meet(peers, rank, size, number);
    const size_t part = count / size, end = part * (rank + 1), stride = size_t(gridDim.x) * threads;
#pragma unroll 2
    for (size_t at = part * rank + blockIdx.x * threads + threadIdx.x; at < end; at += stride) {
        const float4 sum = sum_of_all<size>(peers, at);
#pragma unroll
        for (int r = 0; r < size; ++r) peers.output[r][at] = sum;
    }
    meet(peers, rank, size, number + 1);
}

template <int size>
__global__ void __launch_bounds__(threads, 2) all_gather(Peers peers, int rank, size_t count, unsigned number) {
    meet(peers, rank, size, number);
    const size_t part = count / size, stride = size_t(gridDim.x) * threads;
#pragma unroll 4
    for (size_t at = blockIdx.x * threads + threadIdx.x; at < part; at += stride) {
        const float4 value = peers.input[rank][at];
#pragma unroll
        for (int r = 0; r < size; ++r) peers.output[r][part * rank + at] = value;
    }
    meet(peers, rank, size, number + 1);
}

template <int size>
__global__ void __launch_bounds__(threads, 2) reduce_scatter(Peers peers, int rank, size_t count, unsigned number) {
    meet(peers, rank, size, number);
    const size_t part = count / size, stride = size_t(gridDim.x) * threads;
#pragma unroll 2
    for (size_t at = blockIdx.x * threads + threadIdx.x; at < part; at += stride) {
        peers.output[rank][at] = sum_of_all<size>(peers, part * rank + at);
    }
    meet(peers, rank, size, number + 1);
}

using Kernel = void (*)(Peers, int, size_t, unsigned);

template <int size>
Kernel kernel_named(const char* name) {
    if (std::strcmp(name, "all_reduce") == 0) return all_reduce<size>;
    if (std::strcmp(name, "all_gather") == 0) return all_gather<size>;
    if (std::strcmp(name, "reduce_scatter") == 0) return reduce_scatter<size>;
    return nullptr;
}

const char* text_of(cudaError_t error) { return error == cudaSuccess ? nullptr : cudaGetErrorString(error); }

void place(int rank, char* memory) {
    state.peers.flags[rank] = reinterpret_cast<unsigned*>(memory);
    state.peers.input[rank] = reinterpret_cast<float4*>(memory + flag_bytes);
    state.peers.output[rank] = reinterpret_cast<float4*>(memory + flag_bytes + state.bytes);
}

}  // namespace

extern "C" {

int by_hand_handle_bytes() { return int(sizeof(cudaIpcMemHandle_t)); }

// Allocate the memory of this rank, filled with zeros; write the handle by which the others open it.
const char* by_hand_open(int rank, int size, size_t bytes, void* handle) {
    if (size != 2 && size != 4 && size != 8) return "expected 2, 4 or 8 ranks";
    state = State{};
    state.rank = rank;
    state.size = size;
    state.bytes = bytes;
    const size_t whole = flag_bytes + 2 * bytes;
    if (auto error = cudaMalloc(&state.memory, whole)) return text_of(error);
    if (auto error = cudaMemset(state.memory, 0, whole)) return text_of(error);
    if (auto error = cudaDeviceSynchronize()) return text_of(error);
    return text_of(cudaIpcGetMemHandle(static_cast<cudaIpcMemHandle_t*>(handle), state.memory));
}

// Open the memory of the other ranks; `handles` has one handle per rank.
const char* by_hand_connect(const void* handles) {
    for (int r = 0; r < state.size; ++r) {
        char* memory = state.memory;
        if (r != state.rank) {
            const auto handle = static_cast<const cudaIpcMemHandle_t*>(handles)[r];
            void* opened = nullptr;
            if (auto error = cudaIpcOpenMemHandle(&opened, handle, cudaIpcMemLazyEnablePeerAccess)) return text_of(error);
            memory = static_cast<char*>(opened);
        }
        place(r, memory);
    }
    return nullptr;
}

// Write a value to every element of the input.
const char* by_hand_fill(float value, size_t bytes) {
    // Test values are small integers, whose bytes are not equal: written by a host copy, once.
    float* values = new float[bytes / sizeof(float)];
    for (size_t i = 0; i < bytes / sizeof(float); ++i) values[i] = value;
    auto error = cudaMemcpy(state.peers.input[state.rank], values, bytes, cudaMemcpyHostToDevice);
    delete[] values;
    return text_of(error);
}

// Read the element of the output at a byte offset; in place, the output is the input.
const char* by_hand_read(int in_place, size_t offset, float* value) {
    const Peers& peers = state.peers;
    const char* from = reinterpret_cast<const char*>((in_place ? peers.input : peers.output)[state.rank]) + offset;
    return text_of(cudaMemcpy(value, from, sizeof(float), cudaMemcpyDeviceToHost));
}

// Write whether a wait has timed out: then all results are meaningless.
const char* by_hand_broken(unsigned* value) {
    return text_of(cudaMemcpy(value, state.peers.flags[state.rank] + failed, sizeof *value, cudaMemcpyDeviceToHost));
}

// Enqueue a collective on `bytes` bytes, with this number of blocks.
const char* by_hand_run(const char* collective, int in_place, size_t bytes, int blocks, void* stream) {
    Kernel kernel = state.size == 2 ? kernel_named<2>(collective)
                    : state.size == 4 ? kernel_named<4>(collective)
                                      : kernel_named<8>(collective);
    if (kernel == nullptr) return "there is no such collective";
    if (bytes > state.bytes || blocks > most_blocks) return "too many bytes or blocks";
    Peers peers = state.peers;
    if (in_place) std::memcpy(peers.output, peers.input, sizeof peers.output);
    kernel<<<blocks, threads, 0, static_cast<cudaStream_t>(stream)>>>(peers, state.rank, bytes / sizeof(float4),
                                                                      state.passed + 1);
    state.passed += 2;
    return text_of(cudaGetLastError());
}

// Close the memory of the others; all ranks must have finished.
void by_hand_disconnect() {
    for (int r = 0; r < state.size; ++r) {
        if (r != state.rank && state.peers.flags[r] != nullptr) cudaIpcCloseMemHandle(state.peers.flags[r]);
    }
}

void by_hand_close() {
    cudaFree(state.memory);
    state = State{};
}

}  // extern "C"
