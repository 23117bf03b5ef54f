// The Python face of the engine. Nothing else in engine/ includes nanobind.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "unisono/build_info.hpp"

namespace nb = nanobind;

NB_MODULE(_engine, module) {
    module.doc() = "The native engine of Unisono.";
    module.def(
        "build_info",
        [] {
            const unisono::BuildInfo info = unisono::build_info();
            nb::dict out;
            out["compiler"] = info.compiler;
            out["cpp_standard"] = info.cpp_standard;
            out["architecture"] = info.architecture;
            out["optimised"] = info.optimised;
            return out;
        },
        "What the engine was built with, as a dictionary.");
}
