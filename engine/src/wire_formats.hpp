// The codes of each format of the wire, a register at a time: from a float to its code, and back.
//
// A format says what its limits are: `limit` is the largest number that is a code, `last_within` the largest one that is
// rounded to a code, both as the bits of a float. `nearest` and `stochastic` take what is at most `last_within` and `limit`
// in magnitude; all else is mended elsewhere (wire_loops.cpp).
#pragma once

#include "numbers.hpp"
#include "packing.hpp"

namespace unisono::UNISONO_VARIANT {

// The upper `Bits` bits of a die: below 2^Bits.
template <int Bits>
UNISONO_INLINE Words dice_below(Words dice) {
    return dice >> (32 - Bits);
}

template <typename S, bool Scaled>
struct FloatFormat {
    static constexpr bool scaled = Scaled;
    static constexpr int code_bytes = S::bits / 8;
    static constexpr bool has_infinity = !S::finite;
    static constexpr std::uint32_t nan = S::nan, infinity = S::infinity, sign_bit = S::magnitude_mask + 1;

    static constexpr std::uint32_t last_code = (S::finite ? S::nan : S::infinity) - 1;
    static constexpr std::uint32_t rebias = static_cast<std::uint32_t>(127 - S::bias) << 23;
    static constexpr std::uint32_t smallest_normal = rebias + (1u << 23);
    static constexpr std::uint32_t limit = (last_code << S::shift) + rebias;
    // The number half way to the next one is rounded to the even one.
    static constexpr std::uint32_t last_within = limit + (1u << (S::shift - 1)) - (last_code & 1);

    static UNISONO_INLINE Words sign(Floats value) { return (bits_as<Words>(value) >> (32 - S::bits)) & sign_bit; }

    static UNISONO_INLINE Words nearest(Floats value) { return S::narrow_magnitude(value) | sign(value); }

    // Adds a number below the last bit, and cuts off: it carries in as many of all cases as the part cut off is large. A
    // number below the smallest normal one is lifted by this first, so that its last bit is in the same place.
    static UNISONO_INLINE Words stochastic(Floats value, Words dice) {
        const Floats magnitude = bits_as<Floats>(bits_as<Words>(value) & 0x7fffffffu);
        const Floats smallest = bits_as<Floats>(all(smallest_normal));
        const auto small = magnitude < smallest;
        const Words lifted = bits_as<Words>(small ? magnitude + smallest : magnitude);
        const Words cut = (lifted + dice_below<S::shift>(dice)) >> S::shift;
        return (cut - (small ? all(smallest_normal >> S::shift) : all(rebias >> S::shift))) | sign(value);
    }

    static UNISONO_INLINE Floats widen(Words code) { return settled<float>(S::widen(code, 0)); }
};

struct BrainFloat {
    static constexpr bool scaled = false, has_infinity = true;
    static constexpr int code_bytes = 2;
    static constexpr std::uint32_t nan = BFloat::nan, infinity = 0x7f80, sign_bit = 0x8000;
    static constexpr std::uint32_t limit = 0x7f7f0000u, last_within = 0x7f7f7fffu;

    static UNISONO_INLINE Words nearest(Floats value) {
        const Words bits = bits_as<Words>(value);
        return (bits + 0x7fffu + ((bits >> 16) & 1)) >> 16;
    }
    static UNISONO_INLINE Words stochastic(Floats value, Words dice) {
        return (bits_as<Words>(value) + dice_below<16>(dice)) >> 16;
    }
    static UNISONO_INLINE Floats widen(Words code) { return settled<float>(bits_as<Floats>(code << 16)); }
};

struct ScaledInteger {
    static constexpr bool scaled = true, has_infinity = false;
    static constexpr int code_bytes = 1;
    static constexpr std::uint32_t nan = 0x80, infinity = 0, sign_bit = 0;
    static constexpr std::uint32_t limit = 0x42fe0000u;         // 127
    static constexpr std::uint32_t last_within = 0x42feffffu;   // just below 127.5, which goes to 128, as that is even

    static UNISONO_INLINE Words nearest(Floats value) {
        // The sum has no room for a fraction: the processor rounds it.
        const float magic = 0x1.8p23f;
        return bits_as<Words>(value + magic) & 0xffu;
    }
    static UNISONO_INLINE Words stochastic(Floats value, Words dice) {
        using Integers = Vector<std::int32_t>;
        // With 24 bits of fraction; 127 and the largest die are just below 2^31.
        const Integers fixed = __builtin_convertvector(value * 0x1p24f, Integers);
        return ((bits_as<Words>(fixed) + dice_below<24>(dice)) >> 24) & 0xffu;
    }
    static UNISONO_INLINE Floats widen(Words code) {
        using Integers = Vector<std::int32_t>;
        const Floats number = __builtin_convertvector(bits_as<Integers>(code << 24) >> 24, Floats);
        return code == nan ? all(not_a_number<float>) : number;
    }
};

using Float16 = FloatFormat<Half, false>;
using ScaledE4M3 = FloatFormat<Float8E4M3, true>;
using ScaledE5M2 = FloatFormat<Float8E5M2, true>;

}  // namespace unisono::UNISONO_VARIANT
