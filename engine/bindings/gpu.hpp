// The GPU side of a communicator, bound to Python.
#pragma once

#include <nanobind/nanobind.h>

namespace unisono::bindings {

void bind_gpu(nanobind::module_& module);

}  // namespace unisono::bindings
