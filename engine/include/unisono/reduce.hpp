// Reductions of arrays: sum, product, maximum, minimum and bitwise operations.
//
// Every operation gives the same bits if its two sides are exchanged. Hardware does not guarantee that in two cases,
// which are defined here as in unisono/player/reduction.py: a result that is not a number is always the same NaN, and
// the larger of +0 and -0 is +0, the smaller -0. Types of fewer than 32 bits are computed in float and rounded to
// nearest even, once per operation.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace unisono {

// clang-format off
enum class DType : std::uint8_t {
    float32, float64, float16, bfloat16, float8_e4m3fn, float8_e5m2,
    int8, int16, int32, int64, uint8, uint16, uint32, uint64, boolean,
    complex64, complex128,
};
inline constexpr std::array dtype_names{
    "float32", "float64", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2",
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool",
    "complex64", "complex128",
};
inline constexpr std::array<std::size_t, dtype_names.size()> dtype_bytes{
    4, 8, 2, 2, 1, 1, 1, 2, 4, 8, 1, 2, 4, 8, 1, 8, 16,
};
// clang-format on

enum class Reduction : std::uint8_t { sum, prod, max, min, band, bor, bxor };
inline constexpr std::array reduction_names{"sum", "prod", "max", "min", "band", "bor", "bxor"};

// out[i] = left[i] (op) right[i]; `out` may be `left` or `right`.
using Combine = void (*)(void* out, const void* left, const void* right, std::size_t count);

// out[i] = first[i] (op) addends[0][i] (op) addends[1][i] ..., in this order, in one sweep over memory. `also`, unless
// it is null, gets a copy of the result. Numbers of fewer than 32 bits are widened once, combined as floats, and
// rounded once, at the end. There is at least one addend. `out` may be `first` or any addend; `also` overlaps nothing.
// No alignment is required.
using CombineMany = void (*)(void* out, void* also, const void* first, const void* const* addends,
                             std::size_t addend_count, std::size_t count);

// out[i] = in[i] / size, which turns a sum into an average. The size is first rounded to the type. `out` may be `in`.
using Divide = void (*)(void* out, const void* in, std::size_t size, std::size_t count);

enum class Wire : std::uint8_t;
struct WireLoops;

// The loops for one instruction set. All variants give the same bits.
struct Variant {
    const char* name;  // "baseline", "x86-64-v3", "x86-64-v4"
    // nullptr if the reduction is not defined for the type (a bitwise one for floating-point numbers).
    Combine (*find)(DType dtype, Reduction reduction);
    CombineMany (*find_many)(DType dtype, Reduction reduction);
    // nullptr for integers and booleans, which cannot hold an average.
    Divide (*find_divide)(DType dtype);
    // nullptr for Wire::none (see wire.hpp).
    const WireLoops* (*find_wire)(Wire wire);
};

// Returns the variants that this processor can run, the best one first.
const std::vector<Variant>& variants();

}  // namespace unisono
