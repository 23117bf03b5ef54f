// The GPU side of a communicator, bound to Python.
#pragma once

#include <nanobind/nanobind.h>

#include "gpu_fast_path.hpp"

namespace unisono::bindings {

// The part of a GpuEndpoint that the fast path uses.
GpuRunner& gpu_runner(nanobind::handle endpoint);

void bind_gpu(nanobind::module_& module);

}  // namespace unisono::bindings
