// The table of the plans that the fast path can repeat, by what a call looks like from outside.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>

#include "array_view.hpp"

namespace unisono::bindings {

// Beyond this the table is cleared. A plan may be known by several keys: equal names at different addresses.
inline constexpr std::size_t most_known_plans = 4096;

// A call as the caller wrote it. `output` and `input` are null where the collective has no such array.
struct OutsideCall {
    std::uint64_t collective;
    nanobind::handle output, input, op;
    std::uint64_t root;
    nanobind::handle algorithm, codec;
};

// Python passes None for an array that the collective does not have.
inline OutsideCall outside_call(std::uint64_t collective, nanobind::handle output, nanobind::handle input,
                                nanobind::handle op, std::uint64_t root, nanobind::handle algorithm,
                                nanobind::handle codec) {
    const auto given = [](nanobind::handle array) { return array.is_none() ? nanobind::handle() : array; };
    return {collective, given(output), given(input), op, root, algorithm, codec};
}

// Names are compared by identity; an equal name elsewhere in memory only costs time.
struct CallKey {
    std::uint64_t collective, input_bytes, output_bytes, root;
    const void* input_dtype;
    const void* output_dtype;
    const void* op;
    const void* algorithm;
    const void* codec;
    bool operator==(const CallKey&) const = default;
};

struct CallKeyHash {
    static std::uint64_t number(const void* address) { return reinterpret_cast<std::uint64_t>(address); }
    std::size_t operator()(const CallKey& key) const {
        std::uint64_t hash = key.collective;
        for (const std::uint64_t part : {key.input_bytes, key.output_bytes, key.root, number(key.input_dtype),
                                         number(key.output_dtype), number(key.op), number(key.algorithm),
                                         number(key.codec)})
            hash = (hash ^ part) * 0x9e3779b97f4a7c15u;
        return hash ^ hash >> 32;
    }
};

// The arrays of a call.
struct Views {
    bool look_at(const OutsideCall& call, const TensorTypes& tensors, int device) {
        return (!call.output.is_valid() || output.look_at(call.output, true, tensors, device)) &&
               (!call.input.is_valid() || input.look_at(call.input, false, tensors, device));
    }
    CallKey key_of(const OutsideCall& call) const {
        return {call.collective, input.bytes,   output.bytes,         call.root,       input.dtype,
                output.dtype,    call.op.ptr(), call.algorithm.ptr(), call.codec.ptr()};
    }

    View output, input;
};

// A plan and the memory that it is to run on. Without a plan: no equal call is known.
template <typename Plan>
struct RepeatedCall {
    std::shared_ptr<Plan> plan;
    std::byte* input = nullptr;
    std::byte* output = nullptr;
};

// The plans of calls on arrays of one device.
template <typename Plan>
class KnownPlans {
  public:
    explicit KnownPlans(int device) : device_(device) {}

    // `rank` is this rank: its part of the output may be the input, where the collective allows that.
    RepeatedCall<Plan> find(const OutsideCall& call, std::uint32_t rank) const {
        Views views;
        if (!views.look_at(call, tensors_, device_)) return {};
        const auto found = plans_.find(views.key_of(call));
        if (found == plans_.end()) return {};
        if (!call.input.is_valid()) return {found->second.plan, views.output.data, views.output.data};
        if (views.input.overlaps(views.output) &&
            !(found->second.part_is_input && views.input.data == views.output.data + rank * views.input.bytes))
            return {};
        return {found->second.plan, views.input.data, views.output.data};
    }
    // `part_is_input`: the input may be this rank's part of the output.
    void remember(std::shared_ptr<Plan> plan, const OutsideCall& call, bool part_is_input) {
        tensors_.find();
        Views views;
        if (!views.look_at(call, tensors_, device_)) return;
        nanobind::object input_dtype, output_dtype;
        if (call.output.is_valid()) output_dtype = call.output.attr("dtype");
        if (call.input.is_valid()) input_dtype = call.input.attr("dtype");
        if (plans_.size() >= most_known_plans) plans_.clear();
        plans_[views.key_of(call)] = {std::move(plan),
                                      input_dtype,
                                      output_dtype,
                                      nanobind::borrow(call.op),
                                      nanobind::borrow(call.algorithm),
                                      nanobind::borrow(call.codec),
                                      part_is_input};
    }
    void forget(const std::shared_ptr<Plan>& plan) {
        std::erase_if(plans_, [&](const auto& known) { return known.second.plan == plan; });
    }
    void clear() { plans_.clear(); }

  private:
    struct Known {
        std::shared_ptr<Plan> plan;
        nanobind::object input_dtype, output_dtype, op, algorithm, codec;  // kept alive: their addresses identify them
        bool part_is_input;
    };

    int device_;
    std::unordered_map<CallKey, Known, CallKeyHash> plans_;
    TensorTypes tensors_;
};

}  // namespace unisono::bindings
