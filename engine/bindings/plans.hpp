// Programs and plans as they come from Python, and the plans of calls that were made before.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "unisono/executor.hpp"

namespace unisono::bindings {

// What a call looks like from outside, before anything about it was computed: if an equal one was made before, its
// plan is known. Names are compared by identity; an equal name elsewhere in memory only costs time.
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

struct KnownPlan {
    std::shared_ptr<Plan> plan;
    nanobind::object input_dtype, output_dtype, op, algorithm, codec;  // kept alive: their addresses mean them, nothing else
};

using KnownPlans = std::unordered_map<CallKey, KnownPlan, CallKeyHash>;

// A numpy array. (The buffer protocol would do too, but takes 100 ns, and does not know bfloat16.)
struct View {
    // False: it is something else, or not contiguous, or may not be written.
    bool look_at(nanobind::handle array, bool writable);
    bool overlaps(const View& other) const;

    std::byte* data = nullptr;
    std::uint64_t bytes = 0;
    const void* dtype = nullptr;  // the object that stands for the type: one for all arrays of a type, as a rule
};

void bind_plans(nanobind::module_& module);

}  // namespace unisono::bindings
