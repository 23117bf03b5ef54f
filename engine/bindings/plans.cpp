#include "plans.hpp"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "array_view.hpp"
#include "names.hpp"

namespace nb = nanobind;

namespace unisono::bindings {

namespace {

// Tables are passed as bytes with the layout of the structures in program.hpp.
template <typename T>
std::vector<T> table(const nb::bytes& bytes, const char* what) {
    if (bytes.size() % sizeof(T) != 0) throw nb::value_error((std::string(what) + ": not a whole number of rows").c_str());
    std::vector<T> rows(bytes.size() / sizeof(T));
    if (!rows.empty()) std::memcpy(rows.data(), bytes.data(), bytes.size());  // an empty table has no address
    return rows;
}

std::shared_ptr<Program> make_program(const nb::bytes& instructions, const nb::bytes& operands, const nb::bytes& parts,
                                      const nb::bytes& channels, std::vector<std::uint32_t> results,
                                      std::vector<std::uint32_t> rounded_last, std::vector<std::uint32_t> silent_receivers,
                                      std::uint32_t largest_message, std::uint32_t rank, std::uint32_t size) {
    auto program = std::make_shared<Program>();
    program->instructions = table<Instruction>(instructions, "instructions");
    program->operands = table<Operand>(operands, "operands");
    program->parts = table<Buffer>(parts, "parts");
    program->channels = table<ChannelUse>(channels, "channels");
    program->results = std::move(results);
    program->rounded_last = std::move(rounded_last);
    program->silent_receivers = std::move(silent_receivers);
    program->largest_message = largest_message;
    program->check(rank, size);
    return program;
}

std::shared_ptr<Plan> make_plan(std::shared_ptr<Program> program, const nb::bytes& extents, std::uint64_t segment_bytes,
                                std::uint64_t passes, std::uint64_t work_bytes, const std::string& dtype,
                                const std::string& reduction, bool divides, bool skips_empty, bool streams,
                                const std::string& wire, bool stochastic, std::uint64_t seed,
                                std::uint64_t fingerprint, const std::string& text) {
    static std::uint64_t made = 0;
    auto plan = std::make_shared<Plan>();
    plan->extents = table<Plan::Extent>(extents, "extents");
    if (plan->extents.size() != program->parts.size()) throw nb::value_error("expected an extent for each part");
    plan->program = std::move(program);
    plan->segment_bytes = segment_bytes;
    plan->passes = passes;
    plan->work_bytes = work_bytes;
    const auto type = static_cast<DType>(index_of(dtype, dtype_names, "dtype"));
    plan->element_bytes = dtype_bytes[static_cast<std::size_t>(type)];
    const Variant& variant = variants().front();
    if (!reduction.empty()) {
        plan->reduction = static_cast<Reduction>(index_of(reduction, reduction_names, "reduction"));
        plan->combine = variant.find_many(type, plan->reduction);
        if (plan->combine == nullptr) throw nb::value_error((reduction + " has no meaning for " + dtype).c_str());
    }
    if (divides) {
        plan->divide = variant.find_divide(type);
        if (plan->divide == nullptr) throw nb::value_error(("an average has no meaning for " + dtype).c_str());
    }
    plan->skips_empty = skips_empty;
    plan->streams = streams;
    plan->wire = static_cast<Wire>(index_of(wire, wire_names, "wire type"));
    if (plan->wire != Wire::none && type != DType::float32) throw nb::value_error("a codec requires float32");
    if (plan->wire != Wire::none && segment_bytes % (codec_block_elements * sizeof(float)) != 0)
        throw nb::value_error("segments are not a whole number of codec blocks");
    plan->stochastic = stochastic;
    plan->seed = seed;
    plan->fingerprint = fingerprint;
    plan->text = text;
    plan->number = ++made;
    if (plan->combine == nullptr)
        for (const Instruction& op : plan->program->instructions)
            if (op.kind == Kind::reduce || op.kind == Kind::combine) throw nb::value_error("a reduction is missing");
    return plan;
}

}  // namespace

void bind_plans(nb::module_& module) {
    if (load_numpy() != 0) throw nb::python_error();
    nb::class_<Program>(module, "Program", "A compiled program.");
    nb::class_<Plan>(module, "Plan", "A compiled program with the lengths, type and reduction of a call.")
        .def_ro("text", &Plan::text)
        .def_ro("number", &Plan::number);
    module.def("make_program", &make_program, nb::arg("instructions"), nb::arg("operands"), nb::arg("parts"),
               nb::arg("channels"), nb::arg("results"), nb::arg("rounded_last"), nb::arg("silent_receivers"),
               nb::arg("largest_message"), nb::arg("rank"), nb::arg("size"));
    module.def("make_plan", &make_plan, nb::arg("program"), nb::arg("extents"), nb::arg("segment_bytes"),
               nb::arg("passes"), nb::arg("work_bytes"), nb::arg("dtype"), nb::arg("reduction"), nb::arg("divides"),
               nb::arg("skips_empty"), nb::arg("streams"), nb::arg("wire"), nb::arg("stochastic"), nb::arg("seed"),
               nb::arg("fingerprint"), nb::arg("text"));
}

}  // namespace unisono::bindings
