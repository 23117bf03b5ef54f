// The endpoint of a communicator, bound to Python.
#include "endpoint.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <unistd.h>

#include <cmath>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "courier.hpp"
#include "fast_path.hpp"
#include "faults.hpp"
#include "names.hpp"
#include "plans.hpp"
#include "unisono/collective_queue.hpp"
#include "unisono/transfer_queue.hpp"

namespace nb = nanobind;

namespace unisono::bindings {

namespace {

// Python waits for a Completion in slices, and checks for Ctrl-C in between.
constexpr auto slice = std::chrono::milliseconds(50);

// An open file with shared ownership: an endpoint may outlive the Python objects around it, and the descriptor must not be
// reused for another file meanwhile.
class File {
  public:
    explicit File(int descriptor) : descriptor(descriptor) {}
    ~File() { ::close(descriptor); }
    File(const File&) = delete;
    File& operator=(const File&) = delete;

    const int descriptor;
};

// What an endpoint uses until it is destroyed.
struct Files {
    std::shared_ptr<File> memory;
    std::shared_ptr<File> fault_log;     // or nullptr
    std::shared_ptr<PyCourier> courier;  // or nullptr
};

Settings settings_from(const Files& files, std::uint64_t offset, std::uint32_t rank, std::uint32_t size,
                       std::uint32_t depth, std::uint64_t staging_bytes, std::uint64_t transfer_bytes,
                       std::uint32_t tracks, const std::vector<int>& processes, double spin_s, double yield_s, double background_spin_s) {
    Settings settings;
    settings.file = files.memory->descriptor;
    settings.fault_log = files.fault_log ? files.fault_log->descriptor : -1;
    settings.offset = offset;
    settings.geometry = {size, depth, staging_bytes, transfer_bytes, tracks};
    settings.rank = rank;
    settings.processes = processes;
    settings.wait_policy = {nanoseconds(spin_s), nanoseconds(yield_s), nanoseconds(background_spin_s)};
    return settings;
}

class PyEndpoint : public FastPath {
  public:
    PyEndpoint(Files files, const Settings& settings)
        : files_(std::move(files)), endpoint_(settings), executor_(endpoint_),
          collectives_(std::make_unique<CollectiveQueue>(executor_)),
          transfer_queue_(std::make_unique<TransferQueue>(endpoint_)) {
        endpoint_.interrupted = look_for_signals;
    }
    // The threads need the interpreter's lock to release Python objects, so it must not be held while waiting for them.
    ~PyEndpoint() override { close(); }

    double default_timeout_s() const override { return timeout_s; }
    nb::object repeat(nb::handle self, const OutsideCall& call, double timeout_s, bool async_op) override {
        check_process();
        RepeatedCall<Plan> found = known_.find(call, endpoint_.settings.rank);
        if (found.plan == nullptr) return {};
        CollectiveQueue::Call made{std::move(found.plan), found.input, found.output,
                                   nanoseconds(timeout_s < 0 ? this->timeout_s : timeout_s)};
        if (!async_op) {
            guarded([&] { collectives_->run(made); });
            return nb::none();
        }
        raise_if_broken();
        made.kept = kept(nb::make_tuple(call.output.is_valid() ? call.output : nb::handle(Py_None),
                                        call.input.is_valid() ? call.input : nb::handle(Py_None)));
        return work_type(self, begin(made), made.plan);
    }
    void remember(std::shared_ptr<Plan> plan, std::uint64_t collective, nb::handle output, nb::handle input,
                  nb::handle op, std::uint64_t root, nb::handle algorithm, nb::handle codec, bool part_is_input) {
        known_.remember(std::move(plan), outside_call(collective, output, input, op, root, algorithm, codec),
                        part_is_input);
    }
    void forget_plan(const std::shared_ptr<Plan>& plan) { known_.forget(plan); }
    void forget() { known_.clear(); }

