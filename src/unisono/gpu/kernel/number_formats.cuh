// The number formats of the wire, one element or four at a time: bit for bit those of engine/src/loops/wire_formats.hpp.
//
// Compiled by NVRTC for the device and, with UNISONO_HOST, by any C++17 compiler for the host. Where the device has an
// instruction for a conversion, it is used for *usual* elements only (see Limits in codec.cuh), for which it gives the
// same bits. All others take the portable code, which is the only code on the host.
//
// Multiplications and additions use functions that the compiler does not fuse: a fused one rounds once instead of twice.
// Every NaN is replaced by the canonical one, because devices and processors create different ones.
#pragma once

#if defined(UNISONO_HOST)
#define CODEC_FUNCTION inline
#else
#define CODEC_FUNCTION __device__ __forceinline__
#endif
#if defined(__CUDA_ARCH__)
#define CODEC_ARCHITECTURE __CUDA_ARCH__
#else
#define CODEC_ARCHITECTURE 0
#endif

namespace unisono_kernel::wire {

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

constexpr u32 sign_mask = 0x80000000u, magnitude_mask = 0x7fffffffu, infinity_bits = 0x7f800000u,
              canonical_nan = 0x7fc00000u;

#if defined(UNISONO_HOST)
CODEC_FUNCTION u32 bits_of(float value) { return __builtin_bit_cast(u32, value); }
CODEC_FUNCTION float float_of(u32 bits) { return __builtin_bit_cast(float, bits); }
CODEC_FUNCTION float product(float a, float b) { return a * b; }  // compiled with -ffp-contract=off
CODEC_FUNCTION float sum(float a, float b) { return a + b; }
#else
CODEC_FUNCTION u32 bits_of(float value) { return __float_as_uint(value); }
CODEC_FUNCTION float float_of(u32 bits) { return __uint_as_float(bits); }
CODEC_FUNCTION float product(float a, float b) { return __fmul_rn(a, b); }
CODEC_FUNCTION float sum(float a, float b) { return __fadd_rn(a, b); }
#endif

CODEC_FUNCTION u32 larger(u32 a, u32 b) { return a > b ? a : b; }
CODEC_FUNCTION u32 smaller(u32 a, u32 b) { return a < b ? a : b; }
CODEC_FUNCTION float settled(float value) { return value == value ? value : float_of(canonical_nan); }

// A rounded number: its code, and its value.
struct Rounded {
    u32 code;
    float number;
};

// Four neighbouring elements, and their codes in the order of memory: one word of bytes or two words of halves.
struct Quad {
    float v[4];
};
struct QuadCodes {
    u32 word[2];
};

template <int Bytes>
CODEC_FUNCTION QuadCodes packed(const u32 (&code)[4]) {
    if constexpr (Bytes == 2) return {{code[0] | code[1] << 16, code[2] | code[3] << 16}};
#if CODEC_ARCHITECTURE != 0
    // Only the lowest byte of each is used.
    return {{__byte_perm(__byte_perm(code[0], code[1], 0x0040), __byte_perm(code[2], code[3], 0x0040), 0x5410), 0}};
#else
    return {{code[0] | code[1] << 8 | code[2] << 16 | code[3] << 24, 0}};
#endif
}
template <int Bytes>
CODEC_FUNCTION u32 code_at(const QuadCodes& codes, int i) {
    if constexpr (Bytes == 2) return (codes.word[i / 2] >> (16 * (i % 2))) & 0xffffu;
    return (codes.word[0] >> (8 * i)) & 0xffu;
}

// The upper `Bits` of random bits, a number below 2^Bits.
template <int Bits>
CODEC_FUNCTION u32 random_below(u32 random) {
    return random >> (32 - Bits);
}

// The conversions by instructions; a format without them is converted element by element.
struct NoInstructions {
    static constexpr bool present = false;
};

#if CODEC_ARCHITECTURE >= 800
CODEC_FUNCTION float low_half(u32 pair) {
    float value;
    asm("{ .reg .b16 low, high; mov.b32 {low, high}, %1; cvt.f32.f16 %0, low; }" : "=f"(value) : "r"(pair));
    return value;
}
CODEC_FUNCTION float high_half(u32 pair) {
    float value;
    asm("{ .reg .b16 low, high; mov.b32 {low, high}, %1; cvt.f32.f16 %0, high; }" : "=f"(value) : "r"(pair));
    return value;
}
struct HalfInstructions {
    static constexpr bool present = true;
    static CODEC_FUNCTION u32 narrowed(float low, float high) {
        u32 pair;
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
        return pair;
    }
    static CODEC_FUNCTION QuadCodes narrow(const Quad& quad) {
        return {{narrowed(quad.v[0], quad.v[1]), narrowed(quad.v[2], quad.v[3])}};
    }
    static CODEC_FUNCTION Quad widen(const QuadCodes& codes) {
        return {{low_half(codes.word[0]), high_half(codes.word[0]), low_half(codes.word[1]), high_half(codes.word[1])}};
    }
};
struct BrainInstructions {
    static constexpr bool present = true;
    static CODEC_FUNCTION u32 narrowed(float low, float high) {
        u32 pair;
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
        return pair;
    }
    static CODEC_FUNCTION QuadCodes narrow(const Quad& quad) {
        return {{narrowed(quad.v[0], quad.v[1]), narrowed(quad.v[2], quad.v[3])}};
    }
    static CODEC_FUNCTION Quad widen(const QuadCodes& codes) {
        return {{float_of(codes.word[0] << 16), float_of(codes.word[0] & 0xffff0000u), float_of(codes.word[1] << 16),
                 float_of(codes.word[1] & 0xffff0000u)}};
    }
};
#else
using HalfInstructions = NoInstructions;
using BrainInstructions = NoInstructions;
#endif

#if CODEC_ARCHITECTURE >= 890
#define CODEC_EIGHT_BIT_INSTRUCTIONS(Name, format)                                                              \
    struct Name {                                                                                               \
        static constexpr bool present = true;                                                                   \
        static CODEC_FUNCTION QuadCodes narrow(const Quad& quad) {                                              \
            u16 low, high;                                                                                      \
            asm("cvt.rn.satfinite." format "x2.f32 %0, %1, %2;" : "=h"(low) : "f"(quad.v[1]), "f"(quad.v[0]));  \
            asm("cvt.rn.satfinite." format "x2.f32 %0, %1, %2;" : "=h"(high) : "f"(quad.v[3]), "f"(quad.v[2])); \
            return {{low | static_cast<u32>(high) << 16, 0}};                                                   \
        }                                                                                                       \
        static CODEC_FUNCTION Quad widen(const QuadCodes& codes) {                                              \
            u32 low, high;                                                                                      \
            asm("cvt.rn.f16x2." format "x2 %0, %1;" : "=r"(low) : "h"(static_cast<u16>(codes.word[0])));        \
            asm("cvt.rn.f16x2." format "x2 %0, %1;" : "=r"(high) : "h"(static_cast<u16>(codes.word[0] >> 16))); \
            return {{low_half(low), high_half(low), low_half(high), high_half(high)}};                          \
        }                                                                                                       \
    };
CODEC_EIGHT_BIT_INSTRUCTIONS(E4M3Instructions, "e4m3")
CODEC_EIGHT_BIT_INSTRUCTIONS(E5M2Instructions, "e5m2")
#undef CODEC_EIGHT_BIT_INSTRUCTIONS
#else
using E4M3Instructions = NoInstructions;
using E5M2Instructions = NoInstructions;
#endif

// A floating-point format: a sign bit, E bits of exponent, M bits of mantissa. With Finite it has no infinity: the
// highest exponent holds numbers as well, and all ones is NaN. `limit` is the largest number that is a code,
// `last_within` the largest that rounds to a code, both as the bits of a float.
template <int E, int M, bool Finite, bool Scaled, typename Hardware>
struct FloatFormat {
    using Instructions = Hardware;
    static constexpr bool scaled = Scaled, has_infinity = !Finite;
    static constexpr int bits = 1 + E + M, code_bytes = bits / 8, shift = 23 - M;
    static constexpr u32 code_mask = (1u << (E + M)) - 1, sign_bit = code_mask + 1;
    static constexpr u32 infinity = ((1u << E) - 1) << M;
    static constexpr u32 nan = Finite ? code_mask : infinity | (1u << (M - 1));
    // The difference of the exponent biases, and the smallest normal number of the format, as bits of a float.
    static constexpr u32 rebias = static_cast<u32>(127 - ((1 << (E - 1)) - 1)) << 23;
    static constexpr u32 smallest_normal = rebias + (1u << 23);
    static constexpr u32 last_code = (Finite ? nan : infinity) - 1;
    static constexpr u32 limit = (last_code << shift) + rebias;
    static constexpr u32 last_within = limit + (1u << (shift - 1)) - (last_code & 1);

