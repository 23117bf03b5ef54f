// Programs and plans as they come from Python.
#pragma once

#include <nanobind/nanobind.h>

namespace unisono::bindings {

void bind_plans(nanobind::module_& module);

}  // namespace unisono::bindings
