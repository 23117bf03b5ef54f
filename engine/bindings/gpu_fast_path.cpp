#include "gpu_fast_path.hpp"

#include <nanobind/stl/shared_ptr.h>

#include <utility>

#include "gpu.hpp"

namespace nb = nanobind;

namespace unisono::bindings {

void GpuTable::connect(nb::object endpoint, GpuRunner& runner, int device, std::uint32_t rank, Functions functions) {
    connected_.emplace(Connected{std::move(endpoint), &runner, KnownPlans<gpu::GpuPlan>(device), nb::int_(device), rank,
                                 std::move(functions)});
}

void GpuTable::remember(std::shared_ptr<gpu::GpuPlan> plan, const OutsideCall& call, bool part_is_input) {
    if (connected_) connected_->known.remember(std::move(plan), call, part_is_input);
}

void GpuTable::forget(const std::shared_ptr<gpu::GpuPlan>& plan) {
    if (connected_) connected_->known.forget(plan);
}

std::uint64_t GpuTable::current_stream(const Connected& at) {
    PyObject* const device = at.device.ptr();
    const nb::object stream = nb::steal(PyObject_Vectorcall(at.functions.current_stream.ptr(), &device, 1, nullptr));
    if (!stream.is_valid()) throw nb::python_error();
    const std::uint64_t handle = PyLong_AsUnsignedLongLong(stream.ptr());
    if (PyErr_Occurred() != nullptr) throw nb::python_error();
    return handle;
}

void GpuTable::report_staging(Connected& at) {
    if (at.staging_reported || at.runner->staged_buffers() == 0) [[likely]]
        return;
    at.staging_reported = true;
    at.functions.report_staging();
}

nb::object GpuTable::repeat(const OutsideCall& call, double timeout_s) {
    if (!connected_) return {};
    Connected& at = *connected_;
    const RepeatedCall<gpu::GpuPlan> found = at.known.find(call, at.rank);
    if (found.plan == nullptr) return {};
    at.runner->run(*found.plan, reinterpret_cast<std::uint64_t>(found.input),
                   reinterpret_cast<std::uint64_t>(found.output), current_stream(at), timeout_s);
    report_staging(at);
    return nb::none();
}

nb::object GpuTable::start(const OutsideCall& call, std::uint64_t stream, double timeout_s) {
    if (!connected_) return {};
    Connected& at = *connected_;
    const RepeatedCall<gpu::GpuPlan> found = at.known.find(call, at.rank);
    if (found.plan == nullptr) return {};
    const std::uint64_t after = current_stream(at);
    if (at.runner->is_capturing(after)) return {};
    nb::object event = at.runner->start(at.endpoint, *found.plan, reinterpret_cast<std::uint64_t>(found.input),
                                        reinterpret_cast<std::uint64_t>(found.output), after, stream, timeout_s);
    report_staging(at);
    return event;
}

void bind_gpu_fast_path(nb::module_& module) {
    nb::class_<GpuTable>(module, "GpuTable", "The plans of calls on CUDA tensors that the fast path can repeat.")
        .def(nb::init<>())
        .def(
            "connect",
            [](GpuTable& self, nb::object endpoint, int device, std::uint32_t rank, nb::object current_stream,
               nb::object report_staging) {
                GpuRunner& runner = gpu_runner(endpoint);
                self.connect(std::move(endpoint), runner, device, rank,
                             {std::move(current_stream), std::move(report_staging)});
            },
            nb::arg("endpoint"), nb::arg("device"), nb::arg("rank"), nb::arg("current_stream"),
            nb::arg("report_staging"))
        .def(
            "remember",
            [](GpuTable& self, std::shared_ptr<gpu::GpuPlan> plan, std::uint64_t collective, nb::handle output,
               nb::handle input, nb::handle op, std::uint64_t root, nb::handle algorithm, nb::handle codec,
               bool part_is_input) {
                self.remember(std::move(plan), outside_call(collective, output, input, op, root, algorithm, codec),
                              part_is_input);
            },
            nb::arg("plan"), nb::arg("collective"), nb::arg("output").none(), nb::arg("source").none(),
            nb::arg("op").none(), nb::arg("root"), nb::arg("algorithm").none(), nb::arg("codec").none(),
            nb::arg("part_is_input"))
        .def(
            "repeat",
            [](GpuTable& self, std::uint64_t collective, nb::handle output, nb::handle input, nb::handle op,
               std::uint64_t root, nb::handle algorithm, double timeout_s) {
                const OutsideCall call =
                    outside_call(collective, output, input, op, root, algorithm, nb::handle(Py_None));
                return self.repeat(call, timeout_s).is_valid();
            },
            nb::arg("collective"), nb::arg("output"), nb::arg("source").none(), nb::arg("op").none(), nb::arg("root"),
            nb::arg("algorithm").none(), nb::arg("timeout_s"))
        .def(
            "start",
            [](GpuTable& self, std::uint64_t collective, nb::handle output, nb::handle input, nb::handle op,
               std::uint64_t root, nb::handle algorithm, double timeout_s, std::uint64_t stream) {
                const OutsideCall call =
                    outside_call(collective, output, input, op, root, algorithm, nb::handle(Py_None));
                nb::object event = self.start(call, stream, timeout_s);
                return event.is_valid() ? event : nb::none();
            },
            nb::arg("collective"), nb::arg("output"), nb::arg("source").none(), nb::arg("op").none(), nb::arg("root"),
            nb::arg("algorithm").none(), nb::arg("timeout_s"), nb::arg("stream"))
        .def("forget", &GpuTable::forget, nb::arg("plan"))
        .def("clear", &GpuTable::clear);
}

}  // namespace unisono::bindings