    void run(std::shared_ptr<Plan> plan, std::uint64_t input, std::uint64_t output, double timeout_s) {
        check_process();
        guarded([&] { collectives_->run(call(std::move(plan), input, output, timeout_s)); });
    }
    std::shared_ptr<Completion> start(std::shared_ptr<Plan> plan, std::uint64_t input, std::uint64_t output,
                                      double timeout_s, nb::object keeps) {
        check_process();
        CollectiveQueue::Call made = call(std::move(plan), input, output, timeout_s);
        made.kept = kept(std::move(keeps));
        return begin(made);
    }
    // Returns the other rank.
    std::uint32_t transfer(bool sending, std::int64_t peer, std::uint32_t tag, std::uint64_t data, std::uint64_t count,
                           const std::string& dtype, double timeout_s) {
        check_process();
        const Transfer made = make_transfer(sending, peer, tag, data, count, dtype);
        std::uint32_t source = 0;
        guarded([&] { source = transfer_queue_->run(made, nanoseconds(timeout_s)); });
        return source;
    }
    std::shared_ptr<Completion> start_transfer(bool sending, std::int64_t peer, std::uint32_t tag, std::uint64_t data,
                                               std::uint64_t count, const std::string& dtype, double timeout_s,
                                               nb::object keeps) {
        check_process();
        const Transfer made = make_transfer(sending, peer, tag, data, count, dtype);
        Kept held = kept(std::move(keeps));
        std::shared_ptr<Completion> completion;
        // Without the interpreter's lock, because an unexpected message is copied at once and may be long.
        guarded([&] { completion = transfer_queue_->start(made, nanoseconds(timeout_s), std::move(held)); });
        return completion;
    }
    // Returns whether an asynchronous call is over. A forked child may ask only about calls that were over before the fork.
    bool is_done(const std::shared_ptr<Completion>& completion) const {
        if (completion->done()) return true;
        check_process();
        return false;
    }
    // Waits for an asynchronous call; returns false if it is still running.
    bool wait(const std::shared_ptr<Completion>& completion, double timeout_s) {
        if (is_done(completion)) return true;
        const Clock::time_point deadline = Clock::now() + nanoseconds(timeout_s);
        for (;;) {
            {
                const nb::gil_scoped_release released;
                if (completion->wait_until(std::min(deadline, Clock::now() + slice))) break;
            }
            if (PyErr_CheckSignals() != 0) throw nb::python_error();
            if (Clock::now() >= deadline) return false;
        }
        return true;
    }

