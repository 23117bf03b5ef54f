#pragma once

#include <nanobind/nanobind.h>

namespace unisono::bindings {

// Binds the functions that encode and decode arrays outside of calls.
void bind_wire(nanobind::module_& module);

}  // namespace unisono::bindings
