#pragma once

#include <nanobind/nanobind.h>

#include <string>

namespace unisono::bindings {

// Returns the index of a name in a list; the error for an unknown name lists all of them.
template <typename Names>
std::size_t index_of(const std::string& name, const Names& names, const char* what) {
    std::string known;
    for (std::size_t index = 0; index < names.size(); ++index) {
        if (name == names[index]) return index;
        known += (index ? ", " : "") + std::string(names[index]);
    }
    throw nanobind::value_error(
        ("there is no " + std::string(what) + " '" + name + "'; expected one of " + known).c_str());
}

}  // namespace unisono::bindings
