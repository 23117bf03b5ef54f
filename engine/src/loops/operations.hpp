// One operation on two registers of floating-point numbers. Results that are not a number are an arbitrary NaN, which
// `settled` replaces by the canonical one.
#pragma once

#include <type_traits>

#include "unisono/reduce.hpp"
#include "vectors.hpp"

namespace unisono::UNISONO_VARIANT {

template <Reduction R, typename T>
UNISONO_INLINE Vector<T> combine_floats(Vector<T> a, Vector<T> b) {
    if constexpr (R == Reduction::sum) {
        return a + b;
    } else if constexpr (R == Reduction::prod) {
        return a * b;
    } else {
        // Equal numbers have equal bits, except for zeros: the sign bit of the larger zero is the `and` of both.
        using Bits = Vector<std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>;
        const Bits x = bits_as<Bits>(a), y = bits_as<Bits>(b);
        constexpr bool larger = R == Reduction::max;
        const Vector<T> even = bits_as<Vector<T>>(larger ? x & y : x | y);
        const Vector<T> either = (larger ? a > b : a < b) ? a : b;  // b if a is NaN
        const Vector<T> number = a == b ? even : either;
        return a == a ? number : a;
    }
}

}  // namespace unisono::UNISONO_VARIANT
