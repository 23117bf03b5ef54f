// Fast sums of 8-bit floats.
//
// Most of the cost of widening and narrowing is due to the bias of the exponent. A sum does not need it: exponent and
// mantissa are shifted unchanged to their position in a float, which makes all numbers smaller by the same power of
// two, and are shifted back after rounding. Sums have the same bits at either scale, because all 8-bit floats are
// multiples of the smallest one, which even at this scale is more than a million times the smallest float. Infinity and
// NaN do not survive; if there is one, or a sum is too large, the lanes are added again by the general loop.
#pragma once

#include "small_floats.hpp"

namespace unisono::UNISONO_VARIANT {

struct ScaledLanes {
    Lanes<float> numbers;
    Bytes largest;  // in each byte, the largest number loaded, as twice its magnitude
};

template <typename T>
inline constexpr bool in_own_scale = false;
template <>
inline constexpr bool in_own_scale<Float8E4M3> = true;
template <>
inline constexpr bool in_own_scale<Float8E5M2> = true;

template <typename T>
struct OwnScale {
    static_assert(T::bits == 8);
    static constexpr std::uint32_t first_special = T::finite ? T::nan : T::infinity;
    static constexpr int shift = T::shift - 16;  // of a number in the upper half of a float

    static UNISONO_INLINE ScaledLanes load_lanes(const char* from) {
        using SignedHalves = Vector<std::int16_t>;
        constexpr std::uint16_t mask = 0x8000u | (T::magnitude_mask << shift);
        const Bytes bytes = load<Bytes>(from);
        const Halves pairs = bits_as<Halves>(bytes);
        const Halves odd = bits_as<Halves>(bits_as<SignedHalves>(pairs) >> (8 - T::exponent_bits)) & mask;
        const Halves even = bits_as<Halves>(bits_as<SignedHalves>(pairs << 8) >> (8 - T::exponent_bits)) & mask;
        const Words x = bits_as<Words>(even), y = bits_as<Words>(odd);
        return {{{BFloat::widen(x, 0), BFloat::widen(x, 1), BFloat::widen(y, 0), BFloat::widen(y, 1)}}, bytes + bytes};
    }

    static UNISONO_INLINE Words rounded(Floats value) {
        const Words bits = bits_as<Words>(value);
        // The usual + 1 for an odd number is an `or` here: it matters only for an exact half.
        return (bits | ((bits >> T::shift) & 1)) + ((1u << (T::shift - 1)) - 1);
    }

    // Moves each number to the upper byte of its half: the sign, and the bits below those that only a float uses.
    static UNISONO_INLINE Halves narrow(Halves number) {
        return chosen(0x8000, number, number << (8 - T::exponent_bits));
    }

    // Returns false, and stores nothing, unless all addends and all sums are finite.
    static UNISONO_INLINE bool try_store(char* to, const ScaledLanes& lanes) {
        const Floats* const value = lanes.numbers.part;
        const Halves even = upper_halves(rounded(value[0]), rounded(value[1]));
        const Halves odd = upper_halves(rounded(value[2]), rounded(value[3]));
        // Adding this carries the first number that is too large into the next power of two, an unused bit.
        constexpr std::uint16_t limit = 1u << (T::exponent_bits + 7);
        constexpr std::uint16_t lift = limit - (first_special << shift);
        const Halves too_large = ((even + lift) | (odd + lift)) & static_cast<std::uint16_t>(0x8000 - limit);
        // One branch for both tests.
        const int special = int{any_at_least(lanes.largest, 2 * first_special)} | int{any(bits_as<Words>(too_large))};
        if (__builtin_expect(special, 0)) return false;
        store(to, chosen(0xff00, narrow(odd), narrow(even) >> 8));
        return true;
    }
};

}  // namespace unisono::UNISONO_VARIANT
