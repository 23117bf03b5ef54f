// The fast path of a call: if an equal call was made before, its plan is found and run without any Python code.
//
// The plan cache is in Python (comm/plan_cache.py); its key is a record of checked arguments. This table is its
// lookaside: it finds the same plans by what a call looks like from outside, before anything about it was computed.
// To build the record and hash it takes several times as long as the whole call of a few bytes, so one cache could not
// serve both. A plan that the cache drops is forgotten here. Calls on CUDA tensors have a table of the same kind
// (gpu_fast_path.cpp).
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>

#include "known_plans.hpp"

namespace unisono::bindings {

// Repeats a call that was made before.
class FastPath {
  public:
    virtual ~FastPath() = default;
    // Returns a null object if no equal call is known; nothing was done then. Otherwise runs the plan and returns None,
    // or, with `async_op`, starts it and returns its Work. A negative timeout is that of the endpoint. Throws
    // python_error.
    virtual nanobind::object repeat(nanobind::handle self, const OutsideCall& call, double timeout_s, bool async_op) = 0;
    virtual double default_timeout_s() const = 0;
};

// Returns a callable that makes the calls of one collective: on the fast path where it can, else by `method`, the
// Python method of the same name, with the same arguments. `gpu` is a GpuTable (gpu_fast_path.hpp).
nanobind::object make_fast_call(nanobind::object endpoint, FastPath& fast_path, std::uint64_t collective, int arrays,
                                nanobind::object default_op, nanobind::object method, nanobind::object gpu);

}  // namespace unisono::bindings
