// A call on a GPU, prepared once: its program, and the parameter of the kernel.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "unisono/gpu/layout.hpp"
#include "unisono/gpu/programs.hpp"

namespace unisono::gpu {

struct Kernel {
    cuda::Module module = nullptr;
    cuda::Function function = nullptr;
    unsigned shared_bytes = 0;
    int blocks_per_multiprocessor = 0;
};

// What Python states about a plan. The vectors have an element for each rank.
struct PlanDescription {
    std::string kernel;
    std::string program;     // packed; begins with a ProgramHead
    std::string stream_ops;  // packed StreamOperations; only in stream mode
    std::uint32_t blocks = 1;
    std::uint64_t fingerprint = 0;  // of the call, for announcing it
    std::vector<std::uint64_t> fingerprints, bias_in, bias_out;
    std::uint64_t input_bytes = 0, output_bytes = 0;
    std::uint64_t largest_bytes = 0;  // input and output of the rank with most of them; 0: the ranks do not all know it
    std::string text;
};

struct GpuPlan : std::enable_shared_from_this<GpuPlan> {
    explicit GpuPlan(std::uint32_t most) : parameter(most) {}

    PlanDescription description;
    std::uint64_t number = 0;
    const Kernel* kernel = nullptr;
    std::uint64_t contacts = 0;
    std::unique_ptr<ProgramMemory::Piece> program;
    std::vector<StreamOperation> operations;                    // in stream mode; waits have their step
    std::vector<std::uint32_t> signals_sent, signals_received;  // in a call in stream mode, by rank
    bool captured = false;  // by a CUDA graph, which may use the program at any time

    // The parameter of the kernel as of the last call, and what it was filled with.
    LaunchParameter parameter;
    cuda::Address input = 0, output = 0;
    std::uint64_t input_serial = ~std::uint64_t{0}, output_serial = ~std::uint64_t{0};  // of the blocks
};

}  // namespace unisono::gpu
