#include "wire.hpp"

#include <nanobind/stl/string.h>

#include "unisono/topk.hpp"
#include "unisono/wire.hpp"
#include "variants.hpp"

namespace nb = nanobind;

namespace unisono::bindings {

namespace {

Wire wire_named(const std::string& codec) {
    const auto wire = static_cast<Wire>(index_of(codec, wire_names, "codec"));
    if (wire == Wire::none) throw nb::value_error("codec 'none' carries float32 as it is; there is nothing to encode");
    return wire;
}

// Elements are float32, given as bytes; there must be as many as the wire has room for.
std::size_t elements(Wire wire, std::size_t array_bytes, std::size_t wire_bytes) {
    const std::size_t n = array_bytes / sizeof(float);
    if (array_bytes % sizeof(float) != 0 || wire_bytes != encoded_bytes(wire, n))
        throw nb::value_error(("expected float32 numbers, and encoded_bytes of them on the wire; found " +
                               std::to_string(array_bytes) + " bytes, and " + std::to_string(wire_bytes) +
                               " on the wire")
                                  .c_str());
    return n;
}

const std::byte* wire_of(const ConstBytes& array) { return reinterpret_cast<const std::byte*>(array.data()); }
std::byte* wire_of(const Bytes& array) { return reinterpret_cast<std::byte*>(array.data()); }
const float* floats_of(const ConstBytes& array) { return reinterpret_cast<const float*>(array.data()); }
float* floats_of(const Bytes& array) { return reinterpret_cast<float*>(array.data()); }

void encode(const std::string& codec, Bytes out, ConstBytes array, bool stochastic, std::uint64_t seed,
            std::uint64_t first, const std::string& variant) {
    const Wire wire = wire_named(codec);
    const std::size_t n = elements(wire, array.size(), out.size());
    const WireLoops& loops = *variant_named(variant).find_wire(wire);
    nb::gil_scoped_release released;
    loops.encode(floats_of(array), wire_of(out), n, {stochastic, seed, first});
}

void encode_rounding_source(const std::string& codec, Bytes out, Bytes source, bool stochastic, std::uint64_t seed,
                            std::uint64_t first, const std::string& variant) {
    const Wire wire = wire_named(codec);
    const std::size_t n = elements(wire, source.size(), out.size());
    const WireLoops& loops = *variant_named(variant).find_wire(wire);
    nb::gil_scoped_release released;
    loops.encode_rounding_source(floats_of(source), wire_of(out), n, {stochastic, seed, first});
}

void decode(const std::string& codec, Bytes out, ConstBytes array, const std::string& variant) {
    const Wire wire = wire_named(codec);
    const std::size_t n = elements(wire, out.size(), array.size());
    const WireLoops& loops = *variant_named(variant).find_wire(wire);
    nb::gil_scoped_release released;
    loops.decode(wire_of(array), floats_of(out), n);
}

void decode_combine(const std::string& codec, const std::string& reduction, Bytes out, ConstBytes left,
                    ConstBytes array, const std::string& variant) {
    const Wire wire = wire_named(codec);
    const std::size_t n = elements(wire, out.size(), array.size());
    if (left.size() != out.size()) throw nb::value_error("expected two float32 arrays of equal length");
    const auto op = static_cast<Reduction>(index_of(reduction, reduction_names, "reduction"));
    const DecodeCombine loop = variant_named(variant).find_wire(wire)->find_decode_combine(op);
    if (loop == nullptr) throw nb::value_error((reduction + " has no meaning for float32").c_str());
    nb::gil_scoped_release released;
    loop(wire_of(array), floats_of(left), floats_of(out), n);
}

void check_topk(std::size_t array_bytes, std::size_t wire_bytes, std::size_t k) {
    const std::size_t n = array_bytes / sizeof(float);
    if (array_bytes % sizeof(float) != 0 || k > n || wire_bytes != topk_bytes(n, k))
        throw nb::value_error("expected float32 numbers, not fewer than are kept, and topk_bytes of them on the wire");
}

void encode_topk(Bytes out, ConstBytes array, std::size_t k) {
    check_topk(array.size(), out.size(), k);
    nb::gil_scoped_release released;
    unisono::encode_topk(floats_of(array), wire_of(out), array.size() / sizeof(float), k);
}

void add_topk(Bytes out, ConstBytes array, std::size_t k) {
    check_topk(out.size(), array.size(), k);
    nb::gil_scoped_release released;
    unisono::add_topk(wire_of(array), floats_of(out), out.size() / sizeof(float), k);
}

}  // namespace

void bind_wire(nb::module_& module) {
    module.def(
        "encoded_bytes", [](const std::string& codec, std::size_t n) { return encoded_bytes(wire_named(codec), n); },
        nb::arg("codec"), nb::arg("n"), "The bytes of n float32 numbers on the wire.");
    module.def("encode", &encode, nb::arg("codec"), nb::arg("out"), nb::arg("array"), nb::arg("stochastic") = false,
               nb::arg("seed") = 0, nb::arg("first") = 0, nb::arg("variant") = "",
               "out = the float32 numbers of array on the wire; all arrays are given as bytes.");
    module.def("encode_rounding_source", &encode_rounding_source, nb::arg("codec"), nb::arg("out"), nb::arg("source"),
               nb::arg("stochastic") = false, nb::arg("seed") = 0, nb::arg("first") = 0, nb::arg("variant") = "",
               "As encode; the source becomes what decode makes of it.");
    module.def("decode", &decode, nb::arg("codec"), nb::arg("out"), nb::arg("array"), nb::arg("variant") = "",
               "out = the float32 numbers that are on the wire.");
    module.def("decode_combine", &decode_combine, nb::arg("codec"), nb::arg("reduction"), nb::arg("out"),
               nb::arg("left"), nb::arg("array"), nb::arg("variant") = "",
               "out = left (reduction) the float32 numbers that are on the wire.");
    module.def("topk_bytes", &topk_bytes, nb::arg("n"), nb::arg("k"), "The bytes of the k largest of n on the wire.");
    module.def("encode_topk", &encode_topk, nb::arg("out"), nb::arg("array"), nb::arg("k"),
               "out = the k largest of the float32 numbers of array, and their places.");
    module.def("add_topk", &add_topk, nb::arg("out"), nb::arg("array"), nb::arg("k"),
               "out += the k numbers that are on the wire, at their places.");
}

}  // namespace unisono::bindings
