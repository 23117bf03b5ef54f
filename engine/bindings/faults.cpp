#include "faults.hpp"

#include <nanobind/stl/string.h>

#include <optional>

namespace nb = nanobind;

namespace unisono::bindings {

namespace {

thread_local int called_from_python = 0;
// Of each thread its own: if several threads are in a call, the one that was interrupted must get the exception.
thread_local std::optional<nb::python_error> raised;

}  // namespace

CalledFromPython::CalledFromPython() { ++called_from_python; }
CalledFromPython::~CalledFromPython() { --called_from_python; }

bool look_for_signals() {
    if (called_from_python == 0) return false;  // a thread of our own: signals are for Python's main thread
    const nb::gil_scoped_acquire locked;
    if (PyErr_CheckSignals() == 0) return false;
    raised.emplace();
    return true;
}

void rethrow_from_signal() {
    if (!raised) return;
    nb::python_error error = *raised;
    raised.reset();
    throw error;
}

void raise_fault_report(const FaultReport& report) {
    const nb::object error = nb::module_::import_("unisono.comm.faults")
                                 .attr("exception_for")(static_cast<int>(report.fault), report.culprit, report.text);
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
    throw nb::python_error();
}

void raise_forked(const std::string& rank, int process) {
    const nb::object error = nb::module_::import_("unisono.comm.faults").attr("forked_child")(rank, process);
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
    throw nb::python_error();
}

}  // namespace unisono::bindings