    static CODEC_FUNCTION Rounded with_sign(u32 wide, Rounded magnitude) {
        const u32 sign = wide & sign_mask;
        return {magnitude.code | sign >> (32 - bits), float_of(bits_of(magnitude.number) | sign)};
    }

    // Adding a power of two whose last mantissa bit is the last bit of the format rounds to nearest even. All subnormal
    // numbers have the last bit of the smallest normal ones.
    static CODEC_FUNCTION Rounded nearest(float value) {
        const u32 wide = bits_of(value), magnitude = wide & magnitude_mask;
        const u32 exponent = larger(magnitude, smallest_normal) & infinity_bits;
        const u32 magic = exponent + (static_cast<u32>(shift) << 23);
        const float lifted = sum(float_of(magnitude), float_of(magic));
        const u32 code = bits_of(lifted) - magic + (exponent >> shift) - (smallest_normal >> shift);
        return with_sign(wide, {code, sum(lifted, -float_of(magic))});
    }

    // Adds random bits below the last bit and truncates. The smallest normal number is first added to subnormal
    // numbers, so that their last bit is in the same position.
    static CODEC_FUNCTION Rounded stochastic(float value, u32 random) {
        const u32 wide = bits_of(value), magnitude = wide & magnitude_mask;
        const bool small = magnitude < smallest_normal;
        const float lift = small ? float_of(smallest_normal) : 0.0f;
        const u32 lifted = bits_of(sum(float_of(magnitude), lift));
        const u32 cut = (lifted + random_below<shift>(random)) >> shift;
        const u32 code = cut - (rebias >> shift) - (small ? (1u << 23) >> shift : 0u);
        return with_sign(wide, {code, sum(float_of(cut << shift), -lift)});
    }

