// The number formats: how an element lies in memory (`Raw`), what it is computed in (`Wide`), and the way between.
// Same bits as the loops of the engine: a result that is not a number is the canonical NaN; floats of fewer than 32
// bits are computed in float and rounded to nearest even.
#pragma once

#include "platform.cuh"

namespace unisono_kernel {

enum class Kind { integer, boolean, floating, complex };

template <typename T>
struct Integer {
    static constexpr Kind kind = Kind::integer;
    using Raw = T;
    using Wide = T;
    static DEVICE_MEMBER Wide widen(Raw raw) { return raw; }
    static DEVICE_MEMBER Raw narrow(Wide wide) { return wide; }
};

// A byte: values other than 0 and 1 are not valid as bool.
struct Boolean : Integer<u8> {
    static constexpr Kind kind = Kind::boolean;
};

template <typename T>
struct FloatBits;
template <>
struct FloatBits<float> {
    using Bits = u32;
    static constexpr Bits nan = 0x7fc00000u, quiet = 0x00400000u;
};
template <>
struct FloatBits<double> {
    using Bits = u64;
    static constexpr Bits nan = 0x7ff8000000000000ull, quiet = 0x0008000000000000ull;
};

// Replaces any NaN by the canonical one, as bits.
template <typename T>
DEVICE typename FloatBits<T>::Bits settled(T value) {
    return value == value ? bits_as<typename FloatBits<T>::Bits>(value) : FloatBits<T>::nan;
}

// Divides as processors do that keep the bits of a NaN (GPUs do not).
template <typename T>
DEVICE typename FloatBits<T>::Bits quotient(T value, T divisor) {
    using B = FloatBits<T>;
    const auto bits = bits_as<typename B::Bits>(value);
    return value == value ? bits_as<typename B::Bits>(value / divisor) : bits | B::quiet;
}

template <typename T>
struct Float {
    static constexpr Kind kind = Kind::floating;
    using Raw = typename FloatBits<T>::Bits;
    using Wide = T;
    using Divisor = T;
    static DEVICE_MEMBER Wide widen(Raw raw) { return bits_as<T>(raw); }
    static DEVICE_MEMBER Raw narrow(Wide wide) { return settled(wide); }
    static DEVICE_MEMBER Divisor divisor(u32 size) { return static_cast<T>(size); }
    static DEVICE_MEMBER Raw divide(Raw raw, Divisor by) { return quotient(bits_as<T>(raw), by); }
};

template <typename T>
struct Pair {
    T real, imaginary;
};
struct alignas(16) RawPair {
    u64 real, imaginary;
};

template <typename T>
struct Complex {
    static constexpr Kind kind = Kind::complex;
    using B = FloatBits<T>;
    using Bits = typename B::Bits;
    using Wide = Pair<T>;
    using Divisor = T;  // the inverse of the size
    struct OfFloats {
        using Raw = u64;
        static DEVICE_MEMBER Raw pack(Bits real, Bits imaginary) { return real | static_cast<u64>(imaginary) << 32; }
        static DEVICE_MEMBER Bits real(Raw raw) { return static_cast<Bits>(raw); }
        static DEVICE_MEMBER Bits imaginary(Raw raw) { return static_cast<Bits>(raw >> 32); }
    };
    struct OfDoubles {
        using Raw = RawPair;
        static DEVICE_MEMBER Raw pack(Bits real, Bits imaginary) { return {real, imaginary}; }
        static DEVICE_MEMBER Bits real(Raw raw) { return static_cast<Bits>(raw.real); }
        static DEVICE_MEMBER Bits imaginary(Raw raw) { return static_cast<Bits>(raw.imaginary); }
    };
    using Packing = Choice<sizeof(T) == 4, OfFloats, OfDoubles>;
    using Raw = typename Packing::Raw;

    static DEVICE_MEMBER Wide widen(Raw raw) { return {bits_as<T>(Packing::real(raw)), bits_as<T>(Packing::imaginary(raw))}; }
    // If one part of a complex number is NaN, both become NaN.
    static DEVICE_MEMBER Raw narrow(Wide wide) {
        const bool number = wide.real == wide.real && wide.imaginary == wide.imaginary;
        return Packing::pack(number ? bits_as<Bits>(wide.real) : B::nan, number ? bits_as<Bits>(wide.imaginary) : B::nan);
    }
    static DEVICE_MEMBER Divisor divisor(u32 size) { return static_cast<T>(1) / static_cast<T>(size); }