    void close() {
        if (abandoned_) return;
        const nb::gil_scoped_release released;
        collectives_->stop();
        transfer_queue_->stop();
        endpoint_.close();
    }
    // Called in a forked child, where neither the shared memory nor the threads exist. The queues are leaked: their
    // destructors would wait for threads and locks that no longer exist.
    void abandon() {
        abandoned_ = true;
        known_.clear();
        static_cast<void>(collectives_.release());
        static_cast<void>(transfer_queue_.release());
        endpoint_.abandon();
    }
    // Raises UsageError in a forked child.
    void check_process() const {
        if (abandoned_) [[unlikely]]
            raise_forked(endpoint_.own_value(), endpoint_.settings.processes[endpoint_.settings.rank]);
    }
    void abort(const std::string& reason) {
        check_process();
        endpoint_.break_with(Fault::aborted, static_cast<int>(endpoint_.settings.rank),
                             FaultMessage("aborted").with_value("rank", endpoint_.own_value()).with("reason", reason));
    }
    void name_ranks(const std::vector<std::uint32_t>& job_ranks) { endpoint_.names = RankNames(job_ranks); }
    nb::object note() const { return group_note(endpoint_.names.group()); }
    void raise_if_broken() {
        check_process();
        if (endpoint_.broken()) raise_fault_report(endpoint_.fault_report());
    }
    bool broken() const {
        check_process();
        return endpoint_.broken();
    }
    EndpointParts parts() { return {endpoint_, *collectives_, abandoned_}; }
    std::uint64_t reserve_space(std::uint64_t bytes) {
        check_process();
        return endpoint_.reserve_space(bytes);
    }
    void break_to_shrink() {
        check_process();
        endpoint_.break_to_shrink();
    }
    // Returns the members and the offset of the communicator of the survivors. Calls that were started fail first, and
    // no thread uses their arrays afterwards.
    std::pair<std::vector<std::uint32_t>, std::uint64_t> agree_on_survivors(PyEndpoint& first, double timeout_s) {
        check_process();
        std::optional<Survivors> found;
        guarded([&] {
            endpoint_.break_to_shrink();
            collectives_->stop();
            transfer_queue_->stop();
            found = endpoint_.agree_on_survivors(first.endpoint_, nanoseconds(timeout_s));
        });
        if (!found) throw std::logic_error("the agreement was interrupted without an exception");
        return {found->members, found->offset};
    }
    bool settle_growth(std::uint64_t attempt, bool success) {
        check_process();
        return endpoint_.settle_growth(attempt, success);
    }
    void meet(double timeout_s) {
        check_process();
        guarded([&] { endpoint_.meet(nanoseconds(timeout_s)); });
    }
    std::uint64_t memory_in_use() const { return endpoint_.memory_in_use(); }
    std::uint64_t sent_bytes() const { return endpoint_.traffic.bytes(); }
    std::uint64_t sent_far_bytes() const { return endpoint_.sent_far_bytes(); }
    void limit_rate(double bytes_per_s) {
        check_process();
        endpoint_.traffic.limit(bytes_per_s);
    }
    std::shared_ptr<EventLog> start_event_log(std::size_t capacity) {
        check_process();
        return endpoint_.event_logs.start(capacity);
    }
    void stop_event_log(const std::shared_ptr<EventLog>& log) {
        check_process();
        endpoint_.event_logs.stop(log);
    }

    double timeout_s = 0;  // set by Python
    nb::object work_type;  // the Python class of the handles of asynchronous calls

