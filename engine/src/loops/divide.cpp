// The loops that turn a sum into an average. Compiled several times, like combine.cpp.
#include <type_traits>

#include "complex.hpp"
#include "small_floats.hpp"
#include "unisono/reduce.hpp"

namespace unisono::UNISONO_VARIANT {

// Divides a register by another, whose elements are all equal.
template <typename T, typename E = typename LaneTraits<T>::Element>
UNISONO_INLINE Vector<E> quotient(Vector<E> value, Vector<E> divisor) {
    if constexpr (is_complex<T>) {
        // Divides as numpy does by a complex number whose imaginary part is 0: it multiplies by the inverse, and an
        // infinite part makes the other part NaN. The sign of that NaN depends on the processor.
        const Vector<E> inverse = static_cast<E>(1) / divisor;
        const Vector<E> nothing = parts<Parts::exchanged, E>(value) * static_cast<E>(0);
        return settled<E>(put_together<E>(value + nothing, value - nothing) * inverse);
    } else {
        return value / divisor;
    }
}

template <typename T>
void divide(void* out, const void* in, std::size_t size, std::size_t count) {
    using L = LaneTraits<T>;
    using E = typename L::Element;
    alignas(register_bytes) char side[L::bytes];
    // The divisor is first rounded to the type.
    Lanes<E> divisors;
    for (Vector<E>& part : divisors.part) part = all(static_cast<E>(size));
    L::store_lanes(side, divisors);
    const Vector<E> divisor = L::load_lanes(side).part[0];

    const std::size_t bytes = count * (L::bytes / L::count);
    for (std::size_t at = 0; at < bytes; at += L::bytes) {
        const char* const from = static_cast<const char*>(in) + at;
        char* const to = static_cast<char*>(out) + at;
        const std::size_t rest = bytes - at;  // the rest is handled in a copy on the stack
        if (rest < L::bytes) __builtin_memcpy(side, from, rest);
        auto lanes = L::load_lanes(rest < L::bytes ? side : from);
        for (Vector<E>& part : lanes.part) part = quotient<T>(part, divisor);
        L::store_lanes(rest < L::bytes ? side : to, lanes);
        if (rest < L::bytes) __builtin_memcpy(to, side, rest);
    }
}

Divide find_divide(DType dtype) {
    switch (dtype) {
        case DType::float32: return divide<float>;
        case DType::float64: return divide<double>;
        case DType::float16: return divide<Half>;
        case DType::bfloat16: return divide<BFloat>;
        case DType::float8_e4m3fn: return divide<Float8E4M3>;
        case DType::float8_e5m2: return divide<Float8E5M2>;
        case DType::complex64: return divide<Complex<float>>;
        case DType::complex128: return divide<Complex<double>>;
        default: return nullptr;
    }
}

}  // namespace unisono::UNISONO_VARIANT
