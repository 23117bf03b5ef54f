// One rank's end of the connection between the GPUs of a communicator.
//
// A call is enqueued on a stream and returns. GpuEndpoint is implemented in six files of src/gpu: gpu_endpoint.cpp (the
// memory, the connection, plans), calls.cpp (what every call has to do before it is enqueued), launches.cpp (kernel
// mode), stream_operations.cpp (stream mode), transfers.cpp (send and recv) and service.cpp (the thread that opens the
// peers' memory and looks for faults).
//
// Kernel mode: one kernel runs the whole call and waits for the peers' flags. Stream mode: the stream waits, and
// kernels only move data. Python selects the mode.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "unisono/collective_queue.hpp"
#include "unisono/endpoint.hpp"
#include "unisono/gpu/board.hpp"
#include "unisono/gpu/device_memory.hpp"
#include "unisono/gpu/diagnosis.hpp"
#include "unisono/gpu/driver.hpp"
#include "unisono/gpu/layout.hpp"
#include "unisono/gpu/mappings.hpp"
#include "unisono/gpu/plan.hpp"
#include "unisono/gpu/programs.hpp"
#include "unisono/gpu/registry.hpp"
#include "unisono/gpu/residents.hpp"

namespace unisono::gpu {

// The primary context of a device, retained.
class DeviceContext {
  public:
    DeviceContext(std::shared_ptr<const Driver> driver, int ordinal);
    ~DeviceContext();
    DeviceContext(const DeviceContext&) = delete;
    DeviceContext& operator=(const DeviceContext&) = delete;
    const Driver& driver() const { return *driver_; }
    const cuda::Functions& functions() const { return driver_->functions(); }
    cuda::Context context() const { return context_; }
    CurrentContext enter() const { return {*driver_, context_}; }
    const int ordinal;

  private:
    std::shared_ptr<const Driver> driver_;
    cuda::Device device_ = 0;
    cuda::Context context_ = nullptr;
};

// A send or recv.
struct GpuTransfer {
    bool sending;
    std::uint32_t peer, tag;
    cuda::Address address;
    std::uint64_t count;
    DType dtype;
};

// Thrown for a call on a stream that a CUDA graph captures, if the graph could not repeat it.
struct CaptureRefused {
    bool transfer;  // send or recv; otherwise a collective in stream mode
};

class GpuEndpoint {
  public:
    struct Options {
        std::uint64_t board_offset = 0;
        int device = 0;
        std::uint32_t most = 16;   // ranks for which the kernels are compiled
        std::uint32_t blocks = 1;  // thread blocks of a call, at most
        std::uint64_t scratch_bytes = 0;
        bool kernel_mode = false;
    };
    // Throws DriverError and MemoryRefused.
    GpuEndpoint(std::shared_ptr<const Driver> driver, Endpoint& endpoint, CollectiveQueue& queue,
                const Options& options);
    ~GpuEndpoint();
    GpuEndpoint(const GpuEndpoint&) = delete;
    GpuEndpoint& operator=(const GpuEndpoint&) = delete;

    // The handle of this rank's memory; `connect` expects those of all ranks and opens them.
    std::string handles() const;
    void connect(const std::vector<std::string>& all);
    // Makes memory for copies. It waits for the other ranks, so each of them has to be connected.
    void prepare();
    int load(const std::string& key, const std::string& image, unsigned shared_bytes);
    bool is_loaded(const std::string& key) const { return kernels_.contains(key); }
    std::shared_ptr<GpuPlan> make_plan(PlanDescription description);

    struct Call {
        cuda::Address input, output;
        cuda::Stream stream;
        Nanoseconds timeout;
    };
    // Enqueues a call if that is possible without waiting; otherwise does nothing and returns false.
    bool run_at_once(GpuPlan& plan, const Call& call);
    // Enqueues a call. Throws Failure, ForeignMemory and CaptureRefused.
    void run(GpuPlan& plan, const Call& call);
    void transfer(const GpuTransfer& transfer, cuda::Stream stream, Nanoseconds timeout);
    // Throws Failure if the communicator is broken, or if a kernel has just reported a fault.
    void check_faults();

    bool is_capturing(cuda::Stream stream) const;  // whether a CUDA graph captures what is put into a stream

    // Waits until the calls that were enqueued are over; returns false if they are not after `timeout`. Throws Failure.
    bool synchronize(Nanoseconds timeout);

    std::uint64_t staged_buffers() const { return staged_.load(std::memory_order_relaxed); }
    bool closed() const { return closed_; }
    std::uint64_t registered() {
        const std::lock_guard lock(calls_);
        return registry_->registered();
    }
    const std::shared_ptr<DeviceContext>& device() const { return device_; }
    Endpoint& endpoint() { return endpoint_; }

