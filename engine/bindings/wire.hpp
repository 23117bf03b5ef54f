#pragma once

#include <nanobind/nanobind.h>

namespace unisono::bindings {

// Encoding and decoding of arrays, away from any call.
void bind_wire(nanobind::module_& module);

}  // namespace unisono::bindings
