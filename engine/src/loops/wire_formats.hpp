// The codes of each wire format, a register at a time: from a float to its code, and back.
//
// The limits of a format: `limit` is the largest number that is a code, `last_within` the largest number that rounds to
// a code, both as the bits of a float. `nearest` takes magnitudes up to `last_within`, `stochastic` up to `limit`;
// wire_loops.cpp handles all others.
#pragma once

#include "small_floats.hpp"
#include "packing.hpp"

namespace unisono::UNISONO_VARIANT {

// Returns the upper `Bits` of the random bits, a number below 2^Bits.
template <int Bits>
UNISONO_INLINE Words random_below(Words random) {
    return random >> (32 - Bits);
}

// Loads the numbers of a codec block, a register at a time.
template <typename F>
UNISONO_INLINE CodecBlock<Floats> load_each(const char* from) {
    const CodecBlock<Words> codes = F::code_bytes == 1 ? load_bytes(from) : load_halves(from);
    CodecBlock<Floats> numbers;
    for (int i = 0; i < codec_block_registers; ++i) numbers.part[i] = F::widen(codes.part[i]);
    return numbers;
}

template <typename S, bool Scaled>
struct FloatFormat {
    static constexpr bool scaled = Scaled;
    static constexpr int code_bytes = S::bits / 8;
    static constexpr bool has_infinity = !S::finite;
    static constexpr std::uint32_t nan = S::nan, infinity = S::infinity, sign_bit = S::magnitude_mask + 1;

    static constexpr std::uint32_t last_code = (S::finite ? S::nan : S::infinity) - 1;
    static constexpr std::uint32_t limit = (last_code << S::shift) + S::rebias;
    // The number halfway to the next one rounds to even.
    static constexpr std::uint32_t last_within = limit + (1u << (S::shift - 1)) - (last_code & 1);

    static UNISONO_INLINE Rounded with_sign(Words bits, Rounded magnitude) {
        const Words sign = bits & 0x80000000u;
        return {magnitude.code | (sign >> (32 - S::bits)), bits_as<Floats>(bits_as<Words>(magnitude.number) | sign)};
    }

    static UNISONO_INLINE Rounded nearest(Floats value) {
        const Words bits = bits_as<Words>(value);
        return with_sign(bits, S::round_magnitude(bits & 0x7fffffffu));
    }

    // Adds random bits below the last bit and truncates: the probability of a carry is the truncated fraction. The
    // smallest normal number is first added to subnormal numbers, so that their last bit is in the same position.
    static UNISONO_INLINE Rounded stochastic(Floats value, Words random) {
        const Words bits = bits_as<Words>(value), magnitude = bits & 0x7fffffffu;
        const Words small = bits_as<Words>(magnitude < S::smallest_normal);  // all ones, or zero
        const Floats lift = bits_as<Floats>(small & S::smallest_normal);
        const Words lifted = bits_as<Words>(bits_as<Floats>(magnitude) + lift);
        const Words cut = (lifted + random_below<S::shift>(random)) >> S::shift;
        const Words code = cut - (S::rebias >> S::shift) - (small & ((1u << 23) >> S::shift));
        return with_sign(bits, {code, bits_as<Floats>(cut << S::shift) - lift});
    }

    // Loads the numbers of a codec block, which the caller must multiply by `loaded_factor`.
#if defined(UNISONO_CONVERTS_HALVES)
    static constexpr float loaded_factor = 1 << (Half::bias - S::bias);

    // Processors widen Half in hardware. The bits of the other formats are moved to the positions of a Half.
    static UNISONO_INLINE CodecBlock<Floats> load_block(const char* from) {
        CodecBlock<Floats> block;
        for (int i = 0; i < codec_block_registers; i += 2) {
            const Halves codes = code_bytes == 1 ? widened_bytes(from + i * words_per_register)
                                                 : load<Halves>(from + 2 * i * words_per_register);
            const Halves magnitude = codes & static_cast<std::uint16_t>(S::magnitude_mask);
            const Halves sign = (codes << (16 - S::bits)) & 0x8000;
            const Halves half = (magnitude << (S::shift - Half::shift)) | sign;
            const Halves settled = magnitude > static_cast<std::uint16_t>(S::finite ? last_code : infinity)
                                       ? all(static_cast<std::uint16_t>(Half::nan))
                                       : half;
            widen_halves(settled, block.part[i], block.part[i + 1]);
        }
        return block;
    }
#else
    static constexpr float loaded_factor = 1;

