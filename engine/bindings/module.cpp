// The Python module. Outside engine/bindings nothing in engine/ includes nanobind.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "courier.hpp"
#include "endpoint.hpp"
#include "gpu.hpp"
#include "plans.hpp"
#include "simulation.hpp"
#include "unisono/build_info.hpp"
#include "unisono/copy.hpp"
#include "unisono/memory.hpp"
#include "unisono/reduce.hpp"
#include "unisono/topk.hpp"
#include "unisono/wire.hpp"
#include "variants.hpp"
#include "wire.hpp"

namespace nb = nanobind;

using unisono::bindings::Bytes;
using unisono::bindings::ConstBytes;
using unisono::bindings::index_of;
using unisono::bindings::variant_named;
using unisono::bindings::variant_names;

namespace {

// Returns the loop for the names in a call, and the size of an element; `find` is the member of Variant that finds it.
template <typename Find>
auto loop_for(Find find, const std::string& reduction, const std::string& dtype, const std::string& variant) {
    const std::size_t type = index_of(dtype, unisono::dtype_names, "dtype");
    const std::size_t op = index_of(reduction, unisono::reduction_names, "reduction");
    const auto function =
        (variant_named(variant).*find)(static_cast<unisono::DType>(type), static_cast<unisono::Reduction>(op));
    if (function == nullptr) throw nb::value_error((reduction + " has no meaning for " + dtype).c_str());
    return std::pair(function, unisono::dtype_bytes[type]);
}

void combine(const std::string& reduction, const std::string& dtype, Bytes out, ConstBytes left, ConstBytes right,
             const std::string& variant) {
    const auto [function, bytes] = loop_for(&unisono::Variant::find, reduction, dtype, variant);
    if (out.size() != left.size() || out.size() != right.size() || out.size() % bytes != 0)
        throw nb::value_error("expected three arrays of equal length, in whole elements");
    nb::gil_scoped_release released;
    function(out.data(), left.data(), right.data(), out.size() / bytes);
}

void combine_many(const std::string& reduction, const std::string& dtype, Bytes out, std::optional<Bytes> also,
                  ConstBytes first, const std::vector<ConstBytes>& addends, const std::string& variant) {
    const auto [function, bytes] = loop_for(&unisono::Variant::find_many, reduction, dtype, variant);
    bool equal = out.size() == first.size() && (!also || out.size() == also->size()) && out.size() % bytes == 0;
    std::vector<const void*> pointers;
    for (const ConstBytes& addend : addends) {
        equal = equal && addend.size() == out.size();
        pointers.push_back(addend.data());
    }
    if (!equal || addends.empty())
        throw nb::value_error("expected at least one addend, and arrays of equal length, in whole elements");
    nb::gil_scoped_release released;
    function(out.data(), also ? also->data() : nullptr, first.data(), pointers.data(), pointers.size(),
             out.size() / bytes);
}

void divide(const std::string& dtype, Bytes out, ConstBytes array, std::size_t size, const std::string& variant) {
    const std::size_t type = index_of(dtype, unisono::dtype_names, "dtype");
    const unisono::Divide function = variant_named(variant).find_divide(static_cast<unisono::DType>(type));
    if (function == nullptr) throw nb::value_error(("dividing has no meaning for " + dtype).c_str());
    const std::size_t bytes = unisono::dtype_bytes[type];
    if (out.size() != array.size() || out.size() % bytes != 0)
        throw nb::value_error("expected two arrays of equal length, in whole elements");
    nb::gil_scoped_release released;
    function(out.data(), array.data(), size, out.size() / bytes);
}

void copy(Bytes out, ConstBytes array, bool past_caches) {
    if (out.size() != array.size()) throw nb::value_error("expected two arrays of equal length");
    nb::gil_scoped_release released;
    (past_caches ? unisono::copy_streaming : unisono::copy_bytes)(out.data(), array.data(), out.size());
}

nb::dict tables() {
    nb::dict dtypes;
    for (std::size_t type = 0; type < unisono::dtype_names.size(); ++type)
        dtypes[unisono::dtype_names[type]] = unisono::dtype_bytes[type];
    const auto list_of = [](const auto& names) {
        nb::list list;
        for (const char* const name : names) list.append(name);
        return list;
    };
    nb::dict result;
    result["dtypes"] = dtypes;
    result["reductions"] = list_of(unisono::reduction_names);
    result["codecs"] = list_of(unisono::wire_names);
    result["codec_block_elements"] = unisono::codec_block_elements;
    result["topk_window"] = unisono::topk_window;
    result["faults"] = list_of(unisono::fault_names);
    return result;
}

}  // namespace

NB_MODULE(_engine, module) {
    module.doc() = "The native engine of Unisono.";
    // Programs may hold a Work when the interpreter ends; that is not an error.
    nb::set_leak_warnings(false);
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
        "Return the compiler, the options and the instruction set of the engine.");
    module.def("tables", &tables, "The tables of names and sizes that Python repeats; a test compares them.");
    unisono::bindings::bind_plans(module);
    unisono::bindings::bind_courier(module);
    unisono::bindings::bind_endpoint(module);
    unisono::bindings::bind_gpu(module);
    unisono::bindings::bind_wire(module);
    unisono::bindings::bind_simulation(module);
    module.def("variants", &variant_names, "Return the instruction sets that `combine` can use on this processor, the best one first.");
    module.def("combine", &combine, nb::arg("reduction"), nb::arg("dtype"), nb::arg("out"), nb::arg("left"),
               nb::arg("right"), nb::arg("variant"),
               "Set out = left (reduction) right, element by element, on arrays given as bytes.");
    module.def("combine_many", &combine_many, nb::arg("reduction"), nb::arg("dtype"), nb::arg("out"),
               nb::arg("also").none(), nb::arg("first"), nb::arg("addends"), nb::arg("variant"),
               "Set out = first (reduction) addends[0] (reduction) ..., rounded once; `also`, if given, gets a copy.");
    module.def("divide", &divide, nb::arg("dtype"), nb::arg("out"), nb::arg("array"), nb::arg("size"),
               nb::arg("variant"), "Set out = array / size, on arrays given as bytes.");
    module.def("copy", &copy, nb::arg("out"), nb::arg("array"), nb::arg("past_caches"), "Set out = array, as the engine copies.");
}
