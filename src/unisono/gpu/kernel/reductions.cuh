// The reductions: one operation on two elements, with the bits of the engine's loops. Exchanging the two sides gives
// the same bits.
#pragma once

#include "formats.cuh"

namespace unisono_kernel {

enum class Op { none, sum, prod, max, min, band, bor, bxor };

// As in numpy, the sum of booleans is `or` and their product is `and`.
template <Op O>
constexpr Op of_booleans = O == Op::sum || O == Op::max ? Op::bor : O == Op::prod || O == Op::min ? Op::band : O;

template <Op O, typename T>
DEVICE T combine_integers(T a, T b) {
    // Overflow wraps around: the operation is done on unsigned words that are at least as wide.
    using U = Choice<sizeof(T) == 8, u64, u32>;
    const U x = static_cast<U>(a), y = static_cast<U>(b);
    if constexpr (O == Op::none) return a;
    if constexpr (O == Op::sum) return static_cast<T>(x + y);
    if constexpr (O == Op::prod) return static_cast<T>(x * y);
    if constexpr (O == Op::max) return a > b ? a : b;
    if constexpr (O == Op::min) return a < b ? a : b;
    if constexpr (O == Op::band) return static_cast<T>(x & y);
    if constexpr (O == Op::bor) return static_cast<T>(x | y);
    if constexpr (O == Op::bxor) return static_cast<T>(x ^ y);
}

template <Op O, typename T>
DEVICE T combine_floats(T a, T b) {
    if constexpr (O == Op::none) return a;
    if constexpr (O == Op::sum) return a + b;
    if constexpr (O == Op::prod) return a * b;
    if constexpr (O == Op::max || O == Op::min) {
        // Equal numbers have equal bits, except for zeros: the sign bit of the larger zero is the `and` of both.
        using Bits = typename FloatBits<T>::Bits;
        const Bits x = bits_as<Bits>(a), y = bits_as<Bits>(b);
        constexpr bool larger = O == Op::max;
        const T even = bits_as<T>(larger ? x & y : x | y);
        const T either = (larger ? a > b : a < b) ? a : b;  // b if a is NaN
        const T number = a == b ? even : either;
        return a == a ? number : a;
    }
}

template <Op O, typename D>
DEVICE typename D::Wide combine(typename D::Wide a, typename D::Wide b) {
    using Wide = typename D::Wide;
    if constexpr (D::kind == Kind::integer) return combine_integers<O>(a, b);
    if constexpr (D::kind == Kind::boolean) return combine_integers<of_booleans<O>>(a, b);
    if constexpr (D::kind == Kind::floating) return combine_floats<O>(a, b);
    if constexpr (D::kind == Kind::complex) {
        if constexpr (O == Op::none) return a;
        if constexpr (O == Op::sum) return Wide{a.real + b.real, a.imaginary + b.imaginary};
        if constexpr (O == Op::prod)
            return Wide{a.real * b.real - a.imaginary * b.imaginary, a.real * b.imaginary + a.imaginary * b.real};
    }
}

// The elements of a vector, in memory and in the type of the computation.
template <typename D>
constexpr u32 elements_of = VECTOR_BYTES / sizeof(typename D::Raw);
template <typename D>
struct Raws {
    typename D::Raw e[elements_of<D>];
};
template <typename D>
struct Wides {
    typename D::Wide e[elements_of<D>];
};

template <typename D>
DEVICE Wides<D> widen(const Vector& vector) {
    const auto raws = bits_as<Raws<D>>(vector);
    Wides<D> wides;
    UNROLL for (u32 i = 0; i < elements_of<D>; ++i) wides.e[i] = D::widen(raws.e[i]);
    return wides;
}

template <Op O, typename D>
DEVICE void accumulate(Wides<D>& wides, const Vector& vector) {
    const Wides<D> addend = widen<D>(vector);
    UNROLL for (u32 i = 0; i < elements_of<D>; ++i) wides.e[i] = combine<O, D>(wides.e[i], addend.e[i]);
}

template <typename D>
DEVICE Vector narrow(const Wides<D>& wides) {
    Raws<D> raws;
    UNROLL for (u32 i = 0; i < elements_of<D>; ++i) raws.e[i] = D::narrow(wides.e[i]);
    return bits_as<Vector>(raws);
}

// Turns sums into averages. Integers and booleans cannot hold one.
template <typename D>
constexpr bool divisible = D::kind == Kind::floating || D::kind == Kind::complex;

template <typename D>
DEVICE typename D::Raw divided(typename D::Raw raw, u32 size) {
    return D::divide(raw, D::divisor(size));
}
template <typename D>
DEVICE Vector divided(const Vector& vector, u32 size) {
    auto raws = bits_as<Raws<D>>(vector);
    UNROLL for (u32 i = 0; i < elements_of<D>; ++i) raws.e[i] = divided<D>(raws.e[i], size);
    return bits_as<Vector>(raws);
}

constexpr Op reduction_none = Op::none, reduction_sum = Op::sum, reduction_avg = Op::sum, reduction_prod = Op::prod,
             reduction_max = Op::max, reduction_min = Op::min, reduction_band = Op::band, reduction_bor = Op::bor,
             reduction_bxor = Op::bxor;

}  // namespace unisono_kernel