    // Destroys a stream on which calls were made, but not before the end of this endpoint.
    void retire(cuda::Stream stream);

    // Waits until the calls of this rank are over, or the communicator is broken, and releases everything.
    void close();

    // diagnosis.cpp
    std::string describe();
    void end_kernels();
    std::string describe_wait() const;

  private:
    // For copies of each of the buffers of a collective, and for copies of all messages that this rank sends.
    static constexpr std::uint64_t prepared_staging_bytes = 32 << 20;
    static constexpr std::uint32_t sends = 2 + most_ranks;  // the user of the latter
    static constexpr std::uint32_t remembered = 2048;       // calls; more than a stream can hold
    static constexpr std::uint32_t remembered_transfers = 64;
    // The mapped memory: two mailboxes (collectives, transfers), the progress of transfers, a copy of a record.
    static constexpr std::uint64_t transfer_mailbox_at = 64, progress_at = 128, record_copy_at = 2048,
                                   mapped_bytes = 8192;

    struct Announced {
        Endpoint::NumberedCall call{};
        std::shared_ptr<GpuPlan> plan;
        Nanoseconds timeout{};
        std::array<std::uint32_t, most_ranks> received{};  // in stream mode: signals before this call
    };
    // The stream of the last call. An id is never used again, unlike a handle.
    struct Order {
        bool any = false;
        cuda::Stream stream = nullptr;
        unsigned long long id = 0;
        std::unique_ptr<GpuEventHandle> event;
    };
    struct Counters {
        std::uint32_t calls = 0, sent = 0, received = 0;  // with one peer
    };
    struct Progress {
        std::uint32_t started, completed;
    };
    struct Lane {  // the transfers with one peer in one direction
        Counters counters;
        Order order;
        std::uint32_t enqueued = 0;
        struct Message {
            std::uint32_t tag;
            std::uint64_t label;
            Nanoseconds timeout;
        } recent[remembered_transfers];
    };
    struct Watch {  // a call that was found running
        bool active = false;
        std::uint32_t number = 0;
        Clock::time_point since;
    };
    // The buffers of a call as its kernel sees them.
    struct Buffers {
        cuda::Address input, output;
        const Block *input_block, *output_block;  // nullptr: the buffer is empty, or no peer needs it
    };

    void check_open() const;
    std::string name() const;
    // calls.cpp
    void take_turn();
    void keep_order(Order& order, cuda::Stream stream, const std::function<bool()>& over);
    bool earlier_calls_are_over();
    std::uint64_t announce(GpuPlan& plan, Nanoseconds timeout, bool captured);
    void enqueue(GpuPlan& plan, const Buffers& buffers, const Call& call, bool captured);
    void run_staged(GpuPlan& plan, const Call& call, const Block* input, const Block* output, const Wait& what,
                    bool captured);
    cuda::Address staging(std::uint32_t user, std::uint64_t bytes, std::uint64_t contacts, const Wait& what,
                          std::shared_ptr<Block>& block);
    void copy(cuda::Address to, cuda::Address from, std::uint64_t bytes, cuda::Stream stream) const;
    DeviceMemory& staging_memory(std::uint32_t user, std::uint64_t bytes);
    void offer_copies(const GpuPlan& plan, const Call& call, const Block* input, const Block* output);
    void meet(std::uint64_t contacts, Wait what);
    [[noreturn]] void report_driver(const DriverError& error);
    // launches.cpp
    void fill(GpuPlan& plan, const Buffers& buffers) const;
    void launch(const Kernel& kernel, std::uint32_t blocks, LaunchParameter& parameter, cuda::Stream stream) const;
    LaunchParameter empty_parameter() const;
    // stream_operations.cpp
    void read_operations(GpuPlan& plan) const;
    void enqueue_operations(GpuPlan& plan, cuda::Stream stream);
    void write_32(cuda::Address address, std::uint32_t value);
    void write_64(cuda::Address address, std::uint64_t value);
    void wait_32(cuda::Address address, std::uint32_t value);
    void add(cuda::MemoryOperation::Kind kind, cuda::Address address, std::uint64_t value);
    void post(std::uint32_t peer, std::uint32_t record, std::uint64_t sequence, std::uint64_t input,
              std::uint64_t output, std::uint64_t fingerprint);
    void issue(cuda::Stream stream);
    // transfers.cpp
    std::uint32_t transfer_record(bool sending, std::uint32_t peer) const;
    Lane& lane(bool sending, std::uint32_t peer) { return lanes_[peer * 2 + (sending ? 0 : 1)]; }
    static std::uint64_t progress_offset(bool sending, std::uint32_t peer) {
        return progress_at + (peer * 2 + (sending ? 0 : 1)) * sizeof(Progress);
    }
    const Kernel& copying_kernel(DType dtype) const;
    bool transfers_run();
    cuda::Address transfer_program(std::uint32_t peer);
    [[noreturn]] void report_transfer_mismatch(std::uint32_t peer);
    // service.cpp
    void serve();
    void look();
    void report_mailbox();
    void check_collective();
    void check_transfers();
    std::vector<std::uint32_t> lost_ranks() const;
    void watch_for_deaths();
    void report_the_dead();
    void report_death();
    void set_abort_words(const std::vector<std::uint32_t>& lost);
    void abort(const std::vector<std::uint32_t>& lost);
    Announced running() const;
    std::vector<Endpoint::NumberedCall> unfinished_since(std::uint32_t number) const;
    bool has_work() const;
    Wait locate(const Announced& running, std::uint32_t suspect);
    const std::byte* copy_record(std::uint32_t record);

