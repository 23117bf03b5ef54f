#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>

namespace unisono::bindings {

// Whoever can repeat a call that was made before.
class Repeats {
  public:
    virtual ~Repeats() = default;
    // Executes the plan of an equal call; false: there was none, nothing was done. `input` is null where the collective
    // takes one array. Throws python_error.
    virtual bool repeat(std::uint64_t collective, nanobind::handle output, nanobind::handle input, nanobind::handle op,
                        std::uint64_t root, nanobind::handle algorithm, nanobind::handle codec) = 0;
};

nanobind::object make_quick_call(nanobind::object rank, Repeats& repeats, std::uint64_t collective, int arrays,
                                 nanobind::object default_op, nanobind::object method);

}  // namespace unisono::bindings
