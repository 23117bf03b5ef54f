// The arrays and variants of bindings that call a single loop.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <string>
#include <vector>

#include "names.hpp"
#include "unisono/reduce.hpp"

namespace unisono::bindings {

// Arrays are passed as bytes, because numpy cannot pass a bfloat16 or float8 array as such.
using Bytes = nanobind::ndarray<std::uint8_t, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;
using ConstBytes = nanobind::ndarray<const std::uint8_t, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;

inline std::vector<const char*> variant_names() {
    std::vector<const char*> names;
    for (const Variant& variant : variants()) names.push_back(variant.name);
    return names;
}

// Returns the variant of this name; the best one if the name is empty.
inline const Variant& variant_named(const std::string& name) {
    return variants()[name.empty() ? 0 : index_of(name, variant_names(), "variant")];
}

}  // namespace unisono::bindings
