#include "gpu.hpp"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "endpoint.hpp"
#include "faults.hpp"
#include "names.hpp"
#include "unisono/gpu/diagnosis.hpp"
#include "unisono/gpu/gpu_endpoint.hpp"

namespace nb = nanobind;

namespace unisono::bindings {

namespace {

cuda::Stream stream_of(std::uint64_t handle) { return reinterpret_cast<cuda::Stream>(handle); }
std::string text_of(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

class PyGpuEndpoint : public GpuRunner {
  public:
    PyGpuEndpoint(std::shared_ptr<gpu::Driver> driver, nb::object endpoint, const gpu::GpuEndpoint::Options& options)
        : endpoint_object_(std::move(endpoint)), parts_(parts_of(endpoint_object_)) {
        check_process();
        guarded([&] {
            core_ = std::make_unique<gpu::GpuEndpoint>(std::move(driver), parts_.endpoint, parts_.queue, options);
        });
    }
    ~PyGpuEndpoint() override { close(); }
    PyGpuEndpoint(const PyGpuEndpoint&) = delete;
    PyGpuEndpoint& operator=(const PyGpuEndpoint&) = delete;

    nb::bytes handles() {
        const std::string made = core().handles();
        return nb::bytes(made.data(), made.size());
    }
    void connect(const std::vector<nb::bytes>& all) {
        std::vector<std::string> handles;
        for (const nb::bytes& each : all) handles.push_back(text_of(each));
        gpu::GpuEndpoint& used = core();
        guarded([&] { used.connect(handles); });
    }
    void prepare() {
        gpu::GpuEndpoint& used = core();
        guarded([&] { used.prepare(); });
    }
    int load(const std::string& key, const nb::bytes& image, unsigned shared_bytes) {
        gpu::GpuEndpoint& used = core();
        const std::string copy = text_of(image);
        int blocks = 0;
        guarded([&] { blocks = used.load(key, copy, shared_bytes); });
        return blocks;
    }
    std::shared_ptr<gpu::GpuPlan> make_plan(gpu::PlanDescription description) {
        gpu::GpuEndpoint& used = core();
        std::shared_ptr<gpu::GpuPlan> plan;
        guarded([&] { plan = used.make_plan(std::move(description)); });
        return plan;
    }
    // Keeps the interpreter's lock if the call can be enqueued without waiting.
    void run(gpu::GpuPlan& plan, std::uint64_t input, std::uint64_t output, std::uint64_t stream,
             double timeout_s) override {
        gpu::GpuEndpoint& used = core();
        const gpu::GpuEndpoint::Call call{input, output, stream_of(stream), nanoseconds(timeout_s)};
        try {
            if (used.run_at_once(plan, call)) return;
        } catch (const Failure& failure) {
            raise_fault_report(failure.report);
        }
        with_usage_errors([&] { used.run(plan, call); });
    }
    nb::object start(nb::handle self, gpu::GpuPlan& plan, std::uint64_t input, std::uint64_t output,
                     std::uint64_t after, std::uint64_t stream, double timeout_s) override;
    bool is_capturing(std::uint64_t stream) override { return core().is_capturing(stream_of(stream)); }
    void transfer(bool sending, std::uint32_t peer, std::uint32_t tag, std::uint64_t address, std::uint64_t nbytes,
                  const std::string& dtype, std::uint64_t stream, double timeout_s) {
        gpu::GpuEndpoint& used = core();
        const std::size_t type = index_of(dtype, dtype_names, "dtype");
        if (nbytes % dtype_bytes[type] != 0) throw nb::value_error("not a whole number of elements");
        const gpu::GpuTransfer made{sending, peer, tag, address, nbytes / dtype_bytes[type], static_cast<DType>(type)};
        with_usage_errors([&] { used.transfer(made, stream_of(stream), nanoseconds(timeout_s)); });
    }
    bool is_loaded(const std::string& key) { return core().is_loaded(key); }
    std::uint64_t staged_buffers() override { return core().staged_buffers(); }
    bool synchronize(double timeout_s) {
        gpu::GpuEndpoint& used = core();
        bool over = false;
        guarded([&] { over = used.synchronize(nanoseconds(timeout_s)); });
        return over;
    }
    std::uint64_t registered() {
        gpu::GpuEndpoint& used = core();
        std::uint64_t count = 0;
        guarded([&] { count = used.registered(); });
        return count;
    }
    void close() {
        if (parts_.abandoned) return abandon();
        if (!core_ || core_->closed()) return;
        unused_events_.clear();
        const CalledFromPython here;
        const nb::gil_scoped_release released;
        core_->close();
    }
    // Called in a forked child, which has neither the thread nor the device.
    void abandon() {
        for (std::unique_ptr<gpu::GpuEventHandle>& event : unused_events_) static_cast<void>(event.release());
        static_cast<void>(core_.release());
    }

    // The endpoint; raises UsageError in a forked child.
    gpu::GpuEndpoint& core() {
        check_process();
        if (!core_) throw nb::value_error("the GPU endpoint was abandoned");
        return *core_;
    }
    bool abandoned() const { return parts_.abandoned || !core_; }

    // Events that were used and can be recorded anew: to make one takes longer than to record it.
    std::unique_ptr<gpu::GpuEventHandle> take_event() {
        if (unused_events_.empty()) return std::make_unique<gpu::GpuEventHandle>(core().device()->driver());
        std::unique_ptr<gpu::GpuEventHandle> event = std::move(unused_events_.back());
        unused_events_.pop_back();
        return event;
    }
    void give_back(std::unique_ptr<gpu::GpuEventHandle> event) {
        if (!core_->closed() && unused_events_.size() < most_unused_events) unused_events_.push_back(std::move(event));
    }

  private:
    static constexpr std::size_t most_unused_events = 256;
    void check_process() const {
        if (parts_.abandoned) [[unlikely]]
            raise_forked(parts_.endpoint.own_value(),
                         parts_.endpoint.settings.processes[parts_.endpoint.settings.rank]);
    }
    template <typename Action>
    static void with_usage_errors(Action action) {
        try {
            guarded(action);
        } catch (const gpu::ForeignMemory& foreign) {
            raise_foreign_memory(foreign.address, foreign.device);
        } catch (const gpu::CaptureRefused& refused) {
            raise_capture_refused(refused.transfer);
        }
    }

    const nb::object endpoint_object_;  // keeps the endpoint alive
    const EndpointParts parts_;
    std::unique_ptr<gpu::GpuEndpoint> core_;
    std::vector<std::unique_ptr<gpu::GpuEventHandle>> unused_events_;
};

// A point in a stream.
class PyGpuEvent {
  public:
    PyGpuEvent(nb::object owner, std::uint64_t stream)
        : owner_(std::move(owner)), endpoint_(nb::cast<PyGpuEndpoint&>(owner_)), device_(endpoint_.core().device()) {
        const gpu::CurrentContext current = device_->enter();
        event_ = endpoint_.take_event();
        device_->driver().check(device_->functions().event_record(event_->handle(), stream_of(stream)),
                                "cuEventRecord");
    }
    ~PyGpuEvent() {
        if (endpoint_.abandoned())
            static_cast<void>(event_.release());
        else
            endpoint_.give_back(std::move(event_));
    }
    PyGpuEvent(const PyGpuEvent&) = delete;
    PyGpuEvent& operator=(const PyGpuEvent&) = delete;

    void wait(std::uint64_t stream) {
        endpoint_.core();
        const gpu::CurrentContext current = device_->enter();
        device_->driver().check(device_->functions().stream_wait_event(stream_of(stream), event_->handle(), 0),
                                "cuStreamWaitEvent");
    }
    // Returns whether the stream has passed this point.
    bool passed() {
        endpoint_.core();
        return is_over();
    }
    // The same; raises the fault, if a call before it has failed.
    bool done() {
        gpu::GpuEndpoint& core = endpoint_.core();
        const bool over = is_over();
        if (!core.closed()) guarded([&] { core.check_faults(); });
        return over;
    }
    bool synchronize(double timeout_s) {
        gpu::GpuEndpoint& core = endpoint_.core();
        bool over = false;
        guarded([&] {
            const Clock::time_point began = Clock::now(), ends = began + nanoseconds(timeout_s);
            Clock::time_point next_check = began + std::chrono::milliseconds(20);
            for (;;) {
                over = is_over();
                if (over) break;
                const Clock::time_point now = Clock::now();
                if (now >= ends) break;
                if (now >= next_check) {
                    if (core.endpoint().check_interrupt()) throw Failure(core.endpoint().fault_report());
                    if (!core.closed()) core.check_faults();
                    next_check = now + std::chrono::milliseconds(20);
                }
                if (now - began < std::chrono::microseconds(100))
                    pause_core();
                else
                    ::usleep(now - began < std::chrono::milliseconds(10) ? 20 : 200);
            }
            if (over && !core.closed()) core.check_faults();
        });
        return over;
    }

  private:
    bool is_over() const {
        const gpu::CurrentContext current = device_->enter();
        const cuda::Result result = device_->functions().event_query(event_->handle());
        if (result == cuda::Result::not_ready) return false;
        device_->driver().check(result, "cuEventQuery");
        return true;
    }

    const nb::object owner_;
    PyGpuEndpoint& endpoint_;
    std::shared_ptr<gpu::DeviceContext> device_;
    std::unique_ptr<gpu::GpuEventHandle> event_;
};

nb::object PyGpuEndpoint::start(nb::handle self, gpu::GpuPlan& plan, std::uint64_t input, std::uint64_t output,
                                std::uint64_t after, std::uint64_t stream, double timeout_s) {
    PyGpuEvent(nb::borrow(self), after).wait(stream);
    run(plan, input, output, stream, timeout_s);
    return nb::cast(std::make_unique<PyGpuEvent>(nb::borrow(self), stream));
}

// A stream for asynchronous calls. Its priority is not that of the engine's private stream, with which it must not
// share a hardware queue. Those of messages have one more than the streams of programs, too: a stream that waits for a
// message holds up all streams in its queue, and with them the kernel for which the sender may be waiting.
class PyGpuStream {
  public:
    PyGpuStream(nb::object owner, bool for_messages)
        : owner_(std::move(owner)), endpoint_(nb::cast<PyGpuEndpoint&>(owner_)), device_(endpoint_.core().device()) {
        const gpu::CurrentContext current = device_->enter();
        int least = 0, greatest = 0;
        device_->driver().check(device_->functions().ctx_get_stream_priority_range(&least, &greatest),
                                "cuCtxGetStreamPriorityRange");
        const int priority = for_messages && greatest < -1 ? -1 : 0;
        device_->driver().check(
            device_->functions().stream_create_with_priority(&stream_, cuda::stream_non_blocking, priority),
            "cuStreamCreate");
    }
    ~PyGpuStream() {
        if (!endpoint_.abandoned()) endpoint_.core().retire(stream_);
    }
    PyGpuStream(const PyGpuStream&) = delete;
    PyGpuStream& operator=(const PyGpuStream&) = delete;
    std::uint64_t handle() const { return reinterpret_cast<std::uint64_t>(stream_); }

  private:
    const nb::object owner_;
    PyGpuEndpoint& endpoint_;
    std::shared_ptr<gpu::DeviceContext> device_;
    cuda::Stream stream_ = nullptr;
};

// Returns the device on which an address lies; -1 if it is on none.
int device_of(const gpu::Driver& driver, std::uint64_t address) {
    int ordinal = -1;
    const cuda::Result result =
        driver.functions().pointer_get_attribute(&ordinal, cuda::PointerAttribute::device, address);
    return result == cuda::Result::success ? ordinal : -1;
}

nb::list devices_of(const gpu::Driver& driver) {
    nb::list list;
    for (const gpu::DeviceInfo& info : driver.devices()) {
        nb::dict device;
        device["ordinal"] = info.ordinal;
        device["name"] = info.name;
        device["uuid"] = info.uuid;
        device["multiprocessors"] = info.multiprocessors;
        device["major"] = info.major;
        device["minor"] = info.minor;
        device["memory_bytes"] = info.memory_bytes;
        device["mps"] = info.mps;
        nb::list peers;
        for (const bool peer : info.peers) peers.append(peer);
        device["peers"] = peers;
        list.append(device);
    }
    return list;
}

}  // namespace

GpuRunner& gpu_runner(nb::handle endpoint) { return nb::cast<PyGpuEndpoint&>(endpoint); }

void bind_gpu(nb::module_& module) {
    nb::exception<gpu::Unavailable>(module, "GpuUnavailable");
    nb::exception<gpu::DriverError>(module, "GpuError");
    nb::class_<gpu::Driver>(module, "GpuDriver", "The CUDA driver.")
        .def(nb::init<const std::string&>(), nb::arg("path"))
        .def_prop_ro("version", &gpu::Driver::version)
        .def("devices", &devices_of)
        .def("device_of", &device_of, nb::arg("address"));
    nb::class_<gpu::GpuPlan>(module, "GpuPlan", "A call on GPUs, prepared once.")
        .def_prop_ro("text", [](const gpu::GpuPlan& self) { return self.description.text; })
        .def_ro("number", &gpu::GpuPlan::number);
    nb::class_<PyGpuEvent>(module, "GpuEvent", "A point in a stream.")
        .def("wait", &PyGpuEvent::wait, nb::arg("stream"))
        .def("passed", &PyGpuEvent::passed)
        .def("done", &PyGpuEvent::done)
        .def("synchronize", &PyGpuEvent::synchronize, nb::arg("timeout_s"));
    nb::class_<PyGpuEndpoint>(module, "GpuEndpoint", "One rank's end of the connection between GPUs.")
        .def(
            "__init__",
            [](PyGpuEndpoint* self, std::shared_ptr<gpu::Driver> driver, nb::object endpoint,
               std::uint64_t board_offset, int device, std::uint32_t most, std::uint32_t blocks,
               std::uint64_t scratch_bytes, bool kernel_mode) {
                const gpu::GpuEndpoint::Options options{board_offset, device, most, blocks, scratch_bytes, kernel_mode};
                const EndpointParts parts = parts_of(endpoint);
                try {
                    new (self) PyGpuEndpoint(std::move(driver), std::move(endpoint), options);
                } catch (const MemoryRefused& refused) {
                    raise_memory_refused(refused, parts.endpoint.names, parts.endpoint.settings.rank);
                }
            },
            nb::arg("driver"), nb::arg("endpoint"), nb::arg("board_offset"), nb::arg("device"), nb::arg("most"),
            nb::arg("blocks"), nb::arg("scratch_bytes"), nb::arg("kernel_mode"))
        .def("handles", &PyGpuEndpoint::handles)
        .def("connect", &PyGpuEndpoint::connect, nb::arg("all_handles"))
        .def("prepare", &PyGpuEndpoint::prepare)
        .def("load", &PyGpuEndpoint::load, nb::arg("key"), nb::arg("image"), nb::arg("shared_bytes"))
        .def("loaded", &PyGpuEndpoint::is_loaded, nb::arg("key"))
        .def(
            "make_plan",
            [](PyGpuEndpoint& self, std::string kernel, const nb::bytes& program, const nb::bytes& stream_ops,
               std::uint32_t blocks, std::uint64_t fingerprint, std::vector<std::uint64_t> fingerprints,
               const std::vector<std::int64_t>& bias_in, const std::vector<std::int64_t>& bias_out,
               std::uint64_t input_bytes, std::uint64_t output_bytes, std::string text, std::uint64_t largest_bytes) {
                gpu::PlanDescription made;
                made.kernel = std::move(kernel);
                made.program = text_of(program);
                made.stream_ops = text_of(stream_ops);
                made.blocks = blocks;
                made.fingerprint = fingerprint;
                made.fingerprints = std::move(fingerprints);
                made.bias_in.assign(bias_in.begin(), bias_in.end());
                made.bias_out.assign(bias_out.begin(), bias_out.end());
                made.input_bytes = input_bytes;
                made.output_bytes = output_bytes;
                made.text = std::move(text);
                made.largest_bytes = largest_bytes;
                return self.make_plan(std::move(made));
            },
            nb::arg("kernel"), nb::arg("program"), nb::arg("stream_ops"), nb::arg("blocks"), nb::arg("fingerprint"),
            nb::arg("fingerprints"), nb::arg("bias_in"), nb::arg("bias_out"), nb::arg("input_bytes"),
            nb::arg("output_bytes"), nb::arg("text"), nb::arg("largest_bytes"))
        .def("run", &PyGpuEndpoint::run, nb::arg("plan"), nb::arg("input"), nb::arg("output"), nb::arg("stream"),
             nb::arg("timeout_s"))
        .def("transfer", &PyGpuEndpoint::transfer, nb::arg("sending"), nb::arg("peer"), nb::arg("tag"),
             nb::arg("address"), nb::arg("nbytes"), nb::arg("dtype"), nb::arg("stream"), nb::arg("timeout_s"))
        .def(
            "record",
            [](nb::object self, std::uint64_t stream) { return std::make_unique<PyGpuEvent>(std::move(self), stream); },
            nb::arg("stream"))
        .def("synchronize", &PyGpuEndpoint::synchronize, nb::arg("timeout_s"))
        .def("staged_buffers", &PyGpuEndpoint::staged_buffers)
        .def("registered", &PyGpuEndpoint::registered)
        .def("close", &PyGpuEndpoint::close)
        .def("abandon", &PyGpuEndpoint::abandon);
    nb::class_<PyGpuStream>(module, "GpuStream", "A stream of the communicator, for asynchronous calls.")
        .def(nb::init<nb::object, bool>(), nb::arg("endpoint"), nb::arg("for_messages"))
        .def_prop_ro("handle", &PyGpuStream::handle);
    bind_gpu_fast_path(module);
    module.def("gpu_board_bytes", &gpu::RegistrationBoard::bytes, nb::arg("size"),
               "Return the bytes of shared memory of the registration board.");
    module.def("describe_gpu_calls_on_signal", &gpu::describe_on_signal, nb::arg("signal"), nb::arg("path"),
               "Write what the GPU calls of this process wait for to a file each time a signal arrives.");
}

}  // namespace unisono::bindings
