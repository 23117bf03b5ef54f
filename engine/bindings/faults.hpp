// Turns failures of the engine into Python exceptions.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <string>

#include "unisono/endpoint.hpp"

namespace unisono::bindings {

// Marks the current thread, for as long as this object exists, as called from Python: it may handle signals.
struct CalledFromPython {
    CalledFromPython();
    ~CalledFromPython();
};

// For Endpoint::interrupted, called without the interpreter's lock: true if a signal handler (Ctrl-C) has raised an
// exception in this thread.
bool look_for_signals();
// Rethrows that exception, if there is one.
void rethrow_from_signal();

// Throws the Python exception for a report.
[[noreturn]] void raise_fault_report(const FaultReport& report);

// Runs an action without the interpreter's lock and turns failures into Python exceptions.
template <typename Action>
void guarded(Action action) {
    std::unique_ptr<const FaultReport> report;  // on the heap, because to clear its 1000 bytes takes time
    {
        const CalledFromPython here;
        const nanobind::gil_scoped_release released;
        try {
            action();
        } catch (const Failure& failure) {
            report = std::make_unique<FaultReport>(failure.report);
        }
    }
    rethrow_from_signal();  // even if the call was over before the signal could end it
    if (report) raise_fault_report(*report);
}

// Throws the Python exception for an endpoint that could not be made.
[[noreturn]] void raise_memory_refused(const MemoryRefused& refused, const RankNames& names, std::uint32_t rank);

// Throws the Python exception for a call in a forked child of a rank. `rank` is a value of a FaultMessage; `process` is
// the process id of the rank.
[[noreturn]] void raise_forked(const std::string& rank, int process);

// Throws the Python exception for an array that is not on the device of the communicator (-1: on none).
[[noreturn]] void raise_foreign_memory(std::uint64_t address, int device);

// Throws the Python exception for a call that a CUDA graph cannot capture: send and recv, or a call in stream mode.
[[noreturn]] void raise_capture_refused(bool transfer);

// Returns the Python sentence that lists a group (RankNames::group).
nanobind::object group_note(const std::string& group);

}  // namespace unisono::bindings
