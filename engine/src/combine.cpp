// The loops behind find_combine. This file is compiled several times, each time for other instructions (see
// CMakeLists.txt): UNISONO_VARIANT is the name of the namespace, so that the copies do not meet.
//
// The loops are plain and without branches: the compiler makes vector instructions of them. It must not contract a
// product and a sum into one operation, as the bits would then depend on the processor (-ffp-contract=off).
#include <type_traits>

#include "numbers.hpp"
#include "unisono/reduce.hpp"

// The iterations of the next loop do not depend on each other: `out` is one of the inputs, element for element, or apart.
#if defined(__clang__)
#define UNISONO_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define UNISONO_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace unisono::UNISONO_VARIANT {

template <typename T>
using BitsOf = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

// One NaN for all.
template <typename T>
inline constexpr T not_a_number = static_cast<T>(__builtin_nanf(""));

template <typename T>
inline T settled(T value) {
    return value == value ? value : not_a_number<T>;
}

template <Reduction R, typename T>
inline T combine_floats(T a, T b) {
    if constexpr (R == Reduction::sum) {
        return settled(a + b);
    } else if constexpr (R == Reduction::prod) {
        return settled(a * b);
    } else {
        // Equal numbers have equal bits but for zeros: the sign bit of the larger is the `and` of both.
        using Bits = BitsOf<T>;
        const Bits x = bits_as<Bits>(a), y = bits_as<Bits>(b);
        constexpr bool larger = R == Reduction::max;
        const T even = bits_as<T>(larger ? x & y : x | y);
        const T either = (larger ? a > b : a < b) ? a : b;
        const T number = a == b ? even : either;
        return ((a == a) & (b == b)) ? number : not_a_number<T>;
    }
}

template <Reduction R, typename T>
inline T combine_one(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
        return combine_floats<R>(a, b);
    } else if constexpr (std::is_same_v<T, bool>) {
        // As numpy: booleans are added with `or` and multiplied with `and`.
        if constexpr (R == Reduction::sum || R == Reduction::max || R == Reduction::bor) return a | b;
        if constexpr (R == Reduction::prod || R == Reduction::min || R == Reduction::band) return a & b;
        return a ^ b;
    } else {
        static_assert(std::is_integral_v<T>);
        using U = std::make_unsigned_t<T>;  // overflow wraps round
        if constexpr (R == Reduction::sum) return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
        if constexpr (R == Reduction::prod)
            return static_cast<T>(static_cast<std::uint64_t>(static_cast<U>(a)) * static_cast<U>(b));
        if constexpr (R == Reduction::max) return a > b ? a : b;
        if constexpr (R == Reduction::min) return a < b ? a : b;
        if constexpr (R == Reduction::band) return static_cast<T>(a & b);
        if constexpr (R == Reduction::bor) return static_cast<T>(a | b);
        return static_cast<T>(a ^ b);
    }
}

template <Reduction R, typename T>
void combine(void* out, const void* left, const void* right, std::size_t count) {
    T* const o = static_cast<T*>(out);
    const T* const a = static_cast<const T*>(left);
    const T* const b = static_cast<const T*>(right);
    UNISONO_INDEPENDENT
    for (std::size_t i = 0; i < count; ++i) o[i] = combine_one<R, T>(a[i], b[i]);
}

// Numbers of less than 32 bits: widened, combined as floats, and narrowed, a block at a time.
template <Reduction R, typename T>
void combine_small(void* out, const void* left, const void* right, std::size_t count) {
    T* o = static_cast<T*>(out);
    const T* a = static_cast<const T*>(left);
    const T* b = static_cast<const T*>(right);
    alignas(64) float x[block], y[block];
    for (; count >= block; count -= block, o += block, a += block, b += block) {
        widen_block(x, a);
        widen_block(y, b);
        for (int i = 0; i < block; ++i) x[i] = combine_floats<R>(x[i], y[i]);
        narrow_block(o, x);
    }
    for (std::size_t i = 0; i < count; ++i) o[i] = T::narrow(combine_floats<R>(T::widen(a[i]), T::widen(b[i])));
}

// Complex numbers: a result with a part that is not a number is NaN in both parts.
template <typename T>
inline void store_complex(T* o, std::size_t i, T re, T im) {
    const bool number = (re == re) & (im == im);
    o[2 * i] = number ? re : not_a_number<T>;
    o[2 * i + 1] = number ? im : not_a_number<T>;
}

