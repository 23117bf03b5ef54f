#include "unisono/gpu/gpu_endpoint.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace unisono::gpu {

namespace {

// The driver shares memory in units of this size; smaller allocations would share the unit with others.
constexpr std::uint64_t least_shared_bytes = 2 << 20;
constexpr std::uint64_t scratch_alignment = 512;
// How long a rank that leaves a broken communicator waits for its kernels to notice.
constexpr auto longest_abort = std::chrono::seconds(5);

// What a rank tells the others when they connect.
struct SharedHandle {
    std::uint32_t magic = 0x47505531, most = 0, blocks = 0, kernel_mode = 0;
    cuda::IpcHandle handle{};
};

}  // namespace

DeviceContext::DeviceContext(std::shared_ptr<const Driver> driver, int ordinal)
    : ordinal(ordinal), driver_(std::move(driver)) {
    driver_->check(functions().device_get(&device_, ordinal), "cuDeviceGet");
    driver_->check(functions().device_primary_ctx_retain(&context_, device_), "cuDevicePrimaryCtxRetain");
}

DeviceContext::~DeviceContext() { functions().device_primary_ctx_release(device_); }

GpuEndpoint::GpuEndpoint(std::shared_ptr<const Driver> driver, Endpoint& endpoint, CollectiveQueue& queue,
                         const Options& options)
    : device_(std::make_shared<DeviceContext>(std::move(driver), options.device)), driver_(device_->driver()),
      endpoint_(endpoint), queue_(queue), options_(options), layout_(options.most),
      scratch_at_(rounded_up(layout_.bytes(options.blocks + 2), scratch_alignment)), states_(size(), 0),
      counters_(size()), lanes_(2 * std::size_t{size()}), transfer_programs_(size()), announced_(remembered),
      lane_watches_(lanes_.size()) {
    if (size() > options.most || options.most > most_ranks || options.blocks < 1)
        throw std::invalid_argument("impossible options of a GPU endpoint");
    const CurrentContext current = device_->enter();
    const CaptureAllowance allowance(driver_);
    board_ = std::make_unique<RegistrationBoard>(endpoint.settings.file, options.board_offset, size());
    stream_ = std::make_unique<PrivateStream>(driver_);
    mapped_ = std::make_unique<MappedMemory>(driver_, mapped_bytes);
    programs_ = std::make_shared<ProgramMemory>(driver_);
    memory_ = DeviceMemory(driver_, std::max(scratch_at_ + options.scratch_bytes, least_shared_bytes));
    const cuda::Functions& functions = driver_.functions();
    driver_.check(functions.memset_d32_async(memory_.address(), 0, scratch_at_ / 4, stream_->handle()),
                  "cuMemsetD32Async");
    head_page_ = std::make_unique<RegisteredPage>(driver_, &board_->head(rank()), page_bytes);
    const std::uint64_t abort_word = head_page_->address() + offsetof(BoardHead, abort);
    driver_.check(functions.memcpy_htod_async(memory_.address() + layout_.abort_in_host(), &abort_word,
                                              sizeof abort_word, stream_->handle()),
                  "cuMemcpyHtoDAsync");
    driver_.check(functions.stream_synchronize(stream_->handle()), "cuStreamSynchronize");
    states_[rank()] = memory_.address();
    registry_ = std::make_unique<Registry>(driver_, options.device, endpoint, *board_);
    mappings_ = std::make_unique<Mappings>(driver_, endpoint, *board_);
    if (options.kernel_mode) residence_ = std::make_unique<GpuEventHandle>(driver_);
    batch_.reserve(4 * std::size_t{size()} + 8);
}

GpuEndpoint::~GpuEndpoint() { close(); }

std::string GpuEndpoint::handles() const {
    const CurrentContext current = device_->enter();
    SharedHandle shared;
    shared.most = options_.most;
    shared.blocks = options_.blocks;
    shared.kernel_mode = options_.kernel_mode;
    driver_.check(driver_.functions().ipc_get_mem_handle(&shared.handle, memory_.address()), "cuIpcGetMemHandle");
    std::string bytes(sizeof shared, '\0');
    std::memcpy(bytes.data(), &shared, sizeof shared);
    return bytes;
}

