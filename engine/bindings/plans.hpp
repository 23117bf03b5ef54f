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
    std::uint64_t collective, input_bytes, output_bytes, format, root;
    const void* op;
    const void* algorithm;
    bool operator==(const CallKey&) const = default;
};

struct CallKeyHash {
    std::size_t operator()(const CallKey& key) const {
        std::uint64_t hash = key.collective;
        for (const std::uint64_t part : {key.input_bytes, key.output_bytes, key.format, key.root,
                                         reinterpret_cast<std::uint64_t>(key.op), reinterpret_cast<std::uint64_t>(key.algorithm)})
            hash = (hash ^ part) * 0x9e3779b97f4a7c15u;
        return hash ^ hash >> 32;
    }
};

struct KnownPlan {
    std::shared_ptr<Plan> plan;
    nanobind::object op, algorithm;  // kept alive, so that their addresses mean them and nothing else
};

using KnownPlans = std::unordered_map<CallKey, KnownPlan, CallKeyHash>;

// An array as Python's buffer protocol shows it; `valid` is false for anything but a contiguous array in native order.
class View {
  public:
    View(nanobind::handle array, bool writable);
    ~View() {
        if (valid) PyBuffer_Release(&buffer_);
    }
    View(const View&) = delete;
    View& operator=(const View&) = delete;

    bool valid;
    void* data() const { return buffer_.buf; }
    std::uint64_t bytes() const { return static_cast<std::uint64_t>(buffer_.len); }
    std::uint64_t format() const { return format_; }
    bool overlaps(const View& other) const;

  private:
    Py_buffer buffer_;
    std::uint64_t format_ = 0;
};

void bind_plans(nanobind::module_& module);

}  // namespace unisono::bindings
