// The part of GpuEndpoint for send and recv. Streams wait for each other, in both modes.
//
// The messages from one rank to another match in the order of the calls. The sender posts where its data lies and
// waits; the receiver's kernel copies the data and signals. The entry of a message has its label in place of an output,
// and as its fingerprint the tag (32 bits) and a digest of the label.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <stdexcept>

#include "unisono/gpu/gpu_endpoint.hpp"
#include "unisono/transfer.hpp"

namespace unisono::gpu {

namespace {

constexpr std::uint64_t tile_bytes = 8192;  // of one thread block
constexpr int type_shift = 43;              // an entry has 48 bits

std::uint64_t short_label(DType dtype, std::uint64_t count) {
    return static_cast<std::uint64_t>(dtype) << type_shift | (count & ((std::uint64_t{1} << type_shift) - 1));
}

std::uint64_t fingerprint_of(std::uint32_t tag, std::uint64_t label) {
    const std::uint64_t mixed = label * 0x9e3779b97f4a7c15u;
    return tag | mixed >> 48 << 32;
}

// Where a copying program has the bytes of a segment and of its move.
constexpr std::uint64_t segment_bytes_at = 16, move_bytes_at = 56;

// A program with one step and one move: from the peer's input to the output of this rank. The stream of a message
// writes its bytes into it.
std::vector<std::uint32_t> copying_program(std::uint32_t rank, std::uint32_t peer, std::uint32_t size) {
    const std::uint64_t contacts = std::uint64_t{1} << peer;
    std::vector<std::uint32_t> words{0,
                                     1,
                                     1,
                                     0,
                                     0,
                                     0,  // the bytes of a segment
                                     static_cast<std::uint32_t>(contacts),
                                     static_cast<std::uint32_t>(contacts >> 32),
                                     0,
                                     1,
                                     0,
                                     18,  // the step: no waits, one move, no signals
                                     1 | 1 << 8,
                                     0,
                                     0,
                                     0,  // the bytes of the move
                                     0,
                                     0,  // the move: one source, one destination
                                     peer | 0 << 16,
                                     0,
                                     0,
                                     0,  // the source
                                     rank | 1 << 16,
                                     0,
                                     0,
                                     0};  // the destination
    words.resize(words.size() + 2 * std::size_t{size}, 0);
    words[0] = static_cast<std::uint32_t>(words.size());
    return words;
}

}  // namespace

// Each direction has a record of flags: messages from a lower to a higher rank, and the others.
std::uint32_t GpuEndpoint::transfer_record(bool sending, std::uint32_t peer) const {
    const bool upwards = sending ? rank() < peer : peer < rank();
    return options_.blocks + (upwards ? 0 : 1);
}

// Returns a kernel that copies elements of a type, or else bytes. It is loaded already, for the same reason as below.
const Kernel& GpuEndpoint::copying_kernel(DType dtype) const {
    for (const DType type : {dtype, DType::uint8}) {
        const std::string prefix = std::string(dtype_names[static_cast<std::size_t>(type)]) + ".";
        const auto found = kernels_.lower_bound(prefix);
        if (found != kernels_.end() && found->first.starts_with(prefix)) return found->second;
    }
    throw std::invalid_argument("no kernel that copies bytes is loaded");
}

// Returns the program that copies a peer's messages. It exists before the first message: to make it may wait for the
// device, and the device for a message that this rank will send after this one.
cuda::Address GpuEndpoint::transfer_program(std::uint32_t peer) {
    auto& program = transfer_programs_[peer];
    if (!program) {
        const auto words = copying_program(rank(), peer, size());
        program = programs_->place(words.data(), words.size() * 4, stream_->handle());
    }
    return program->address;
}

// Returns whether a message of this rank is not over.
bool GpuEndpoint::transfers_run() {
    for (std::uint32_t peer = 0; peer < size(); ++peer)
        for (const bool sending : {true, false})
            if (lane(sending, peer).enqueued != word(progress_offset(sending, peer) + 4)) return true;
    return false;
}

void GpuEndpoint::transfer(const GpuTransfer& made, cuda::Stream stream, Nanoseconds timeout) {
    const std::lock_guard lock(calls_);
    check_faults();
    const std::uint32_t peer = made.peer;
    if (peer >= size() || peer == rank()) throw std::invalid_argument("not the rank of a peer");
    const CurrentContext current = device_->enter();
    const CaptureAllowance allowance(driver_);
    if (is_capturing(stream)) throw CaptureRefused{true};
    const std::uint64_t bytes = made.count * dtype_bytes[static_cast<std::size_t>(made.dtype)];
    const Kernel* const kernel = made.sending ? nullptr : &copying_kernel(made.dtype);
    if (bytes > 0) registry_->check_device(made.address);
    const Wait what{peer, made.tag, deadline_after(timeout), false};
    Lane& used = lane(made.sending, peer);
    cuda::Address address = made.address;
    std::shared_ptr<Block> block;
    bool staged = false;
    try {
        if (made.sending && bytes > 0) {
            const std::uint64_t contact = std::uint64_t{1} << peer;
            // Each peer has its part of the memory that is prepared for copies.
            const std::uint64_t part = std::bit_floor(prepared_staging_bytes / (size() - 1));
            // To offer memory may wait for the device, and so for other messages.
            const bool offers = bytes > part || registry_->find(address, bytes) != nullptr || !transfers_run();
            if (offers) {
                block = registry_->find_or_add(address, bytes);
                registry_->take_answers(*block);
                if (bytes > part) registry_->await(*block, contact, what);
            }
            if (!block || !block->is_open_to(contact)) {
                staged = true;
                if (block && !block->shareable) staged_.fetch_add(1, std::memory_order_relaxed);
                if (bytes <= part)
                    address = staging(sends, prepared_staging_bytes, contact, what, block) +
                              part * (peer < rank() ? peer : peer - 1);
                else
                    address = staging(2 + peer, bytes, contact, what, block);
            }
        }
        const cuda::Address program = made.sending ? 0 : transfer_program(peer);
        const std::uint64_t progress = progress_offset(made.sending, peer);
        keep_order(used.order, stream, [&] { return word(progress + 4) == used.enqueued; });
        if (staged) copy(address, made.address, bytes, stream);
        const std::uint64_t label = short_label(made.dtype, made.count), fingerprint = fingerprint_of(made.tag, label);
        Counters& counters = used.counters;
        const std::uint64_t sequence = (counters.calls + 1) & 0xffff;
        const std::uint32_t record = transfer_record(made.sending, peer);
        {
            const std::lock_guard announcing(announced_mutex_);
            ++used.enqueued;
            used.recent[used.enqueued % remembered_transfers] = {made.tag, label, timeout};
            ++counters.calls;
            ++counters.sent;
            ++counters.received;
        }
        const cuda::Address theirs = state(peer) + layout_.signal(record, rank());
        const cuda::Address ours = memory_.address() + layout_.signal(record, peer);
        write_32(mapped_->address() + progress, used.enqueued);
        if (made.sending) {
            post(peer, record, sequence, block ? block->at(peer, address) : 0, label, fingerprint);
            write_32(theirs, counters.sent);
            wait_32(ours, counters.received);
        } else {
            wait_32(ours, counters.received);
            write_64(program + segment_bytes_at, bytes);
            write_64(program + move_bytes_at, bytes);
            issue(stream);
            LaunchParameter parameter = empty_parameter();
            LaunchHead& head = parameter.head();
            head.program = program;
            head.mailbox = mapped_->address() + transfer_mailbox_at;
            head.output = address;
            head.record = record;
            head.mode = stream_mode;
            head.steps = 1;
            head.parity = static_cast<std::uint32_t>(sequence & 1);
            parameter.peer(peer).fingerprint = fingerprint | sequence << sequence_shift;
            const std::uint64_t tiles =
                std::clamp<std::uint64_t>((bytes + tile_bytes - 1) / tile_bytes, 1, options_.blocks);
            launch(*kernel, static_cast<std::uint32_t>(tiles), parameter, stream);
            write_32(theirs, counters.sent);
        }
        write_32(mapped_->address() + progress + 4, used.enqueued);
        issue(stream);
    } catch (const DriverError& error) {
        report_driver(error);
    } catch (const MemoryRefused& refused) {
        endpoint_.fail(Fault::no_memory, static_cast<int>(rank()), refused.message(endpoint_.own_value()));
    }
}

// Compares the message of a peer with the one that this rank receives.
void GpuEndpoint::report_transfer_mismatch(std::uint32_t peer) {
    const std::uint32_t number = word(progress_offset(false, peer));
    const Lane::Message expected = lane(false, peer).recent[number % remembered_transfers];
    const std::byte* const record = copy_record(transfer_record(false, peer));
    std::uint64_t entry[3];
    std::memcpy(entry, record + layout_.entry(0, number & 1, peer) - layout_.record(0), sizeof entry);
    const std::uint64_t label = entry[1] & entry_mask;
    const auto sent_tag = static_cast<std::uint32_t>(entry[2]);
    const auto long_label = [](std::uint64_t word) {
        return transfer_label(static_cast<DType>(word >> type_shift), word & ((std::uint64_t{1} << type_shift) - 1));
    };
    FaultMessage message(sent_tag != expected.tag ? "tag_mismatch" : "transfer_mismatch");
    message.with_value("peer", endpoint_.names.value(peer)).with_value("rank", endpoint_.own_value());
    message.with("tag", expected.tag).with("sent_tag", sent_tag);
    message.with("sent_count", count_of_label(long_label(label))).with("sent_dtype", dtype_of_label(long_label(label)));
    message.with("count", count_of_label(long_label(expected.label)));
    message.with("dtype", dtype_of_label(long_label(expected.label)));
    endpoint_.fail(Fault::mismatch, static_cast<int>(peer), message);
}

}  // namespace unisono::gpu
