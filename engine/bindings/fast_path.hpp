// The fast path of a call: if an equal call was made before, its plan is found and run without any Python code.
//
// The plan cache is in Python (comm/plan_cache.py); its key is a record of checked arguments. This table is its
// lookaside: it finds the same plans by what a call looks like from outside, before anything about it was computed.
// To build the record and hash it takes several times as long as the whole call of a few bytes, so one cache could not
// serve both. A plan that the cache drops is forgotten here.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "array_view.hpp"
#include "unisono/executor.hpp"

namespace unisono::bindings {

// A call as the caller wrote it. `output` and `input` are null where the collective has no such array.
struct OutsideCall {
    std::uint64_t collective;
    nanobind::handle output, input, op;
    std::uint64_t root;
    nanobind::handle algorithm, codec;
};

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

// A plan and the memory that it is to run on. Without a plan: no equal call is known.
struct RepeatedCall {
    std::shared_ptr<Plan> plan;
    const void* input = nullptr;
    void* output = nullptr;
};

class KnownPlans {
  public:
    // `rank` is this rank: its part of the output may be the input, where the collective allows that.
    RepeatedCall find(const OutsideCall& call, std::uint32_t rank) const;
    // `part_is_input`: the input may be this rank's part of the output.
    void remember(std::shared_ptr<Plan> plan, const OutsideCall& call, bool part_is_input);
    void forget(const std::shared_ptr<Plan>& plan);
    void clear() { plans_.clear(); }

  private:
    struct Known {
        std::shared_ptr<Plan> plan;
        nanobind::object input_dtype, output_dtype, op, algorithm, codec;  // kept alive: their addresses identify them
        bool part_is_input;
    };

    std::unordered_map<CallKey, Known, CallKeyHash> plans_;
    TensorTypes tensors_;
};

// Repeats a call that was made before.
class FastPath {
  public:
    virtual ~FastPath() = default;
    // Returns a null object if no equal call is known; nothing was done then. Otherwise runs the plan and returns None,
    // or, with `async_op`, starts it and returns its Work. A negative timeout is that of the endpoint. Throws
    // python_error.
    virtual nanobind::object repeat(nanobind::handle self, const OutsideCall& call, double timeout_s, bool async_op) = 0;
};

// Returns a callable that makes the calls of one collective: on the fast path where it can, else by `method`, the
// Python method of the same name, with the same arguments.
nanobind::object make_fast_call(nanobind::object endpoint, FastPath& fast_path, std::uint64_t collective, int arrays,
                                nanobind::object default_op, nanobind::object method);

}  // namespace unisono::bindings
