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

nb::object GpuTable::repeat(const OutsideCall& call, double timeout_s) {
    if (!connected_) return {};
    Connected& at = *connected_;
    const RepeatedCall<gpu::GpuPlan> found = at.known.find(call, at.rank);
    if (found.plan == nullptr) return {};
    PyObject* const device = at.device.ptr();
    const nb::object stream = nb::steal(PyObject_Vectorcall(at.functions.current_stream.ptr(), &device, 1, nullptr));
    if (!stream.is_valid()) throw nb::python_error();
    const std::uint64_t handle = PyLong_AsUnsignedLongLong(stream.ptr());
    if (PyErr_Occurred() != nullptr) throw nb::python_error();
    at.runner->run(*found.plan, reinterpret_cast<std::uint64_t>(found.input),
                   reinterpret_cast<std::uint64_t>(found.output), handle, timeout_s);
    if (!at.staging_reported && at.runner->staged_buffers() > 0) [[unlikely]] {
        at.staging_reported = true;
        at.functions.report_staging();
    }
    return nb::none();
}

void bind_gpu_fast_path(nb::module_& module) {
    nb::class_<GpuTable>(module, "GpuTable", "The plans of calls on CUDA tensors that the fast path can repeat.")
        .def(nb::init<>())
        .def("connect",
             [](GpuTable& self, nb::object endpoint, int device, std::uint32_t rank, nb::object current_stream,
                nb::object report_staging) {
                 GpuRunner& runner = gpu_runner(endpoint);
                 self.connect(std::move(endpoint), runner, device, rank,
                              {std::move(current_stream), std::move(report_staging)});
             }, nb::arg("endpoint"), nb::arg("device"), nb::arg("rank"), nb::arg("current_stream"),
             nb::arg("report_staging"))
        .def("remember",
             [](GpuTable& self, std::shared_ptr<gpu::GpuPlan> plan, std::uint64_t collective, nb::handle output,
                nb::handle input, nb::handle op, std::uint64_t root, nb::handle algorithm, nb::handle codec,
                bool part_is_input) {
                 self.remember(std::move(plan), outside_call(collective, output, input, op, root, algorithm, codec),
                               part_is_input);
             }, nb::arg("plan"), nb::arg("collective"), nb::arg("output").none(), nb::arg("source").none(),
             nb::arg("op").none(), nb::arg("root"), nb::arg("algorithm").none(), nb::arg("codec").none(),
             nb::arg("part_is_input"))
        .def("forget", &GpuTable::forget, nb::arg("plan"))
        .def("clear", &GpuTable::clear);
}

}  // namespace unisono::bindings
