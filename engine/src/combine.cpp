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

// Only the name of a type: the loops see a complex number as two of its parts.
template <typename T>
struct Complex {
    using Part = T;
};
template <typename T>
inline constexpr bool is_complex = false;
template <typename T>
inline constexpr bool is_complex<Complex<T>> = true;

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

// The loop for a type and a reduction; nullptr where the reduction has no meaning for the type.
template <Reduction R, typename T>
constexpr Combine loop() {
    constexpr bool bitwise = R == Reduction::band || R == Reduction::bor || R == Reduction::bxor;
    constexpr bool ordering = R == Reduction::max || R == Reduction::min;
    if constexpr (std::is_integral_v<T>) {
        return combine<R, T>;
    } else if constexpr (bitwise || (ordering && is_complex<T>)) {
        return nullptr;
    } else if constexpr (is_complex<T>) {
        return combine_complex<R, typename T::Part>;
    } else if constexpr (std::is_floating_point_v<T>) {
        return combine<R, T>;
    } else {
        return combine_small<R, T>;
    }
}

template <typename T>
Combine find_loop(Reduction reduction) {
    switch (reduction) {
        case Reduction::sum: return loop<Reduction::sum, T>();
        case Reduction::prod: return loop<Reduction::prod, T>();
        case Reduction::max: return loop<Reduction::max, T>();
        case Reduction::min: return loop<Reduction::min, T>();
        case Reduction::band: return loop<Reduction::band, T>();
        case Reduction::bor: return loop<Reduction::bor, T>();
        case Reduction::bxor: return loop<Reduction::bxor, T>();
    }
    return nullptr;
}

Combine find_combine(DType dtype, Reduction reduction) {
    switch (dtype) {
        case DType::float32: return find_loop<float>(reduction);
        case DType::float64: return find_loop<double>(reduction);
        case DType::float16: return find_loop<Half>(reduction);
        case DType::bfloat16: return find_loop<BFloat>(reduction);
        case DType::float8_e4m3fn: return find_loop<Float8E4M3>(reduction);
        case DType::float8_e5m2: return find_loop<Float8E5M2>(reduction);
        case DType::int8: return find_loop<std::int8_t>(reduction);
        case DType::int16: return find_loop<std::int16_t>(reduction);
        case DType::int32: return find_loop<std::int32_t>(reduction);
        case DType::int64: return find_loop<std::int64_t>(reduction);
        case DType::uint8: return find_loop<std::uint8_t>(reduction);
        case DType::uint16: return find_loop<std::uint16_t>(reduction);
        case DType::uint32: return find_loop<std::uint32_t>(reduction);
        case DType::uint64: return find_loop<std::uint64_t>(reduction);
        case DType::boolean: return find_loop<bool>(reduction);
        case DType::complex64: return find_loop<Complex<float>>(reduction);
        case DType::complex128: return find_loop<Complex<double>>(reduction);
    }
    return nullptr;
}

}  // namespace unisono::UNISONO_VARIANT
