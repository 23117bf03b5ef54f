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
    if (wire == Wire::none) throw nb::value_error("codec 'none' sends float32 unchanged; there is nothing to encode");
    return wire;
}

// Returns the number of float32 elements, after checking that the wire has the right length for them.
std::size_t elements(Wire wire, std::size_t array_bytes, std::size_t wire_bytes) {
    const std::size_t n = array_bytes / sizeof(float);
    if (array_bytes % sizeof(float) != 0 || wire_bytes != encoded_bytes(wire, n))
        throw nb::value_error(("expected float32 numbers and encoded_bytes() bytes on the wire; found " +
                               std::to_string(array_bytes) + " bytes of numbers and " + std::to_string(wire_bytes) +
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
        throw nb::value_error("expected at least k float32 numbers, and topk_bytes() bytes on the wire");
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
        nb::arg("codec"), nb::arg("n"), "Return the bytes of n float32 numbers on the wire.");
    module.def("encode", &encode, nb::arg("codec"), nb::arg("out"), nb::arg("array"), nb::arg("stochastic"),
               nb::arg("seed"), nb::arg("first"), nb::arg("variant"),
               "Encode the float32 numbers of array into out; all arrays are given as bytes.");
    module.def("encode_rounding_source", &encode_rounding_source, nb::arg("codec"), nb::arg("out"), nb::arg("source"),
               nb::arg("stochastic"), nb::arg("seed"), nb::arg("first"), nb::arg("variant"),
               "Encode as `encode` does; the source becomes what `decode` returns.");
    module.def("decode", &decode, nb::arg("codec"), nb::arg("out"), nb::arg("array"), nb::arg("variant"),
               "Decode the float32 numbers of array into out.");
    module.def("decode_combine", &decode_combine, nb::arg("codec"), nb::arg("reduction"), nb::arg("out"),
               nb::arg("left"), nb::arg("array"), nb::arg("variant"),
               "Set out = left (reduction) the decoded numbers of array.");
    module.def("topk_bytes", &topk_bytes, nb::arg("n"), nb::arg("k"), "Return the bytes of the k largest of n numbers on the wire.");
    module.def("encode_topk", &encode_topk, nb::arg("out"), nb::arg("array"), nb::arg("k"),
               "Encode the k largest of the float32 numbers of array, and their positions, into out.");
    module.def("add_topk", &add_topk, nb::arg("out"), nb::arg("array"), nb::arg("k"),
               "Add the k numbers of array to out, at their positions.");
}

}  // namespace unisono::bindings