    // Divides as numpy does by a complex number whose imaginary part is 0: it multiplies by the inverse, and adds the
    // other part times 0, so that an infinite part makes the other part NaN.
    static DEVICE_MEMBER Raw divide(Raw raw, Divisor inverse) {
        const Wide v = widen(raw);
        return Packing::pack(settled((v.real + v.imaginary * static_cast<T>(0)) * inverse),
                             settled((v.imaginary - v.real * static_cast<T>(0)) * inverse));
    }
};

// What all floats of fewer than 32 bits share; F converts.
template <typename F, typename R>
struct SmallFloat {
    static constexpr Kind kind = Kind::floating;
    using Raw = R;
    using Wide = float;
    using Divisor = float;
    static DEVICE_MEMBER Wide widen(Raw raw) { return F::widen(raw); }
    static DEVICE_MEMBER Raw narrow(Wide wide) { return static_cast<Raw>(F::narrow(wide)); }
    // The size is first rounded to the type.
    static DEVICE_MEMBER Divisor divisor(u32 size) { return widen(narrow(static_cast<float>(size))); }
    static DEVICE_MEMBER Raw divide(Raw raw, Divisor by) { return narrow(widen(raw) / by); }
};

// A sign bit, E bits of exponent, M bits of mantissa. With Finite there is no infinity: the highest exponent holds
// numbers as well, all ones is NaN, and numbers that are too large become NaN (as in float8_e4m3fn).
template <int E, int M, bool Finite>
struct Small {
    static constexpr int bits = 1 + E + M;
    static constexpr int bias = (1 << (E - 1)) - 1;
    static constexpr int shift = 23 - M;
    static constexpr u32 magnitude_mask = (1u << (E + M)) - 1;
    static constexpr u32 infinity = ((1u << E) - 1) << M;
    static constexpr u32 nan = Finite ? magnitude_mask : infinity | (1u << (M - 1));
    static constexpr u32 first_special = Finite ? nan : infinity;
    // The difference of the exponent biases, as bits of a float; the smallest normal number of the format as a float.
    static constexpr u32 rebias = static_cast<u32>(127 - bias) << 23;
    static constexpr u32 smallest_normal = rebias + (1u << 23);

    // Moves exponent and mantissa to their position in a float; a multiplication by a power of two then corrects the
    // bias, exactly, and for subnormal numbers as well.
    static DEVICE_MEMBER float widen(u32 raw) {
        const u32 magnitude = raw & magnitude_mask, sign = (raw << (32 - bits)) & 0x80000000u;
        const float scale = bits_as<float>(static_cast<u32>(127 + 127 - bias) << 23);
        const u32 number = bits_as<u32>(bits_as<float>(magnitude << shift) * scale);
        const u32 special = magnitude >= first_special ? (Finite ? 0x7fc00000u : 0x7f800000u) : 0;
        return bits_as<float>(number | special | sign);
    }

    // Adding a power of two whose last mantissa bit is the last bit of the format makes the processor round to nearest
    // even. All subnormal numbers have the last bit of the smallest normal ones.
    static DEVICE_MEMBER u32 round_magnitude(u32 magnitude) {
        const u32 exponent = (magnitude > smallest_normal ? magnitude : smallest_normal) & 0x7f800000u;
        const u32 magic = exponent + (static_cast<u32>(shift) << 23);
        const u32 rounded = bits_as<u32>(bits_as<float>(magnitude) + bits_as<float>(magic)) - magic;
        return rounded + (exponent >> shift) - (smallest_normal >> shift);
    }

    static DEVICE_MEMBER u32 narrow(float value) {
        constexpr u32 too_large = (first_special << shift) + rebias;
        const u32 wide = bits_as<u32>(value), magnitude = wide & 0x7fffffffu;
        if (!(value == value)) return nan;
        const u32 code = round_magnitude(magnitude < too_large ? magnitude : too_large);
        return code == nan ? nan : code | ((wide >> (32 - bits)) & (magnitude_mask + 1));  // NaN has no sign
    }
};

#if defined(UNISONO_HOST)
using Half = Small<5, 10, false>;
#else
// GPUs convert Half in hardware.
struct Half {
    static DEVICE_MEMBER float widen(u32 raw) {
        float value;
        asm("{.reg .b16 h; cvt.u16.u32 h, %1; cvt.f32.f16 %0, h;}" : "=f"(value) : "r"(raw));
        return value;
    }
    static DEVICE_MEMBER u32 narrow(float value) {
        u32 raw;
        asm("{.reg .b16 h; cvt.rn.f16.f32 h, %1; cvt.u32.u16 %0, h;}" : "=r"(raw) : "f"(value));
        return value == value ? raw : 0x7e00u;
    }
};
#endif

// bfloat16 is the upper half of a float.
struct BFloat {
    static DEVICE_MEMBER float widen(u32 raw) { return bits_as<float>(raw << 16); }
    static DEVICE_MEMBER u32 narrow(float value) {
        const u32 bits = settled(value);
        return (bits + 0x7fffu + ((bits >> 16) & 1)) >> 16;
    }
};

using dtype_float32 = Float<float>;
using dtype_float64 = Float<double>;
using dtype_float16 = SmallFloat<Half, u16>;
using dtype_bfloat16 = SmallFloat<BFloat, u16>;
using dtype_float8_e4m3fn = SmallFloat<Small<4, 3, true>, u8>;
using dtype_float8_e5m2 = SmallFloat<Small<5, 2, false>, u8>;
using dtype_int8 = Integer<signed char>;
using dtype_int16 = Integer<short>;
using dtype_int32 = Integer<int>;
using dtype_int64 = Integer<long long>;
using dtype_uint8 = Integer<u8>;
using dtype_uint16 = Integer<u16>;
using dtype_uint32 = Integer<u32>;
using dtype_uint64 = Integer<u64>;
using dtype_bool = Boolean;
using dtype_complex64 = Complex<float>;
using dtype_complex128 = Complex<double>;

}  // namespace unisono_kernel
