#pragma once

#include <nanobind/nanobind.h>

#include <string>

namespace unisono::bindings {

// The place of a name in a list of names; says which there are where it is none of them.
template <typename Names>
std::size_t place_of(const std::string& name, const Names& names, const char* what) {
    std::string known;
    for (std::size_t place = 0; place < names.size(); ++place) {
        if (name == names[place]) return place;
        known += (place ? ", " : "") + std::string(names[place]);
    }
    throw nanobind::value_error(
        ("there is no " + std::string(what) + " '" + name + "'; expected one of " + known).c_str());
}

}  // namespace unisono::bindings