    std::uint32_t word(std::uint64_t offset) const {  // of the mapped memory
        return std::atomic_ref(*reinterpret_cast<std::uint32_t*>(mapped_->host() + offset))
            .load(std::memory_order_acquire);
    }
    // The calls that are over; in kernel mode, those that were when this was last refreshed.
    std::uint32_t completed() const {
        return options_.kernel_mode ? seen_completed_.load() : word(offsetof(Mailbox, completed));
    }
    std::uint32_t started() const {
        if (!options_.kernel_mode) return word(offsetof(Mailbox, started));
        const std::uint32_t over = completed();
        return over + (captured_ || over != enqueued_.load() ? 1 : 0);
    }
    void refresh_completed();  // the caller holds calls_
    std::uint32_t size() const { return endpoint_.settings.geometry.size; }
    std::uint32_t rank() const { return endpoint_.settings.rank; }
    cuda::Address state(std::uint32_t peer) const { return states_[peer]; }
    bool wait_until_idle();
    void end_threads();
    void leak();
    void release();

    std::shared_ptr<DeviceContext> device_;
    const Driver& driver_;
    Endpoint& endpoint_;
    CollectiveQueue& queue_;
    const Options options_;
    const StateLayout layout_;
    const std::uint64_t scratch_at_;
    std::unique_ptr<RegistrationBoard> board_;
    std::unique_ptr<PrivateStream> stream_;
    std::unique_ptr<MappedMemory> mapped_;
    std::unique_ptr<RegisteredPage> head_page_;  // of this rank on the board
    std::shared_ptr<ProgramMemory> programs_;
    DeviceMemory memory_;                // state and scratch
    std::vector<cuda::Address> states_;  // of all ranks, in this process; 0: not connected
    std::map<std::string, Kernel> kernels_;

    std::mutex calls_;  // guards what follows; held while a call is enqueued
    std::unique_ptr<Registry> registry_;
    std::map<std::pair<std::uint32_t, int>, DeviceMemory> staging_;  // by user and the logarithm of the size
    std::uint32_t large_calls_ = 0;
    Order order_;
    std::vector<Counters> counters_;  // in stream mode: of collectives, by peer
    std::vector<Lane> lanes_;
    std::vector<std::unique_ptr<ProgramMemory::Piece>> transfer_programs_;  // by peer
    std::vector<cuda::MemoryOperation> batch_;
    std::vector<std::shared_ptr<GpuPlan>> captured_plans_;  // CUDA graphs may use their programs until the end
    std::uint64_t plans_made_ = 0;

    mutable std::mutex announced_mutex_;  // guards the next two, and changes of the counters above
    std::vector<Announced> announced_;
    std::atomic<std::uint32_t> enqueued_ = 0;
    std::atomic<bool> captured_ = false;  // calls may run that were not announced
    std::atomic<std::uint64_t> staged_ = 0;

    std::unique_ptr<Mappings> mappings_;
    std::thread thread_, watcher_;
    std::atomic<bool> stopping_ = false;
    std::atomic<bool> asleep_ = false;  // the thread
    std::mutex looking_;
    Watch watch_;
    std::vector<Watch> lane_watches_;
    bool aborted_ = false;                           // the kernels were told to leave
    std::atomic<std::uint32_t> seen_completed_ = 0;  // in kernel mode
    std::unique_ptr<GpuEventHandle> mark_;           // behind the call `marked_`
    std::uint32_t marked_ = 0;
    std::vector<cuda::Stream> retired_streams_;  // they may be those of the last calls, so they exist until the end
    std::unique_ptr<GpuEventHandle> residence_;  // in kernel mode, for Residents
    std::atomic<int> dead_ = -1;                 // the first rank that was found dead
    std::vector<std::uint32_t> known_dead_;      // ranks whose kernels were told to leave
    std::atomic<bool> closed_ = false;
    std::unique_ptr<Described> described_;  // once it is connected
};

}  // namespace unisono::gpu