template <Reduction R, typename T>
void combine_complex(void* out, const void* left, const void* right, std::size_t count) {
    static_assert(R == Reduction::sum || R == Reduction::prod);
    T* o = static_cast<T*>(out);
    const T* a = static_cast<const T*>(left);
    const T* b = static_cast<const T*>(right);
    // The products are stored before they are added: gcc 12 makes a fused operation of a product and an alternating
    // sum and difference even where it is told not to contract.
    alignas(64) T first_re[block], second_re[block], first_im[block], second_im[block];
    while (count > 0) {
        const std::size_t n = count < block ? count : block;
        for (std::size_t i = 0; i < n; ++i) {
            if constexpr (R == Reduction::sum) {
                first_re[i] = a[2 * i];
                second_re[i] = b[2 * i];
                first_im[i] = a[2 * i + 1];
                second_im[i] = b[2 * i + 1];
            } else {
                first_re[i] = a[2 * i] * b[2 * i];
                second_re[i] = -(a[2 * i + 1] * b[2 * i + 1]);
                first_im[i] = a[2 * i] * b[2 * i + 1];
                second_im[i] = a[2 * i + 1] * b[2 * i];
            }
        }
        for (std::size_t i = 0; i < n; ++i)
            store_complex(o, i, first_re[i] + second_re[i], first_im[i] + second_im[i]);
        count -= n;
        o += 2 * n;
        a += 2 * n;
        b += 2 * n;
    }
}

template <typename T>
Combine of_floats(Reduction reduction) {
    switch (reduction) {
        case Reduction::sum: return combine<Reduction::sum, T>;
        case Reduction::prod: return combine<Reduction::prod, T>;
        case Reduction::max: return combine<Reduction::max, T>;
        case Reduction::min: return combine<Reduction::min, T>;
        default: return nullptr;
    }
}

template <typename T>
Combine of_small(Reduction reduction) {
    switch (reduction) {
        case Reduction::sum: return combine_small<Reduction::sum, T>;
        case Reduction::prod: return combine_small<Reduction::prod, T>;
        case Reduction::max: return combine_small<Reduction::max, T>;
        case Reduction::min: return combine_small<Reduction::min, T>;
        default: return nullptr;
    }
}

template <typename T>
Combine of_integers(Reduction reduction) {
    switch (reduction) {
        case Reduction::sum: return combine<Reduction::sum, T>;
        case Reduction::prod: return combine<Reduction::prod, T>;
        case Reduction::max: return combine<Reduction::max, T>;
        case Reduction::min: return combine<Reduction::min, T>;
        case Reduction::band: return combine<Reduction::band, T>;
        case Reduction::bor: return combine<Reduction::bor, T>;
        case Reduction::bxor: return combine<Reduction::bxor, T>;
    }
    return nullptr;
}

template <typename T>
Combine of_complex(Reduction reduction) {
    switch (reduction) {
        case Reduction::sum: return combine_complex<Reduction::sum, T>;
        case Reduction::prod: return combine_complex<Reduction::prod, T>;
        default: return nullptr;
    }
}

Combine find_combine(DType dtype, Reduction reduction) {
    switch (dtype) {
        case DType::float32: return of_floats<float>(reduction);
        case DType::float64: return of_floats<double>(reduction);
        case DType::float16: return of_small<Half>(reduction);
        case DType::bfloat16: return of_small<BFloat>(reduction);
        case DType::float8_e4m3fn: return of_small<Float8E4M3>(reduction);
        case DType::float8_e5m2: return of_small<Float8E5M2>(reduction);
        case DType::int8: return of_integers<std::int8_t>(reduction);
        case DType::int16: return of_integers<std::int16_t>(reduction);
        case DType::int32: return of_integers<std::int32_t>(reduction);
        case DType::int64: return of_integers<std::int64_t>(reduction);
        case DType::uint8: return of_integers<std::uint8_t>(reduction);
        case DType::uint16: return of_integers<std::uint16_t>(reduction);
        case DType::uint32: return of_integers<std::uint32_t>(reduction);
        case DType::uint64: return of_integers<std::uint64_t>(reduction);
        case DType::boolean: return of_integers<bool>(reduction);
        case DType::complex64: return of_complex<float>(reduction);
        case DType::complex128: return of_complex<double>(reduction);
    }
    return nullptr;
}

}  // namespace unisono::UNISONO_VARIANT