    // The same addition avoids subnormal floats, which are slow on some processors. (One large element makes all other
    // codes of its block small.)
    static UNISONO_INLINE Floats widen(Words code) {
        const Words magnitude = code & S::magnitude_mask;
        const Words small = bits_as<Words>(magnitude < (1u << (23 - S::shift)));
        const Words lifted = (magnitude << S::shift) + S::rebias + (small & (1u << 23));
        const Words number = bits_as<Words>(bits_as<Floats>(lifted) - bits_as<Floats>(small & S::smallest_normal));
        const Words special = bits_as<Words>(magnitude > last_code);
        const Words sign = (code & sign_bit) << (32 - S::bits);
        return settled<float>(bits_as<Floats>(number | (special & (S::finite ? 0x7fc00000u : 0x7f800000u)) | sign));
    }
    static UNISONO_INLINE CodecBlock<Floats> load_block(const char* from) { return load_each<FloatFormat>(from); }
#endif
};

struct BrainFloat {
    static constexpr bool scaled = false, has_infinity = true;
    static constexpr int code_bytes = 2;
    static constexpr std::uint32_t nan = BFloat::nan, infinity = 0x7f80, sign_bit = 0x8000;
    static constexpr std::uint32_t limit = 0x7f7f0000u, last_within = 0x7f7f7fffu;

    static UNISONO_INLINE Rounded cut(Words bits) { return {bits >> 16, bits_as<Floats>(bits & 0xffff0000u)}; }
    static UNISONO_INLINE Rounded nearest(Floats value) {
        const Words bits = bits_as<Words>(value);
        return cut(bits + 0x7fffu + ((bits >> 16) & 1));
    }
    static UNISONO_INLINE Rounded stochastic(Floats value, Words random) {
        return cut(bits_as<Words>(value) + random_below<16>(random));
    }
    static constexpr float loaded_factor = 1;
    static UNISONO_INLINE Floats widen(Words code) { return settled<float>(bits_as<Floats>(code << 16)); }
    static UNISONO_INLINE CodecBlock<Floats> load_block(const char* from) { return load_each<BrainFloat>(from); }
};

struct ScaledInteger {
    static constexpr bool scaled = true, has_infinity = false;
    static constexpr int code_bytes = 1;
    static constexpr std::uint32_t nan = 0x80, infinity = 0, sign_bit = 0;
    static constexpr std::uint32_t limit = 0x42fe0000u;        // 127
    static constexpr std::uint32_t last_within = 0x42feffffu;  // just below 127.5, which rounds to even: 128

    static UNISONO_INLINE Rounded nearest(Floats value) {
        // The sum has no bits for a fraction, so the processor rounds it.
        const Floats magic = all(0x1.8p23f), sum = value + magic;
        return {bits_as<Words>(sum) & 0xffu, sum - magic};
    }
    static UNISONO_INLINE Rounded stochastic(Floats value, Words random) {
        using Integers = Vector<std::int32_t>;
        // With 24 bits of fraction; 127 plus the largest random number is just below 2^31.
        const Integers fixed = __builtin_convertvector(value * 0x1p24f, Integers);
        const Integers whole = (fixed + bits_as<Integers>(random_below<24>(random))) >> 24;
        return {bits_as<Words>(whole) & 0xffu, __builtin_convertvector(whole, Floats)};
    }
    static UNISONO_INLINE Floats widen(Words code) {
        using Integers = Vector<std::int32_t>;
        const Floats number = __builtin_convertvector(bits_as<Integers>(code << 24) >> 24, Floats);
        return code == nan ? all(not_a_number<float>) : number;
    }
    static constexpr float loaded_factor = 1;
    static UNISONO_INLINE CodecBlock<Floats> load_block(const char* from) { return load_each<ScaledInteger>(from); }
};

using Float16 = FloatFormat<Half, false>;
using ScaledE4M3 = FloatFormat<Float8E4M3, true>;
using ScaledE5M2 = FloatFormat<Float8E5M2, true>;

}  // namespace unisono::UNISONO_VARIANT
