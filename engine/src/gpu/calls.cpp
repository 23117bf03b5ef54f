// The part of GpuEndpoint that every call passes through: its turn, its number, its memory, the order of streams.
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <stdexcept>

#include "unisono/gpu/gpu_endpoint.hpp"

namespace unisono::gpu {

namespace {

// Texts of calls are remembered by the number of their plan; those of plans for the processor begin at 1.
constexpr std::uint64_t gpu_plans = std::uint64_t{1} << 63;
constexpr std::size_t least_staging_bytes = 2 << 20;

struct Turn {
    CollectiveQueue& queue;
    ~Turn() { queue.give_back(); }
};

bool overlap(cuda::Address a, std::uint64_t a_bytes, cuda::Address b, std::uint64_t b_bytes) {
    return a < b + b_bytes && b < a + a_bytes;
}

}  // namespace

// Calls are numbered in the order in which they are made, so a call waits for those that were queued before it.
void GpuEndpoint::take_turn() {
    while (!queue_.try_take()) {
        if (endpoint_.broken() || endpoint_.check_interrupt()) throw Failure(endpoint_.fault_report());
        ::usleep(20);
    }
}

bool GpuEndpoint::is_capturing(cuda::Stream stream) const {
    auto status = cuda::CaptureStatus::none;
    // The default stream refuses to answer while another stream is captured; it is not captured itself.
    if (driver_.functions().stream_is_capturing(stream, &status) != cuda::Result::success) return false;
    return status != cuda::CaptureStatus::none;
}

// Makes a call wait for the one before it, if that was made on another stream. `over` says whether it has ended.
void GpuEndpoint::keep_order(Order& order, cuda::Stream stream, const std::function<bool()>& over) {
    const cuda::Functions& functions = driver_.functions();
    unsigned long long id = 0;
    driver_.check(functions.stream_get_id(stream, &id), "cuStreamGetId");
    if (order.any && order.id != id) {
        if (!order.event) order.event = std::make_unique<GpuEventHandle>(driver_);
        if (functions.event_record(order.event->handle(), order.stream) == cuda::Result::success) {
            driver_.check(functions.stream_wait_event(stream, order.event->handle(), 0), "cuStreamWaitEvent");
        } else {  // that stream does not exist any more
            while (!over()) {
                if (endpoint_.broken() || endpoint_.check_interrupt()) throw Failure(endpoint_.fault_report());
                ::usleep(20);
            }
        }
    }
    order.any = true;
    order.stream = stream;
    order.id = id;
}

// Asked where the stream of the last call has been destroyed. In stream mode, the device counts the calls that are
// over; in kernel mode, only an event of that stream could tell, and a stream that does not exist any more has run
// everything.
bool GpuEndpoint::earlier_calls_are_over() {
    const std::uint32_t earlier = enqueued_.load() - 1;  // this call has been announced
    if (options_.kernel_mode) seen_completed_ = marked_ = earlier;
    return completed() == earlier;
}

bool GpuEndpoint::run_at_once(GpuPlan& plan, const Call& call) {
    if (closed_ || dead_ >= 0 || plan.description.largest_bytes > prepared_staging_bytes || endpoint_.broken() ||
        word(offsetof(Mailbox, fault)) != 0 || !queue_.try_take())
        return false;
    const Turn turn{queue_};
    const std::unique_lock lock(calls_, std::try_to_lock);
    if (!lock) return false;
    const CurrentContext current = device_->enter();
    const PlanDescription& described = plan.description;
    Buffers buffers{call.input, call.output, nullptr, nullptr};
    if (plan.contacts != 0 && described.input_bytes > 0) {
        buffers.input_block = registry_->find(call.input, described.input_bytes);
        if (buffers.input_block == nullptr || !buffers.input_block->is_open_to(plan.contacts)) return false;
    }
    if (plan.contacts != 0 && described.output_bytes > 0) {
        const bool same =
            buffers.input_block != nullptr && buffers.input_block->contains(call.output, described.output_bytes);
        buffers.output_block = same ? buffers.input_block : registry_->find(call.output, described.output_bytes);
        if (buffers.output_block == nullptr || !buffers.output_block->is_open_to(plan.contacts)) return false;
    }
    const bool captured = is_capturing(call.stream);
    if (captured && !options_.kernel_mode) return false;
    announce(plan, call.timeout, captured);
    try {
        enqueue(plan, buffers, call, captured);
    } catch (const DriverError& error) {
        report_driver(error);
    }
    return true;
}

void GpuEndpoint::run(GpuPlan& plan, const Call& call) {
    take_turn();
    const Turn turn{queue_};
    const std::lock_guard lock(calls_);
    check_faults();
    const CurrentContext current = device_->enter();
    const CaptureAllowance allowance(driver_);
    const bool captured = is_capturing(call.stream);
    if (captured && !options_.kernel_mode) throw CaptureRefused{false};
    const PlanDescription& described = plan.description;
    const bool shares = plan.contacts != 0;
    std::shared_ptr<Block> input, output;
    if (shares && described.input_bytes > 0) input = registry_->find_or_add(call.input, described.input_bytes);
    if (shares && described.output_bytes > 0)
        output = input && input->contains(call.output, described.output_bytes)
                     ? input
                     : registry_->find_or_add(call.output, described.output_bytes);
    const std::uint64_t number = announce(plan, call.timeout, captured);
    const Wait what{rank(), 0, deadline_after(call.timeout), true, number, &described.text};
    if (dead_ >= 0 && shares) endpoint_.report_peer_ended(static_cast<std::uint32_t>(dead_.load()), what);
    try {
        if (described.largest_bytes > prepared_staging_bytes) {
            offer_copies(plan, call, input.get(), output.get());
            meet(plan.contacts, what);
        }
        for (Block* const block : {input.get(), output.get()}) {
            if (block == nullptr) continue;
            registry_->take_answers(*block);
            const bool fits = described.input_bytes + described.output_bytes <= prepared_staging_bytes;
            if (!fits) registry_->await(*block, plan.contacts, what);
        }
        const auto is_open = [&](const std::shared_ptr<Block>& block) {
            return !block || block->is_open_to(plan.contacts);
        };
        if (!is_open(input) || !is_open(output))
            run_staged(plan, call, input.get(), output.get(), what, captured);
        else
            enqueue(plan, {call.input, call.output, input.get(), output.get()}, call, captured);
    } catch (const DriverError& error) {
        report_driver(error);
    } catch (const MemoryRefused& refused) {
        endpoint_.fail(Fault::no_memory, static_cast<int>(rank()), refused.message(endpoint_.own_value()));
    }
}

// Returns the number of the call. A call that a CUDA graph captures is announced now, though it runs later.
std::uint64_t GpuEndpoint::announce(GpuPlan& plan, Nanoseconds timeout, bool captured) {
    const PlanDescription& described = plan.description;
    const std::uint64_t number = endpoint_.enter(described.fingerprint, described.text, gpu_plans + plan.number);
    if (captured) {
        captured_ = true;
        if (!plan.captured) captured_plans_.push_back(plan.shared_from_this());
        plan.captured = true;
        return number;
    }
    std::shared_ptr<GpuPlan> forgotten;  // its destructor runs outside of the lock
    {
        const std::lock_guard lock(announced_mutex_);
        const std::uint32_t index = enqueued_.load(std::memory_order_relaxed) + 1;
        Announced& made = announced_[index % remembered];
        made.call = {number, described.fingerprint, &described.text};
        forgotten = std::exchange(made.plan, plan.shared_from_this());
        made.timeout = timeout;
        if (!options_.kernel_mode)
            for (std::uint32_t peer = 0; peer < size(); ++peer) made.received[peer] = counters_[peer].received;
        enqueued_.store(index, std::memory_order_release);
    }
    return number;
}

void GpuEndpoint::enqueue(GpuPlan& plan, const Buffers& buffers, const Call& call, bool captured) {
    if (!captured) {
        keep_order(order_, call.stream, [&] { return earlier_calls_are_over(); });
        if (residence_ && plan.contacts != 0)
            Residents::of_process().enter(driver_, {this, options_.device, call.stream, residence_.get()});
    }
    fill(plan, buffers);
    if (!options_.kernel_mode) return enqueue_operations(plan, call.stream);
    plan.parameter.head().timeout_ns = static_cast<std::uint64_t>(call.timeout.count());
    launch(*plan.kernel, plan.description.blocks, plan.parameter, call.stream);
}

// ---- memory that cannot be shared ------------------------------------------------------------------------------

// Runs a call on copies of its buffers. Where input and output overlap, the copy of both is in one piece.
void GpuEndpoint::run_staged(GpuPlan& plan, const Call& call, const Block* input, const Block* output, const Wait& what,
                             bool captured) {
    const PlanDescription& described = plan.description;
    const std::uint64_t input_bytes = described.input_bytes, output_bytes = described.output_bytes;
    std::shared_ptr<Block> input_copy, output_copy;
    Buffers buffers{call.input, call.output, input, output};
    const auto is_open = [&](const Block* block) { return block == nullptr || block->is_open_to(plan.contacts); };
    if ((input != nullptr && !input->shareable) || (output != nullptr && !output->shareable))
        staged_.fetch_add(1, std::memory_order_relaxed);
    if (!captured)  // earlier calls may use the same copies
        keep_order(order_, call.stream, [&] { return earlier_calls_are_over(); });
    if (input != nullptr && output != nullptr && overlap(call.input, input_bytes, call.output, output_bytes)) {
        const cuda::Address begin = std::min(call.input, call.output);
        const cuda::Address end = std::max(call.input + input_bytes, call.output + output_bytes);
        const cuda::Address at = staging(0, end - begin, plan.contacts, what, input_copy);
        copy(at, begin, end - begin, call.stream);
        buffers = {at + (call.input - begin), at + (call.output - begin), input_copy.get(), input_copy.get()};
    } else {
        if (!is_open(input)) {
            buffers.input = staging(0, input_bytes, plan.contacts, what, input_copy);
            buffers.input_block = input_copy.get();
            copy(buffers.input, call.input, input_bytes, call.stream);
        }
        if (!is_open(output)) {
            buffers.output = staging(1, output_bytes, plan.contacts, what, output_copy);
            buffers.output_block = output_copy.get();
            copy(buffers.output, call.output, output_bytes, call.stream);  // a call may leave parts of it as they are
        }
    }
    enqueue(plan, buffers, call, captured);
    if (buffers.output != call.output) copy(call.output, buffers.output, output_bytes, call.stream);
}

// Makes memory for copies before any kernel waits. A peer whose thread waits in the driver for its own kernel cannot
// open memory, and the kernel may wait for this rank; so a call does not wait until its buffers are open everywhere,
// but runs on copies, if it is not too large.
void GpuEndpoint::prepare() {
    const std::lock_guard lock(calls_);
    check_open();
    const CurrentContext current = device_->enter();
    const CaptureAllowance allowance(driver_);
    const std::uint64_t all = size() < 64 ? (std::uint64_t{1} << size()) - 1 : ~std::uint64_t{0};
    const Wait what{rank(), 0, deadline_after(std::chrono::seconds(60)), false};
    for (const std::uint32_t user : {0u, 1u, sends}) {
        std::shared_ptr<Block> block;
        if (size() > 1) staging(user, prepared_staging_bytes, all & ~(std::uint64_t{1} << rank()), what, block);
    }
    for (std::uint32_t peer = 0; peer < size(); ++peer)
        if (peer != rank()) transfer_program(peer);
}

// Offers the memory into which a large call copies buffers that cannot be shared.
void GpuEndpoint::offer_copies(const GpuPlan& plan, const Call& call, const Block* input, const Block* output) {
    const std::uint64_t input_bytes = plan.description.input_bytes, output_bytes = plan.description.output_bytes;
    const auto offer = [&](std::uint32_t user, std::uint64_t bytes) {
        registry_->find_or_add(staging_memory(user, bytes).address(), bytes);
    };
    const auto is_private = [](const Block* block) { return block != nullptr && !block->shareable; };
    if (input != nullptr && output != nullptr && overlap(call.input, input_bytes, call.output, output_bytes)) {
        if (is_private(input) || is_private(output))
            offer(0,
                  std::max(call.input + input_bytes, call.output + output_bytes) - std::min(call.input, call.output));
        return;
    }
    if (is_private(input)) offer(0, input_bytes);
    if (is_private(output)) offer(1, output_bytes);
}

// Waits until the contacts have entered this large call, too, and this rank has opened what they have offered. All
// ranks know which calls are large. After that no rank needs this rank to open anything while its kernel runs.
void GpuEndpoint::meet(std::uint64_t contacts, Wait what) {
    const std::uint32_t number = ++large_calls_;
    board_->head(rank()).large_calls.store(number, std::memory_order_release);
    for (std::uint64_t left = contacts; left != 0; left &= left - 1)
        endpoint_.wake_if_asleep(static_cast<std::uint32_t>(std::countr_zero(left)));
    for (std::uint64_t left = contacts; left != 0; left &= left - 1) {
        what.peer = static_cast<std::uint32_t>(std::countr_zero(left));
        const BoardHead& theirs = board_->head(what.peer);
        const auto has_come = [&] {
            return static_cast<std::int32_t>(theirs.large_calls.load(std::memory_order_acquire) - number) >= 0;
        };
        endpoint_.wait(has_come, what);
        const std::uint32_t version = theirs.version.load(std::memory_order_acquire);
        endpoint_.wait([&] { return mappings_->has_looked_at(what.peer, version); }, what);
    }
}

DeviceMemory& GpuEndpoint::staging_memory(std::uint32_t user, std::uint64_t bytes) {
    const bool prepared = user < 2 || user == sends;
    const std::uint64_t least = prepared ? prepared_staging_bytes : least_staging_bytes;
    const int size_class = std::bit_width(std::max<std::uint64_t>(bytes, least) - 1);
    DeviceMemory& memory = staging_[{user, size_class}];
    if (memory.address() == 0) memory = DeviceMemory(driver_, std::size_t{1} << size_class);
    return memory;
}

// Returns memory for a copy, registered with the contacts. `user`: 0 and 1 for collectives, others for transfers.
cuda::Address GpuEndpoint::staging(std::uint32_t user, std::uint64_t bytes, std::uint64_t contacts, const Wait& what,
                                   std::shared_ptr<Block>& block) {
    const DeviceMemory& memory = staging_memory(user, bytes);
    block = registry_->find_or_add(memory.address(), bytes);
    registry_->await(*block, contacts, what);
    if (!block->shareable) throw DriverError("cuIpcOpenMemHandle", "a peer cannot open the memory of this rank");
    return memory.address();
}

void GpuEndpoint::copy(cuda::Address to, cuda::Address from, std::uint64_t bytes, cuda::Stream stream) const {
    driver_.check(driver_.functions().memcpy_dtod_async(to, from, bytes, stream), "cuMemcpyDtoDAsync");
}

// The call has been announced, so the other ranks wait for this one.
void GpuEndpoint::report_driver(const DriverError& error) {
    endpoint_.fail(Fault::gpu, static_cast<int>(rank()),
                   FaultMessage("gpu_failed")
                       .with_value("rank", endpoint_.own_value())
                       .with("reason", error.result)
                       .with("operation", error.operation));
}

}  // namespace unisono::gpu