    static CODEC_FUNCTION float widen(u32 code) {
        const u32 magnitude = code & code_mask;
        const bool small = magnitude < (1u << M);
        const u32 lifted = (magnitude << shift) + rebias + (small ? 1u << 23 : 0u);
        const u32 number = bits_of(sum(float_of(lifted), small ? -float_of(smallest_normal) : 0.0f));
        const u32 special = magnitude > last_code ? (Finite ? canonical_nan : infinity_bits) : 0u;
        return settled(float_of(number | special | (code & sign_bit) << (32 - bits)));
    }
};

struct BrainFloat {
    using Instructions = BrainInstructions;
    static constexpr bool scaled = false, has_infinity = true;
    static constexpr int code_bytes = 2;
    static constexpr u32 nan = 0x7fc0, infinity = 0x7f80, sign_bit = 0x8000;
    static constexpr u32 limit = 0x7f7f0000u, last_within = 0x7f7f7fffu;

    static CODEC_FUNCTION Rounded cut(u32 wide) { return {wide >> 16, float_of(wide & 0xffff0000u)}; }
    static CODEC_FUNCTION Rounded nearest(float value) {
        const u32 wide = bits_of(value);
        return cut(wide + 0x7fffu + ((wide >> 16) & 1));
    }
    static CODEC_FUNCTION Rounded stochastic(float value, u32 random) {
        return cut(bits_of(value) + random_below<16>(random));
    }
    static CODEC_FUNCTION float widen(u32 code) { return settled(float_of(code << 16)); }
};

#if CODEC_ARCHITECTURE != 0
// A byte in the last place of 2^23 makes a float without a conversion: codes 0 to 255 are moved up by 128 first.
struct IntegerInstructions {
    static constexpr bool present = true;
    static CODEC_FUNCTION Quad widen(const QuadCodes& codes) {
        const u32 moved = codes.word[0] ^ 0x80808080u;
        Quad quad;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const float number = sum(float_of(__byte_perm(moved, 0x4b000000u, 0x7540 + i)), -8388736.0f);
            quad.v[i] = number == -128.0f ? float_of(canonical_nan) : number;
        }
        return quad;
    }
    static CODEC_FUNCTION QuadCodes narrow(const Quad& quad) {
        u32 code[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) code[i] = bits_of(sum(quad.v[i], 12582912.0f));
        return packed<1>(code);
    }
};
#else
using IntegerInstructions = NoInstructions;
#endif

struct ScaledInteger {
    using Instructions = IntegerInstructions;
    static constexpr bool scaled = true, has_infinity = false;
    static constexpr int code_bytes = 1;
    static constexpr u32 nan = 0x80, infinity = 0, sign_bit = 0;
    static constexpr u32 limit = 0x42fe0000u;        // 127
    static constexpr u32 last_within = 0x42feffffu;  // just below 127.5, which rounds to even: 128

    static CODEC_FUNCTION Rounded nearest(float value) {
        const float magic = 12582912.0f;  // 1.5 * 2^23: the sum has no bits for a fraction
        const float lifted = sum(value, magic);
        return {bits_of(lifted) & 0xffu, sum(lifted, -magic)};
    }
    static CODEC_FUNCTION Rounded stochastic(float value, u32 random) {
        // With 24 bits of fraction; 127 plus the largest random number is just below 2^31.
        const int fixed = static_cast<int>(product(value, 16777216.0f));
        const int whole = (fixed + static_cast<int>(random_below<24>(random))) >> 24;
        return {static_cast<u32>(whole) & 0xffu, static_cast<float>(whole)};
    }
    static CODEC_FUNCTION float widen(u32 code) {
        return code == nan ? float_of(canonical_nan) : static_cast<float>(static_cast<int>(code << 24) >> 24);
    }
};

// A kernel is compiled for one of these (UNISONO_WIRE).
struct wire_none {
    static constexpr bool used = false;
};
struct wire_fp16 : FloatFormat<5, 10, false, false, HalfInstructions> {
    static constexpr bool used = true;
};
struct wire_bf16 : BrainFloat {
    static constexpr bool used = true;
};
struct wire_fp8_e4m3 : FloatFormat<4, 3, true, true, E4M3Instructions> {
    static constexpr bool used = true;
};
struct wire_fp8_e5m2 : FloatFormat<5, 2, false, true, E5M2Instructions> {
    static constexpr bool used = true;
};
struct wire_int8 : ScaledInteger {
    static constexpr bool used = true;
};

}  // namespace unisono_kernel::wire
