// Numbers of 16 and 8 bits as they are stored, and their way to float and back.
//
// Everything is in the namespace of the variant (see combine.cpp): an inline function compiled for newer instructions
// must never be linked in place of the same one compiled for older ones.
#pragma once

#include <cstdint>
#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace unisono::UNISONO_VARIANT {

template <typename To, typename From>
inline To bits_as(From value) {
    return __builtin_bit_cast(To, value);
}

// A floating-point format: a sign bit, E bits of exponent, M bits of mantissa. With Finite it has no infinity: the
// highest exponent holds numbers too, all ones is NaN, and what is too large becomes NaN (as float8_e4m3fn).
template <int E, int M, bool Finite, typename Bits>
struct Small {
    Bits bits;

    static constexpr int bias = (1 << (E - 1)) - 1;
    static constexpr int shift = 23 - M;
    static constexpr std::uint32_t sign_mask = 1u << (E + M);
    static constexpr std::uint32_t nan = Finite ? sign_mask - 1 : ((1u << (E + 1)) - 1) << (M - 1);
    static constexpr std::uint32_t infinity = ((1u << E) - 1) << M;
    // The largest magnitude that is a number.
    static constexpr std::uint32_t largest = Finite ? nan - 1 : infinity - 1;

    static float widen(Small x) {
        const std::uint32_t magnitude = x.bits & (sign_mask - 1);
        const std::uint32_t sign = static_cast<std::uint32_t>(x.bits & sign_mask) << (31 - E - M);
        // Shift exponent and mantissa into place, then let a multiplication mend the bias: exact, and right for
        // subnormal numbers too.
        const float scale = bits_as<float>(static_cast<std::uint32_t>(127 + 127 - bias) << 23);
        float value = bits_as<float>(magnitude << shift) * scale;
        std::uint32_t wide = bits_as<std::uint32_t>(value);
        wide = magnitude > largest ? (!Finite && magnitude == infinity ? 0x7f800000u : 0x7fc00000u) : wide;
        return bits_as<float>(wide | sign);
    }

    static Small narrow(float value) {
        const std::uint32_t wide = bits_as<std::uint32_t>(value);
        const std::uint32_t sign = (wide >> (31 - E - M)) & sign_mask;
        const std::uint32_t magnitude = wide & 0x7fffffffu;
        // Normal numbers: round the mantissa to nearest even in place, then take off the difference of the biases.
        const std::uint32_t rounded = magnitude + ((1u << (shift - 1)) - 1) + ((magnitude >> shift) & 1);
        const std::uint32_t normal = (rounded >> shift) - (static_cast<std::uint32_t>(127 - bias) << M);
        // Subnormal numbers: adding a number whose last mantissa bit is our smallest step makes the processor round.
        const float magic = bits_as<float>(static_cast<std::uint32_t>(127 - bias + 1 + shift) << 23);
        const std::uint32_t subnormal =
            bits_as<std::uint32_t>(bits_as<float>(magnitude) + magic) - bits_as<std::uint32_t>(magic);
        const std::uint32_t smallest_normal = static_cast<std::uint32_t>(127 - bias + 1) << 23;
        std::uint32_t result = magnitude < smallest_normal ? subnormal : normal;
        const std::uint32_t overflow = Finite ? nan : infinity;
        result = (magnitude >= smallest_normal && normal > largest) ? overflow : result;
        result = magnitude > 0x7f800000u ? nan : result;
        return {static_cast<Bits>(result == nan ? nan : result | sign)};  // there is one NaN, without a sign
    }
};

using Half = Small<5, 10, false, std::uint16_t>;
using Float8E4M3 = Small<4, 3, true, std::uint8_t>;
using Float8E5M2 = Small<5, 2, false, std::uint8_t>;

// Conversions go block by block: a block of floats stays in the first-level cache.
inline constexpr int block = 256;

template <typename T>
inline void widen_block(float* out, const T* in) {
    for (int i = 0; i < block; ++i) out[i] = T::widen(in[i]);
}
template <typename T>
inline void narrow_block(T* out, const float* in) {
    for (int i = 0; i < block; ++i) out[i] = T::narrow(in[i]);
}

#if defined(__F16C__)
// Half is the one that processors convert by themselves.
inline void widen_block(float* out, const Half* in) {
    for (int i = 0; i < block; i += 8)
        _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i))));
}
inline void narrow_block(Half* out, const float* in) {
    for (int i = 0; i < block; i += 8)
        _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT));
}
#endif

// bfloat16 is the upper half of a float: no change of exponent.
struct BFloat {
    std::uint16_t bits;
    static float widen(BFloat x) { return bits_as<float>(static_cast<std::uint32_t>(x.bits) << 16); }
    static BFloat narrow(float value) {
        const std::uint32_t wide = bits_as<std::uint32_t>(value);
        const std::uint32_t rounded = wide + 0x7fffu + ((wide >> 16) & 1);
        const bool is_nan = (wide & 0x7fffffffu) > 0x7f800000u;
        return {static_cast<std::uint16_t>(is_nan ? 0x7fc0u : rounded >> 16)};
    }
};

}  // namespace unisono::UNISONO_VARIANT
