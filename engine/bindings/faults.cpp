#include "faults.hpp"

namespace nb = nanobind;

namespace unisono::bindings {

namespace {

thread_local int called_from_python = 0;

}  // namespace

SignalWatch::Here::Here() { ++called_from_python; }
SignalWatch::Here::~Here() { --called_from_python; }

bool SignalWatch::look() {
    if (called_from_python == 0) return false;  // a thread of our own: signals are for Python's main thread
    const nb::gil_scoped_acquire locked;
    if (PyErr_CheckSignals() == 0) return false;
    raised_.emplace();
    return true;
}

void SignalWatch::rethrow() {
    if (!raised_) return;
    nb::python_error error = *raised_;
    raised_.reset();
    throw error;
}

void raise_verdict(const Verdict& verdict) {
    const nb::object error = nb::module_::import_("unisono.comm.faults")
                                 .attr("exception_for")(static_cast<int>(verdict.fault), verdict.culprit, verdict.text);
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
    throw nb::python_error();
}

}  // namespace unisono::bindings
