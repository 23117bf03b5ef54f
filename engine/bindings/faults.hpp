// How a failure of the engine becomes a Python exception.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "unisono/endpoint.hpp"

namespace unisono::bindings {

// Marks the current thread, for as long as it lives, as one that was called from Python and may look for signals.
struct CalledFromPython {
    CalledFromPython();
    ~CalledFromPython();
};

// For Endpoint::interrupted, with the interpreter's lock released: true if a handler of a signal (Ctrl-C) has raised an
// exception in this thread.
bool look_for_signals();
// Rethrows it, if so.
void rethrow_from_signal();

// Throws the Python exception for a report.
[[noreturn]] void raise_fault_report(const FaultReport& report);

// Throws the Python exception for a call in a forked child of a rank; `process` is the rank's own.
[[noreturn]] void raise_forked(const std::string& rank, int process);

}  // namespace unisono::bindings