void GpuEndpoint::connect(const std::vector<std::string>& all) {
    if (all.size() != size() || thread_.joinable())
        throw std::invalid_argument("expected the handles of all ranks, once");
    const CurrentContext current = device_->enter();
    const CaptureAllowance allowance(driver_);
    for (std::uint32_t peer = 0; peer < size(); ++peer) {
        SharedHandle shared;
        if (all[peer].size() != sizeof shared) throw std::invalid_argument("not a handle of a GPU endpoint");
        std::memcpy(&shared, all[peer].data(), sizeof shared);
        if (shared.magic != SharedHandle{}.magic || shared.most != options_.most || shared.blocks != options_.blocks ||
            shared.kernel_mode != options_.kernel_mode)
            throw std::invalid_argument("the ranks have different options for their GPU endpoints");
        if (peer == rank()) continue;
        driver_.check(driver_.functions().ipc_open_mem_handle(&states_[peer], shared.handle, cuda::lazy_peer_access),
                      "cuIpcOpenMemHandle");
    }
    if (size() > 1) watcher_ = endpoint_.start_thread([this] { watch_for_deaths(); });
    thread_ = endpoint_.start_thread([this] { serve(); });
    described_ = std::make_unique<Described>(*this);
}

int GpuEndpoint::load(const std::string& key, const std::string& image, unsigned shared_bytes) {
    const std::lock_guard lock(calls_);
    check_open();
    if (const auto known = kernels_.find(key); known != kernels_.end()) return known->second.blocks_per_multiprocessor;
    const CurrentContext current = device_->enter();
    const CaptureAllowance allowance(driver_);
    const cuda::Functions& functions = driver_.functions();
    Kernel kernel;
    kernel.shared_bytes = shared_bytes;
    driver_.check(functions.module_load_data(&kernel.module, image.c_str()), "cuModuleLoadData");
    try {
        driver_.check(functions.module_get_function(&kernel.function, kernel.module, "run_program"),
                      "cuModuleGetFunction");
        driver_.check(functions.func_set_attribute(kernel.function, cuda::FunctionAttribute::most_dynamic_shared_bytes,
                                                   static_cast<int>(shared_bytes)),
                      "cuFuncSetAttribute");
        driver_.check(functions.occupancy_max_active_blocks(&kernel.blocks_per_multiprocessor, kernel.function,
                                                            threads_per_block, shared_bytes),
                      "cuOccupancyMaxActiveBlocksPerMultiprocessor");
    } catch (...) {
        functions.module_unload(kernel.module);
        throw;
    }
    return kernels_.emplace(key, kernel).first->second.blocks_per_multiprocessor;
}

std::shared_ptr<GpuPlan> GpuEndpoint::make_plan(PlanDescription description) {
    const std::lock_guard lock(calls_);
    check_open();
    const auto kernel = kernels_.find(description.kernel);
    if (kernel == kernels_.end()) throw std::invalid_argument("the kernel '" + description.kernel + "' is not loaded");
    for (const auto* each : {&description.fingerprints, &description.bias_in, &description.bias_out})
        if (each->size() != size()) throw std::invalid_argument("expected a fingerprint and two offsets for each rank");
    if (description.blocks < 1 || description.blocks > options_.blocks)
        throw std::invalid_argument("a plan with " + std::to_string(description.blocks) +
                                    " thread blocks; expected 1 to " + std::to_string(options_.blocks));
    ProgramHead head{};
    if (description.program.size() < sizeof head) throw std::invalid_argument("a program without a head");
    std::memcpy(&head, description.program.data(), sizeof head);
    if (std::uint64_t{head.words} * 4 != description.program.size() ||
        head.words < sizeof head / 4 + 2 * std::uint64_t{size()} || (size() < 64 && head.contacts >> size() != 0))
        throw std::invalid_argument("the length or the contacts of a program contradict its head");
    auto plan = std::make_shared<GpuPlan>(options_.most);
    plan->kernel = &kernel->second;
    plan->contacts = head.contacts & ~(std::uint64_t{1} << rank());
    plan->number = ++plans_made_;
    plan->description = std::move(description);
    if (!options_.kernel_mode) read_operations(*plan);
    const CurrentContext current = device_->enter();
    const CaptureAllowance allowance(driver_);
    const std::string& program = plan->description.program;
    plan->program = programs_->place(program.data(), program.size(), stream_->handle());
    plan->parameter = empty_parameter();
    LaunchHead& launched = plan->parameter.head();
    launched.program = plan->program->address;
    launched.mode = options_.kernel_mode ? kernel_mode : stream_mode;
    launched.steps = options_.kernel_mode ? head.steps : 1;
    for (std::uint32_t peer = 0; peer < size(); ++peer)
        plan->parameter.peer(peer).fingerprint = plan->description.fingerprints[peer] & entry_mask;
    return plan;
}

void GpuEndpoint::check_open() const {
    if (closed_) throw std::invalid_argument("the GPU endpoint is closed");
}

