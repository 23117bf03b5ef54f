#pragma once

#include <nanobind/nanobind.h>

namespace unisono::bindings {

void bind_endpoint(nanobind::module_& module);

}  // namespace unisono::bindings
