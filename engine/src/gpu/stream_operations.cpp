// The part of GpuEndpoint for stream mode: the stream waits for the peers, and kernels only move data.
#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "unisono/gpu/gpu_endpoint.hpp"

namespace unisono::gpu {

namespace {

constexpr std::size_t longest_batch = 128;  // the driver accepts 256

}  // namespace

// Reads the operations of a plan, and computes the step of each wait and the number of signals.
void GpuEndpoint::read_operations(GpuPlan& plan) const {
    const std::string& packed = plan.description.stream_ops;
    if (packed.size() % sizeof(StreamOperation) != 0) throw std::invalid_argument("not a whole number of operations");
    plan.operations.resize(packed.size() / sizeof(StreamOperation));
    if (!packed.empty()) std::memcpy(plan.operations.data(), packed.data(), packed.size());
    plan.signals_sent.assign(size(), 0);
    plan.signals_received.assign(size(), 0);
    for (const StreamOperation& operation : plan.operations) {
        if (operation.kind > StreamOperation::launch) throw std::invalid_argument("an unknown stream operation");
        if (operation.kind == StreamOperation::launch) continue;
        if (operation.peer >= size() || (plan.contacts >> operation.peer & 1) == 0)
            throw std::invalid_argument("a stream operation for a rank that is no contact");
    }
    std::uint32_t step = 0;  // of the launch that follows
    for (auto operation = plan.operations.rbegin(); operation != plan.operations.rend(); ++operation) {
        if (operation->kind == StreamOperation::launch) step = operation->step;
        if (operation->kind == StreamOperation::wait) operation->step = operation->count == 1 ? 0 : step;
    }
    // The entry is a signal, too.
    ProgramHead head{};
    std::memcpy(&head, plan.description.program.data(), sizeof head);
    const std::size_t trailer = (head.words - 2 * std::size_t{size()}) * 4;
    for (std::uint32_t peer = 0; peer < size(); ++peer) {
        std::uint32_t per_pass[2];
        std::memcpy(per_pass, plan.description.program.data() + trailer + 8 * std::size_t{peer}, sizeof per_pass);
        const std::uint32_t entry = plan.contacts >> peer & 1;
        plan.signals_sent[peer] = per_pass[0] * head.passes + entry;
        plan.signals_received[peer] = per_pass[1] * head.passes + entry;
    }
}

void GpuEndpoint::enqueue_operations(GpuPlan& plan, cuda::Stream stream) {
    LaunchParameter& parameter = plan.parameter;
    const auto sequence = [&](std::uint32_t peer) { return std::uint64_t{(counters_[peer].calls + 1) & 0xffff}; };
    for (std::uint32_t peer = 0; peer < size(); ++peer) {
        if ((plan.contacts >> peer & 1) == 0) continue;
        parameter.peer(peer).fingerprint = (plan.description.fingerprints[peer] & entry_mask) | sequence(peer)
                                                                                                    << sequence_shift;
        parameter.head().parity = static_cast<std::uint32_t>(sequence(peer) & 1);
    }
    write_32(mapped_->address() + offsetof(Mailbox, started), enqueued_.load());
    for (const StreamOperation& operation : plan.operations) {
        const std::uint32_t peer = operation.peer;
        const LaunchPeer& told = parameter.peer(peer < size() ? peer : 0);
        switch (operation.kind) {
            case StreamOperation::post: post(peer, 0, sequence(peer), told.input, told.output, told.fingerprint); break;
            case StreamOperation::signal:
                write_32(state(peer) + layout_.signal(0, rank()), counters_[peer].sent + operation.count);
                break;
            case StreamOperation::wait:
                wait_32(memory_.address() + layout_.signal(0, peer), counters_[peer].received + operation.count);
                break;
            default:
                issue(stream);
                parameter.head().first_step = operation.step;
                parameter.head().pass = operation.count;
                launch(*plan.kernel, plan.description.blocks, parameter, stream);
        }
        if (batch_.size() >= longest_batch) issue(stream);
    }
    write_32(mapped_->address() + offsetof(Mailbox, completed), enqueued_.load());
    issue(stream);
    const std::lock_guard lock(announced_mutex_);
    for (std::uint32_t peer = 0; peer < size(); ++peer) {
        counters_[peer].calls += plan.contacts >> peer & 1;
        counters_[peer].sent += plan.signals_sent[peer];
        counters_[peer].received += plan.signals_received[peer];
    }
}

void GpuEndpoint::post(std::uint32_t peer, std::uint32_t record, std::uint64_t sequence, std::uint64_t input,
                       std::uint64_t output, std::uint64_t fingerprint) {
    const cuda::Address entry = state(peer) + layout_.entry(record, static_cast<std::uint32_t>(sequence & 1), rank());
    const std::uint64_t upper = sequence << sequence_shift;
    write_64(entry, (input & entry_mask) | upper);
    write_64(entry + 8, (output & entry_mask) | upper);
    write_64(entry + 16, (fingerprint & entry_mask) | upper);
}

void GpuEndpoint::add(cuda::MemoryOperation::Kind kind, cuda::Address address, std::uint64_t value) {
    cuda::MemoryOperation& operation = batch_.emplace_back();
    operation.kind = kind;
    operation.address = address;
    operation.value = value;
}

void GpuEndpoint::write_32(cuda::Address address, std::uint32_t value) {
    add(cuda::MemoryOperation::Kind::write_32, address, value);
}

void GpuEndpoint::write_64(cuda::Address address, std::uint64_t value) {
    add(cuda::MemoryOperation::Kind::write_64, address, value);
}

void GpuEndpoint::wait_32(cuda::Address address, std::uint32_t value) {
    add(cuda::MemoryOperation::Kind::wait_32, address, value);
}

// Enqueues the operations that were added since the last time.
void GpuEndpoint::issue(cuda::Stream stream) {
    if (batch_.empty()) return;
    const auto result =
        driver_.functions().stream_batch_mem_op(stream, static_cast<unsigned>(batch_.size()), batch_.data(), 0);
    batch_.clear();
    driver_.check(result, "cuStreamBatchMemOp");
}

}  // namespace unisono::gpu
