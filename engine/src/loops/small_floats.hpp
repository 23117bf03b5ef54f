// Floats of 16 and 8 bits, and their conversion to float and back, a register at a time.
//
// A register of 32-bit words holds two or four of them per word. They do not cross words: one register of floats gets
// the lowest of each word, the next register the second lowest, and so on. The order of the elements among the floats
// does not matter, because narrowing puts each one back into its position.
#pragma once

#include "vectors.hpp"

namespace unisono::UNISONO_VARIANT {

// Rounded numbers: their codes, in the lower bits of each word, and their values as floats.
struct Rounded {
    Words code;
    Floats number;
};

// A floating-point format: a sign bit, E bits of exponent, M bits of mantissa. With Finite it has no infinity: the
// highest exponent holds numbers as well, all ones is NaN, and numbers that are too large become NaN (as in
// float8_e4m3fn).
template <int E, int M, bool Finite>
struct Small {
    static constexpr bool finite = Finite;
    static constexpr int exponent_bits = E;
    static constexpr int bits = 1 + E + M;
    static constexpr int bias = (1 << (E - 1)) - 1;
    static constexpr int shift = 23 - M;
    static constexpr std::uint32_t magnitude_mask = (1u << (E + M)) - 1;
    static constexpr std::uint32_t infinity = ((1u << E) - 1) << M;
    static constexpr std::uint32_t nan = Finite ? magnitude_mask : infinity | (1u << (M - 1));
    // The difference of the exponent biases, as bits of a float; the smallest normal number of the format as a float.
    static constexpr std::uint32_t rebias = static_cast<std::uint32_t>(127 - bias) << 23;
    static constexpr std::uint32_t smallest_normal = rebias + (1u << 23);

    // Widens the number at a position of each word; position 0 is the lowest bits.
    static UNISONO_INLINE Floats widen(Words words, int position) {
        const Words top = words << (32 - bits * (position + 1));
        // Shifts exponent and mantissa into position; a multiplication then corrects the bias, exactly and for
        // subnormal numbers as well.
        const Words moved = bits_as<Words>(bits_as<Vector<std::int32_t>>(top) >> (8 - E));
        const Words wide = moved & ((1u << 31) | (magnitude_mask << shift));
        const float scale = bits_as<float>(static_cast<std::uint32_t>(127 + 127 - bias) << 23);
        const Floats value = bits_as<Floats>(wide) * scale;
        // Restores infinity and NaN, which became numbers. (A comparison gives all ones, or zero.)
        const Words magnitude = wide & 0x7fffffffu;
        const Words special = bits_as<Words>(magnitude >= ((Finite ? nan : infinity) << shift));
        return bits_as<Floats>(bits_as<Words>(value) | (special & (Finite ? 0x7fc00000u : 0x7f800000u)));
    }

    // Rounds a magnitude, which must not be too large, to nearest even.
    static UNISONO_INLINE Rounded round_magnitude(Words magnitude) {
        // Adding a power of two whose last mantissa bit is the last bit of the format makes the processor round to
        // nearest even. All subnormal numbers have the last bit of the smallest normal ones.
        const Words exponent = larger(magnitude, all(smallest_normal)) & 0x7f800000u;
        const Words magic = exponent + (static_cast<std::uint32_t>(shift) << 23);
        const Floats sum = bits_as<Floats>(magnitude) + bits_as<Floats>(magic);
        const Words rounded = bits_as<Words>(sum) - magic;
        return {rounded + (exponent >> shift) - (smallest_normal >> shift), sum - bits_as<Floats>(magic)};
    }

    // Returns the magnitude of a value that is not NaN, in the lower bits of each word.
    static UNISONO_INLINE Words narrow_magnitude(Floats value) {
        // The first value that is too large; it has the code of infinity or NaN.
        const std::uint32_t too_large = (Finite ? nan : infinity) << shift;
        return round_magnitude(smaller(bits_as<Words>(value) & 0x7fffffffu, all(too_large + rebias))).code;
    }
};

// bfloat16 is the upper half of a float; the exponent does not change.
struct BFloat {
    static constexpr int bits = 16;
    static constexpr std::uint32_t nan = 0x7fc0;
    static UNISONO_INLINE Floats widen(Words words, int position) {
        return bits_as<Floats>(position == 0 ? words << 16 : words & 0xffff0000u);
    }
    // Narrows two registers of floats into one of pairs. NaN stays NaN, because the NaNs of widened numbers and the
    // canonical NaN have a lower half of zeros.
    static UNISONO_INLINE Halves narrow(Floats even, Floats odd) {
        const Words x = bits_as<Words>(even), y = bits_as<Words>(odd);
        const Halves upper = upper_halves(x, y), lower = lower_halves(x, y);
        // Rounds up if the lower half is more than one half, or is exactly one half and the upper half is odd.
        const Halves decisive = lower | (upper & 1);
#if defined(__AVX512F__)
        return decisive > 0x8000 ? upper + 1 : upper;
#else
        return upper + 1 + bits_as<Halves>(decisive <= 0x8000);  // a comparison gives -1 (all ones) or 0
#endif
    }
};

using Half = Small<5, 10, false>;
using Float8E4M3 = Small<4, 3, true>;
using Float8E5M2 = Small<5, 2, false>;

// Moves elements of a type between memory and lanes. `Element` is the type of the computation.
template <typename T>
struct LaneTraits {
    using Element = T;
    static constexpr std::size_t count = sizeof(Lanes<T>) / sizeof(T);  // elements in the lanes
    static constexpr std::size_t bytes = sizeof(Lanes<T>);              // their bytes in memory

