// The part of GpuEndpoint that launches kernels.
#include <bit>

#include "unisono/gpu/gpu_endpoint.hpp"

namespace unisono::gpu {

LaunchParameter GpuEndpoint::empty_parameter() const {
    LaunchParameter parameter(options_.most);
    LaunchHead& head = parameter.head();
    head.state = memory_.address();
    head.mailbox = mapped_->address();
    head.scratch = memory_.address() + scratch_at_;
    head.rank = rank();
    head.size = size();
    for (std::uint32_t peer = 0; peer < size(); ++peer) {
        parameter.peer(peer).state = states_[peer];
        parameter.peer(peer).scratch = states_[peer] + scratch_at_;
    }
    return parameter;
}

// Writes the addresses of the buffers into the parameter of a plan, unless they are the same as in its last call.
void GpuEndpoint::fill(GpuPlan& plan, const Buffers& buffers) const {
    const auto serial = [](const Block* block) { return block != nullptr ? block->serial : 0; };
    const std::uint64_t input_serial = serial(buffers.input_block), output_serial = serial(buffers.output_block);
    if (plan.input == buffers.input && plan.output == buffers.output && plan.input_serial == input_serial &&
        plan.output_serial == output_serial)
        return;
    plan.input = buffers.input;
    plan.output = buffers.output;
    plan.input_serial = input_serial;
    plan.output_serial = output_serial;
    plan.parameter.head().input = buffers.input;
    plan.parameter.head().output = buffers.output;
    const auto seen_by = [](const Block* block, std::uint32_t peer, cuda::Address address, std::uint64_t bias) {
        return block != nullptr ? block->at(peer, address) + bias : 0;
    };
    for (std::uint64_t left = plan.contacts; left != 0; left &= left - 1) {
        const auto peer = static_cast<std::uint32_t>(std::countr_zero(left));
        LaunchPeer& told = plan.parameter.peer(peer);
        told.input = seen_by(buffers.input_block, peer, buffers.input, plan.description.bias_in[peer]);
        told.output = seen_by(buffers.output_block, peer, buffers.output, plan.description.bias_out[peer]);
    }
}

void GpuEndpoint::launch(const Kernel& kernel, std::uint32_t blocks, LaunchParameter& parameter,
                         cuda::Stream stream) const {
    void* parameters[] = {parameter.data()};
    driver_.check(driver_.functions().launch_kernel(kernel.function, blocks, 1, 1, threads_per_block, 1, 1,
                                                    kernel.shared_bytes, stream, parameters, nullptr),
                  "cuLaunchKernel");
}

}  // namespace unisono::gpu
