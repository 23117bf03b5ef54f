// The Python face of the engine. Nothing else in engine/ includes nanobind.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "endpoint.hpp"
#include "names.hpp"
#include "plans.hpp"
#include "unisono/build_info.hpp"
#include "unisono/reduce.hpp"

namespace nb = nanobind;

using unisono::bindings::place_of;

namespace {

// Arrays cross as bytes: numpy cannot hand over a bfloat16 or float8 array as such.
using Bytes = nb::ndarray<std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using ConstBytes = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

std::vector<const char*> variant_names() {
    std::vector<const char*> names;
    for (const unisono::Variant& variant : unisono::variants()) names.push_back(variant.name);
    return names;
}

void combine(const std::string& reduction, const std::string& dtype, Bytes out, ConstBytes left, ConstBytes right,
             const std::string& variant) {
    const std::size_t type = place_of(dtype, unisono::dtype_names, "dtype");
    const std::size_t op = place_of(reduction, unisono::reduction_names, "reduction");
    const std::size_t chosen = variant.empty() ? 0 : place_of(variant, variant_names(), "variant");
    const unisono::Combine function =
        unisono::variants()[chosen].find(static_cast<unisono::DType>(type), static_cast<unisono::Reduction>(op));
    if (function == nullptr) throw nb::value_error((reduction + " has no meaning for " + dtype).c_str());
    const std::size_t bytes = unisono::dtype_bytes[type];
    if (out.size() != left.size() || out.size() != right.size() || out.size() % bytes != 0)
        throw nb::value_error("expected three arrays of equal length, in whole elements");
    nb::gil_scoped_release released;
    function(out.data(), left.data(), right.data(), out.size() / bytes);
}

}  // namespace

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
            out["instructions"] = unisono::variants().front().name;
            return out;
        },
        "What the engine was built with, as a dictionary.");
    unisono::bindings::bind_plans(module);
    unisono::bindings::bind_endpoint(module);
    module.def("variants", &variant_names, "The sets of instructions that `combine` can use here, the best one first.");
    module.def("combine", &combine, nb::arg("reduction"), nb::arg("dtype"), nb::arg("out"), nb::arg("left"),
               nb::arg("right"), nb::arg("variant") = "",
               "out = left (reduction) right, element by element, on arrays given as bytes.");
}