void GpuEndpoint::check_faults() {
    check_open();
    if (endpoint_.broken()) throw Failure(endpoint_.fault_report());
    const std::lock_guard lock(looking_);
    report_death();
    report_mailbox();
    // A kernel has left because the communicator is broken, or a rank is dead; the report is on its way.
    for (int look = 0; word(offsetof(Mailbox, fault)) == Mailbox::aborted && look < 2000; ++look) {
        if (endpoint_.broken()) throw Failure(endpoint_.fault_report());
        report_death();
        ::usleep(500);
    }
}

// ---- the end ---------------------------------------------------------------------------------------------------

// Returns false if kernels run on although they should have left.
bool GpuEndpoint::wait_until_idle() {
    const auto event_is_over = [&](const Order& order) {
        return !order.event || driver_.functions().event_query(order.event->handle()) != cuda::Result::not_ready;
    };
    const auto is_over = [&] {
        refresh_completed();
        if (!captured_ && has_work()) return false;
        return event_is_over(order_) &&
               std::all_of(lanes_.begin(), lanes_.end(), [&](const Lane& lane) { return event_is_over(lane.order); });
    };
    // A call is over when its last thread block is; only an event tells that.
    const auto record = [&](Order& order) {
        if (!order.any || is_capturing(order.stream)) return;
        if (!order.event) order.event = std::make_unique<GpuEventHandle>(driver_);
        driver_.functions().event_record(order.event->handle(), order.stream);
    };
    record(order_);
    for (Lane& lane : lanes_) record(lane.order);
    Clock::time_point broken_since{};
    while (!is_over()) {
        endpoint_.check_interrupt();
        const Clock::time_point now = Clock::now();
        if (endpoint_.broken()) {
            if (broken_since == Clock::time_point{}) {
                broken_since = now;
                board_->wake(rank());
            }
            // After a fault the counters of calls stand still, so only the events count.
            if (event_is_over(order_) &&
                std::all_of(lanes_.begin(), lanes_.end(), [&](const Lane& lane) { return event_is_over(lane.order); }))
                return true;
            if (now - broken_since > longest_abort) return false;
        }
        ::usleep(500);
    }
    return true;
}

void GpuEndpoint::close() {
    if (closed_.exchange(true)) return;
    try {
        const std::lock_guard lock(calls_);
        const CurrentContext current = device_->enter();
        const CaptureAllowance allowance(driver_);
        const bool idle = !thread_.joinable() || wait_until_idle();
        end_threads();
        if (idle)
            release();
        else
            leak();
    } catch (const DriverError&) {  // the driver has gone, and with it everything
        end_threads();
    }
}

void GpuEndpoint::end_threads() {
    Residents::of_process().leave(this);
    stopping_ = true;
    board_->wake(rank());
    for (std::thread* const thread : {&thread_, &watcher_})
        if (thread->joinable()) thread->join();
}

// Keeps what a running kernel may access. To free it would wait for the kernel.
void GpuEndpoint::leak() {
    static_cast<void>(new DeviceMemory(std::move(memory_)));
    static_cast<void>(new auto(std::move(staging_)));
    static_cast<void>(new auto(std::move(announced_)));
    static_cast<void>(new auto(programs_));
    static_cast<void>(mapped_.release());
    static_cast<void>(head_page_.release());
    static_cast<void>(stream_.release());
}

void GpuEndpoint::retire(cuda::Stream stream) {
    const std::lock_guard lock(calls_);
    if (closed_)
        driver_.functions().stream_destroy(stream);
    else
        retired_streams_.push_back(stream);
}

void GpuEndpoint::release() {
    described_.reset();
    const cuda::Functions& functions = driver_.functions();
    for (const cuda::Stream stream : retired_streams_) functions.stream_destroy(stream);
    retired_streams_.clear();
    mark_.reset();
    residence_.reset();
    registry_->withdraw_all();
    mappings_->close_all();
    for (std::uint32_t peer = 0; peer < size(); ++peer)
        if (peer != rank() && states_[peer] != 0) functions.ipc_close_mem_handle(states_[peer]);
    order_.event.reset();
    for (Lane& lane : lanes_) lane.order.event.reset();
    {
        const std::lock_guard lock(announced_mutex_);
        announced_.clear();
    }
    captured_plans_.clear();
    transfer_programs_.clear();
    staging_.clear();
    programs_->release();
    memory_.release();
    for (const auto& [key, kernel] : kernels_) functions.module_unload(kernel.module);
    kernels_.clear();
    mapped_->release();
    head_page_->release();
    stream_->release();
}

}  // namespace unisono::gpu
