#include "faults.hpp"

#include <nanobind/stl/string.h>

#include <cstring>
#include <optional>

namespace nb = nanobind;

namespace unisono::bindings {

namespace {

thread_local int called_from_python = 0;
// Per thread: if several threads are in a call, the interrupted one must get the exception.
thread_local std::optional<nb::python_error> raised;

nb::module_ faults_module() { return nb::module_::import_("unisono.comm.faults"); }

[[noreturn]] void raise(const nb::object& error) {
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
    throw nb::python_error();
}

}  // namespace

CalledFromPython::CalledFromPython() { ++called_from_python; }
CalledFromPython::~CalledFromPython() { --called_from_python; }

bool look_for_signals() {
    if (called_from_python == 0) return false;  // a thread of the engine: signals are for Python's main thread
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
    // As bytes: a long text may be cut in the middle of a character.
    const nb::bytes description(report.text, std::strlen(report.text));
    raise(faults_module().attr("exception_for")(static_cast<int>(report.fault), report.culprit, description));
}

void raise_memory_refused(const MemoryRefused& refused, const RankNames& names, std::uint32_t rank) {
    FaultReport report;
    report.fault = Fault::no_memory;
    report.culprit = names.job_rank(static_cast<int>(rank));
    std::string text = refused.message(names.value(rank)).text();
    if (!names.group().empty()) text += "\n" + names.group();
    std::strncpy(report.text, text.c_str(), sizeof report.text - 1);
    raise_fault_report(report);
}

void raise_forked(const std::string& rank, int process) { raise(faults_module().attr("forked_child")(rank, process)); }

void raise_foreign_memory(std::uint64_t address, int device) {
    raise(faults_module().attr("foreign_memory")(address, device));
}

void raise_capture_refused(bool transfer) { raise(faults_module().attr("capture_refused")(transfer)); }

nb::object group_note(const std::string& group) {
    return faults_module().attr("group_note")(nb::bytes(group.data(), group.size()));
}

}  // namespace unisono::bindings
