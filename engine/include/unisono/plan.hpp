// The plan of a call, which the executor runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "unisono/program.hpp"
#include "unisono/reduce.hpp"
#include "unisono/wire.hpp"

namespace unisono {

// A program bound to the properties of a call: lengths, type and reduction.
struct Plan {
    struct Extent {
        std::uint64_t offset, length;  // of a part in its buffer, in bytes; work parts are one segment long
    };
    std::shared_ptr<const Program> program;
    std::vector<Extent> extents;      // of each part
    std::uint64_t segment_bytes = 0;  // of one chunk in one pass, at most
    std::uint64_t passes = 1;
    std::uint64_t work_bytes = 0;
    std::size_t element_bytes = 1;
    CombineMany combine = nullptr;
    Divide divide = nullptr;   // avg: the result is divided by the number of ranks
    bool skips_empty = false;  // empty messages are left out; both ends know the length of every message
    bool streams = false;      // results are too large for the caches and are written past them
    // The codec (float32 only). Segments are then a whole number of codec blocks.
    Wire wire = Wire::none;
    Reduction reduction = Reduction::sum;
    bool stochastic = false;
    std::uint64_t seed = 0;
    std::uint64_t fingerprint = 0;
    std::uint64_t number = 0;  // of the plan
    std::string text;          // describes the call in error messages
    bool prepared = false;     // its channels are open
};

}  // namespace unisono
