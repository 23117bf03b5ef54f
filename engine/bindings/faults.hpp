// How a failure of the engine becomes a Python exception.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>

#include "unisono/endpoint.hpp"

namespace unisono::bindings {

// Looks for Ctrl-C while a call waits with the interpreter's lock released.
class SignalWatch {
  public:
    // For Endpoint::interrupted: true if the thread that called from Python has a signal to handle.
    bool look();
    // Rethrows what a signal handler raised, if it did.
    void rethrow();
    // Marks the current thread as one that was called from Python, for as long as it lives.
    struct Here {
        Here();
        ~Here();
    };

  private:
    std::optional<nanobind::python_error> raised_;
};

// Throws the Python exception for a verdict.
[[noreturn]] void raise_verdict(const Verdict& verdict);

}  // namespace unisono::bindings