  private:
    std::shared_ptr<Completion> begin(CollectiveQueue::Call& made) {
        try {
            return collectives_->start(made);
        } catch (const Failure& failure) {  // no thread
            raise_fault_report(failure.report);
        }
    }
    static CollectiveQueue::Call call(std::shared_ptr<Plan> plan, std::uint64_t input, std::uint64_t output,
                                      double timeout_s) {
        return {std::move(plan), reinterpret_cast<const void*>(input), reinterpret_cast<void*>(output),
                nanoseconds(timeout_s)};
    }
    // A negative peer means any rank.
    static Transfer make_transfer(bool sending, std::int64_t peer, std::uint32_t tag, std::uint64_t data,
                                  std::uint64_t count, const std::string& dtype) {
        const std::size_t type = index_of(dtype, dtype_names, "dtype");
        return {sending, peer < 0 ? any_rank : static_cast<std::uint32_t>(peer), reinterpret_cast<std::byte*>(data),
                count * dtype_bytes[type], transfer_label(static_cast<DType>(type), count), tag};
    }
    // Wraps a Python object so that any thread may release it.
    static Kept kept(nb::object object) {
        return {object.release().ptr(), [](void* held) {
                    const nb::gil_scoped_acquire locked;
                    Py_DECREF(static_cast<PyObject*>(held));
                }};
    }
    const Files files_;  // declared first, because the endpoint uses them until it is destroyed
    Endpoint endpoint_;
    Executor executor_;
    std::unique_ptr<CollectiveQueue> collectives_;
    std::unique_ptr<TransferQueue> transfer_queue_;
    KnownPlans<Plan> known_{cpu_device};
    bool abandoned_ = false;
};

// Returns the events as they are in memory (event_log.hpp), and the number of dropped ones.
std::pair<nb::bytes, std::uint64_t> as_bytes(const EventBuffer::Reading& reading) {
    return {nb::bytes(reading.events.data(), reading.events.size() * sizeof(Event)), reading.dropped};
}

}  // namespace

EndpointParts parts_of(nb::handle endpoint) { return nb::cast<PyEndpoint&>(endpoint).parts(); }

void bind_endpoint(nb::module_& module) {
    nb::class_<File>(module, "File", "An open file that is closed with its last user.")
        .def(nb::init<int>(), nb::arg("descriptor"))
        .def_ro("descriptor", &File::descriptor);
    nb::class_<EventLog>(module, "EventLog", "The events of an endpoint, with times.")
        .def("collectives", [](const EventLog& self) { return as_bytes(self.read_collectives()); })
        .def("transfers", [](EventLog& self) { return as_bytes(self.read_transfers()); });
    nb::class_<Completion>(module, "Completion", "The state of an asynchronous call.")
        .def("done", &Completion::done)
        .def("failed", [](const Completion& self) { return self.fault_report().fault != Fault::none; })
        .def("source", &Completion::source)
        .def("raise_fault", [](const Completion& self) {
            const FaultReport report = self.fault_report();
            if (report.fault != Fault::none) raise_fault_report(report);
        });
    nb::class_<PyEndpoint>(module, "Endpoint", "One rank's end of a communicator.")
        .def("__init__",
             [](PyEndpoint* self, const std::shared_ptr<File>& file, std::uint64_t offset, std::uint32_t rank,
                std::uint32_t size, std::uint32_t depth, std::uint64_t staging_bytes, std::uint64_t transfer_bytes,
                std::uint32_t tracks, const std::vector<int>& processes, double spin_s, double yield_s, double background_spin_s,
                const std::vector<std::uint32_t>& job_ranks, const std::shared_ptr<File>& fault_log,
                const std::shared_ptr<PyCourier>& courier, std::uint64_t number, const std::vector<bool>& far,
                const std::vector<std::uint32_t>& courier_ranks, const std::vector<std::uint32_t>& first_ranks) {
                 try {
                     const Files files{file, fault_log, courier};
                     Settings settings = settings_from(files, offset, rank, size, depth, staging_bytes, transfer_bytes,
                                                       tracks, processes, spin_s, yield_s, background_spin_s);
                     settings.first_ranks = first_ranks;
                     if (courier) {
                         settings.courier = courier->far_side();
                         if (settings.courier == nullptr) throw nb::value_error("the courier does not know its peers");
                         settings.number = number;
                         settings.far = far;
                         settings.courier_ranks = courier_ranks;
                     }
                     new (self) PyEndpoint(files, settings);
                     self->name_ranks(job_ranks);
                 } catch (const MemoryRefused& refused) {
                     raise_memory_refused(refused, RankNames(job_ranks), rank);
                 }
             },
             nb::arg("file"), nb::arg("offset"), nb::arg("rank"), nb::arg("size"), nb::arg("depth"),
             nb::arg("staging_bytes"), nb::arg("transfer_bytes"), nb::arg("tracks"), nb::arg("processes"), nb::arg("spin_s"), nb::arg("yield_s"),
             nb::arg("background_spin_s"), nb::arg("job_ranks"), nb::arg("fault_log").none(),
             nb::arg("courier").none(), nb::arg("number"), nb::arg("far"), nb::arg("courier_ranks"),
             nb::arg("first_ranks"))
        .def("fast_call", [](nb::object self, std::uint64_t collective, int arrays, nb::object default_op,
                             nb::object method, nb::object gpu) {
            return make_fast_call(self, nb::cast<PyEndpoint&>(self), collective, arrays, default_op, method, gpu);
        }, nb::arg("collective"), nb::arg("arrays"), nb::arg("default_op").none(), nb::arg("method"), nb::arg("gpu"))
        .def("repeat", [](nb::handle self, std::uint64_t collective, nb::handle output, nb::handle input, nb::handle op,
                          std::uint64_t root, nb::handle algorithm, nb::handle codec, double timeout_s, bool async_op) {
            const nb::object result = nb::cast<PyEndpoint&>(self).repeat(
                self, outside_call(collective, output, input, op, root, algorithm, codec), timeout_s, async_op);
            return !result.is_valid() ? nb::borrow(Py_False) : result.is_none() ? nb::borrow(Py_True) : result;
        }, nb::arg("collective"), nb::arg("output").none(), nb::arg("source").none(), nb::arg("op").none(),
             nb::arg("root"), nb::arg("algorithm").none(), nb::arg("codec").none(), nb::arg("timeout_s"),
             nb::arg("async_op"))
        .def("remember", &PyEndpoint::remember, nb::arg("plan"), nb::arg("collective"), nb::arg("output").none(),
             nb::arg("source").none(), nb::arg("op").none(), nb::arg("root"), nb::arg("algorithm").none(),
             nb::arg("codec").none(), nb::arg("part_is_input"))
        .def("forget_plan", &PyEndpoint::forget_plan, nb::arg("plan"))
        .def("forget", &PyEndpoint::forget)
        .def("run", &PyEndpoint::run, nb::arg("plan"), nb::arg("source"), nb::arg("output"), nb::arg("timeout_s"))
        .def("start", &PyEndpoint::start, nb::arg("plan"), nb::arg("source"), nb::arg("output"), nb::arg("timeout_s"),
             nb::arg("keeps").none())
        .def("transfer", &PyEndpoint::transfer, nb::arg("sending"), nb::arg("peer"), nb::arg("tag"), nb::arg("data"),
             nb::arg("count"), nb::arg("dtype"), nb::arg("timeout_s"))
        .def("start_transfer", &PyEndpoint::start_transfer, nb::arg("sending"), nb::arg("peer"), nb::arg("tag"),
             nb::arg("data"), nb::arg("count"), nb::arg("dtype"), nb::arg("timeout_s"), nb::arg("keeps").none())
        .def("is_done", &PyEndpoint::is_done, nb::arg("completion"))
        .def("wait", &PyEndpoint::wait, nb::arg("completion"), nb::arg("timeout_s"))
        .def("close", &PyEndpoint::close)
        .def("abandon", &PyEndpoint::abandon)
        .def("check_process", &PyEndpoint::check_process)
        .def("abort", &PyEndpoint::abort, nb::arg("reason"))
        .def("name_ranks", &PyEndpoint::name_ranks, nb::arg("job_ranks"))
        .def("note", &PyEndpoint::note)
        .def("raise_if_broken", &PyEndpoint::raise_if_broken)
        .def_prop_ro("broken", &PyEndpoint::broken)
        .def("reserve_space", &PyEndpoint::reserve_space, nb::arg("size_bytes"))
        .def("break_to_shrink", &PyEndpoint::break_to_shrink)
        .def("agree_on_survivors", &PyEndpoint::agree_on_survivors, nb::arg("first"), nb::arg("timeout_s"))
        .def("settle_growth", &PyEndpoint::settle_growth, nb::arg("attempt"), nb::arg("success"))
        .def("meet", &PyEndpoint::meet, nb::arg("timeout_s"))
        .def("memory_in_use", &PyEndpoint::memory_in_use)
        .def("sent_bytes", &PyEndpoint::sent_bytes)
        .def("sent_far_bytes", &PyEndpoint::sent_far_bytes)
        .def("limit_rate", &PyEndpoint::limit_rate, nb::arg("bytes_per_s"))
        .def("start_event_log", &PyEndpoint::start_event_log, nb::arg("capacity"))
        .def("stop_event_log", &PyEndpoint::stop_event_log, nb::arg("log"))
        .def_rw("timeout_s", &PyEndpoint::timeout_s)
        .def_rw("work_type", &PyEndpoint::work_type);
    module.def(
        "shared_bytes",
        [](std::uint32_t size, std::uint32_t depth, std::uint64_t staging_bytes, std::uint64_t transfer_bytes,
           std::uint32_t tracks) {
            return Layout({size, depth, staging_bytes, transfer_bytes, tracks}).bytes();
        },
        nb::arg("size"), nb::arg("depth"), nb::arg("staging_bytes"), nb::arg("transfer_bytes"), nb::arg("tracks"),
        "Return the bytes of address space of a communicator.");
}

}  // namespace unisono::bindings