    static UNISONO_INLINE Lanes<T> load_lanes(const char* from) {
        Lanes<T> lanes;
        for (int i = 0; i < Lanes<T>::parts; ++i) lanes.part[i] = load<Vector<T>>(from + i * register_bytes);
        return lanes;
    }
    static UNISONO_INLINE void store_lanes(char* to, const Lanes<T>& lanes) {
        for (int i = 0; i < Lanes<T>::parts; ++i) store(to + i * register_bytes, lanes.part[i]);
    }
};

// Small floats: `per_word` registers of floats for each register of memory.
template <typename T>
struct SmallLaneTraits {
    using Element = float;
    static constexpr std::size_t count = sizeof(Lanes<float>) / sizeof(float);
    static constexpr std::size_t bytes = count * T::bits / 8;
    static constexpr int per_word = 32 / T::bits;

    static UNISONO_INLINE Lanes<float> load_lanes(const char* from) {
        Lanes<float> lanes;
        for (int i = 0; i < Lanes<float>::parts; i += per_word, from += register_bytes) {
            const Words words = load<Words>(from);
            for (int j = 0; j < per_word; ++j) lanes.part[i + j] = T::widen(words, j);
        }
        return lanes;
    }
};

template <int E, int M, bool Finite>
struct LaneTraits<Small<E, M, Finite>> : SmallLaneTraits<Small<E, M, Finite>> {
    using T = Small<E, M, Finite>;

    template <bool MayHaveNan>
    static UNISONO_INLINE void store_as(char* to, const Lanes<float>& lanes) {
        constexpr int per_word = 32 / T::bits;
        for (int i = 0; i < Lanes<float>::parts; i += per_word, to += register_bytes) {
            Words words{};
            for (int j = 0; j < per_word; ++j) {
                const Floats value = lanes.part[i + j];
                const Words wide = bits_as<Words>(value);
                Words narrow = T::narrow_magnitude(value);
                if (MayHaveNan) narrow = value == value ? narrow : all(T::nan);
                Words sign = (wide >> (32 - T::bits)) & (T::magnitude_mask + 1);
                // The canonical NaN has no sign.
                if (Finite || MayHaveNan) sign = narrow == T::nan ? Words{} : sign;
                words |= (narrow | sign) << (T::bits * j);
            }
            store(to, words);
        }
    }
    static UNISONO_INLINE void store_lanes(char* to, const Lanes<float>& lanes) {
        may_have_nan(lanes) ? store_as<true>(to, lanes) : store_as<false>(to, lanes);
    }
};

template <>
struct LaneTraits<BFloat> : SmallLaneTraits<BFloat> {
    static UNISONO_INLINE void store_lanes(char* to, Lanes<float> lanes) {
        if (may_have_nan(lanes))
            for (Floats& part : lanes.part) part = settled<float>(part);
        for (int i = 0; i < Lanes<float>::parts; i += 2, to += register_bytes) {
            store(to, BFloat::narrow(lanes.part[i], lanes.part[i + 1]));
        }
    }
};

#if defined(UNISONO_CONVERTS_HALVES)
// Processors convert Half in hardware.
template <>
struct LaneTraits<Half> {
    using Element = float;
    static constexpr std::size_t count = sizeof(Lanes<float>) / sizeof(float);
    static constexpr std::size_t bytes = count * 2;

    static UNISONO_INLINE Lanes<float> load_lanes(const char* from) {
        Lanes<float> lanes;
        for (Floats& part : lanes.part) {
#if defined(__AVX512F__)
            part = (Floats)_mm512_maskz_cvtph_ps(0xffff, load<__m256i>(from));
#elif defined(__aarch64__)
            part = bits_as<Floats>(vcvt_f32_f16(load<float16x4_t>(from)));
#else
            part = (Floats)_mm256_cvtph_ps(load<__m128i>(from));
#endif
            from += register_bytes / 2;
        }
        return lanes;
    }
    static UNISONO_INLINE void store_lanes(char* to, Lanes<float> lanes) {
        if (may_have_nan(lanes))
            for (Floats& part : lanes.part) part = settled<float>(part);
        for (const Floats& part : lanes.part) {
#if defined(__AVX512F__)
            store(to, _mm512_maskz_cvtps_ph(0xffff, (__m512)part, _MM_FROUND_TO_NEAREST_INT));
#elif defined(__aarch64__)
            store(to, vcvt_f16_f32(bits_as<float32x4_t>(part)));  // to nearest even, which no code here changes
#else
            store(to, _mm256_cvtps_ph((__m256)part, _MM_FROUND_TO_NEAREST_INT));
#endif
            to += register_bytes / 2;
        }
    }
};
#endif

}  // namespace unisono::UNISONO_VARIANT
