// Encoded parts of arrays: float32 in registers, fewer bits in memory, with the bits of engine/include/unisono/wire.hpp.
//
// A *segment* of n elements lies in memory as on the wire: the scales of its codec blocks of 32 elements, one byte each,
// then its n codes. Formats without scales have only the codes.
//
// A thread holds a *part* of a codec block: 4 elements on the device, where 8 neighbouring lanes of a warp hold a whole
// block, and all 32 on the host, where one thread does the work of all. So a loop has the same form on both:
//
//     for (u64 first = thread * LANE_ELEMENTS; first < end; first += threads * LANE_ELEMENTS) {
//         wire::Part part = wire::load(from, n, first);  // elements after the last one are 0
//         ...
//         wire::store(to, n, first, part);               // part becomes what load returns
//     }
//
// `first` is a multiple of LANE_ELEMENTS. All 8 lanes of a codec block call `store` together, also those whose elements
// are after the last one: `end` is n rounded up to a multiple of 32. No alignment is required, but codes at multiples of
// 4 bytes (of 8 with 16 bits) are faster.
//
// UNISONO_WIRE is the format of `load` and `store`: wire_none, wire_fp16, ... With UNISONO_STOCHASTIC defined as 1,
// `store` rounds stochastically and needs a Rounding.
#pragma once

#include "number_formats.cuh"

namespace unisono_kernel::wire {

constexpr u32 BLOCK_ELEMENTS = 32;
#if defined(UNISONO_HOST)
constexpr u32 LANES = 1;
#else
constexpr u32 LANES = 8;
#endif
constexpr u32 LANE_ELEMENTS = BLOCK_ELEMENTS / LANES;
constexpr u32 LANE_QUADS = LANE_ELEMENTS / 4;

// The elements of one lane.
struct Part {
    float v[LANE_ELEMENTS];
};

CODEC_FUNCTION Quad quad_of(const Part& part, u32 i) {
    return {{part.v[4 * i], part.v[4 * i + 1], part.v[4 * i + 2], part.v[4 * i + 3]}};
}
CODEC_FUNCTION void put_quad(Part& part, u32 i, const Quad& quad) {
    for (u32 j = 0; j < 4; ++j) part.v[4 * i + j] = quad.v[j];
}

template <typename F>
CODEC_FUNCTION u64 scales_of(u64 n) {
    return F::scaled ? (n + BLOCK_ELEMENTS - 1) / BLOCK_ELEMENTS : 0;
}
template <typename F>
CODEC_FUNCTION u64 encoded_bytes(u64 n) {
    return scales_of<F>(n) + n * F::code_bytes;
}

// The random bits of stochastic rounding: 32 for each element, which depend only on a seed and the element's index, as in
// engine/src/loops/stochastic_rng.hpp.
CODEC_FUNCTION u32 mixed(u32 x, u32 key) {
    x = (x ^ (x >> 16)) * 0x85ebca6bu;
    x ^= key;
    x = (x ^ (x >> 13)) * 0xc2b2ae35u;
    return x ^ (x >> 16);
}

struct Rounding {
    u32 shift, key;

    // `first` is the index of the first element of the segment; indices count modulo 2^32.
    static CODEC_FUNCTION Rounding of(u64 seed, u64 first) {
        const u32 shift = mixed(static_cast<u32>(seed), 0);
        return {shift + static_cast<u32>(first), mixed(static_cast<u32>(seed >> 32), shift)};
    }
    CODEC_FUNCTION u32 random(u64 element) const { return mixed(static_cast<u32>(element) + shift, key); }
};

// The limits of a format, as bits of a float. An element above `usual` is NaN, infinite, or too large for the largest
// scale; most codec blocks have none.
template <typename F, bool Stochastic>
struct Limits {
    static constexpr u32 within = Stochastic ? F::limit : F::last_within;
    // The exponent of the largest code, and the number whose addition carries a mantissa above the limit into the
    // exponent.
    static constexpr int exponent = static_cast<int>(F::limit >> 23) - 127;
    static constexpr u32 carry = 0x7fffffu - (within & 0x7fffffu);
    static constexpr int largest_byte = 254 - exponent;
    static constexpr u32 usual = F::scaled ? (254u << 23) | (within & 0x7fffffu) : within;

    // Returns the byte of the scale of a codec block, from its largest finite magnitude.
    static CODEC_FUNCTION u32 scale_byte(u32 largest) {
        const int byte = static_cast<int>((largest + carry) >> 23) - exponent;
        return static_cast<u32>(byte < 1 ? 1 : byte > largest_byte ? largest_byte : byte);
    }
};

// Returns the largest magnitude of four elements, as bits; every NaN is larger than infinity.
CODEC_FUNCTION u32 largest_magnitude(const Quad& quad) {
#if CODEC_ARCHITECTURE >= 800
    const auto larger_or_nan = [](float a, float b) {
        float found;
        asm("max.NaN.f32 %0, %1, %2;" : "=f"(found) : "f"(fabsf(a)), "f"(fabsf(b)));
        return found;
    };
    return bits_of(larger_or_nan(larger_or_nan(quad.v[0], quad.v[1]), larger_or_nan(quad.v[2], quad.v[3])));
#else
    u32 largest = 0;
    for (int i = 0; i < 4; ++i) largest = larger(largest, bits_of(quad.v[i]) & magnitude_mask);
    return largest;
#endif
}

// Returns the largest magnitude of four elements that are finite.
CODEC_FUNCTION u32 largest_finite(const Quad& quad) {
    u32 largest = 0;
    for (int i = 0; i < 4; ++i) {
        const u32 magnitude = bits_of(quad.v[i]) & magnitude_mask;
        if (magnitude < infinity_bits) largest = larger(largest, magnitude);
    }
    return largest;
}

// Returns the largest of the numbers of all threads that hold the codec block.
CODEC_FUNCTION u32 largest_of_codec_block(u32 mine) {
#if !defined(UNISONO_HOST)
    u32 lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    const u32 together = 0xffu << (lane & 24);
#pragma unroll
    for (int distance = 4; distance != 0; distance /= 2)
        mine = larger(mine, __shfl_xor_sync(together, mine, distance));
#endif
    return mine;
}

// Bytes of any alignment. Words that contain no byte of the wire are not touched.
CODEC_FUNCTION u64 address_of(const u8* at) { return reinterpret_cast<u64>(at); }

template <int Bytes, bool Aligned>
CODEC_FUNCTION QuadCodes load_codes(const u8* from) {
#if defined(UNISONO_HOST)
    QuadCodes codes{};
    __builtin_memcpy(codes.word, from, 4 * Bytes);
    return codes;
#else
    if constexpr (Bytes == 2) {
        if (Aligned || address_of(from) % 8 == 0) {
            const uint2 both = *reinterpret_cast<const uint2*>(from);
            return {{both.x, both.y}};
        }
        if (address_of(from) % 4 == 0) {
            const u32* const words = reinterpret_cast<const u32*>(from);
            return {{words[0], words[1]}};
        }
    } else if (Aligned || address_of(from) % 4 == 0) {
        return {{*reinterpret_cast<const u32*>(from), 0}};
    }
    const u32 bits = 8 * (address_of(from) % 4);
    const u32* const words = reinterpret_cast<const u32*>(from - address_of(from) % 4);
    const u32 first = words[0], second = words[1];
    QuadCodes codes{{__funnelshift_r(first, second, bits), 0}};
    if constexpr (Bytes == 2) codes.word[1] = __funnelshift_r(second, words[2], bits);
    return codes;
#endif
}

template <int Bytes, bool Aligned>
CODEC_FUNCTION void store_codes(u8* to, const QuadCodes& codes) {
#if defined(UNISONO_HOST)
    __builtin_memcpy(to, codes.word, 4 * Bytes);
#else
    if constexpr (Bytes == 2) {
        if (Aligned || address_of(to) % 8 == 0) {
            *reinterpret_cast<uint2*>(to) = make_uint2(codes.word[0], codes.word[1]);
            return;
        }
    } else if (Aligned || address_of(to) % 4 == 0) {
        *reinterpret_cast<u32*>(to) = codes.word[0];
        return;
    }
    if (Bytes == 2 && address_of(to) % 2 == 0) {
#pragma unroll
        for (int i = 0; i < 4; ++i) reinterpret_cast<u16*>(to)[i] = static_cast<u16>(codes.word[i / 2] >> (16 * (i % 2)));
        return;
    }
#pragma unroll
    for (int i = 0; i < 4 * Bytes; ++i) to[i] = static_cast<u8>(codes.word[i / 4] >> (8 * (i % 4)));
#endif
}

// Returns the bytes of fewer than four codes.
template <int Bytes>
CODEC_FUNCTION QuadCodes load_some_codes(const u8* from, u64 count) {
    QuadCodes codes{};
    for (u32 i = 0; i < count * Bytes; ++i) {
        if (i < 4)
            codes.word[0] |= static_cast<u32>(from[i]) << (8 * i);
        else
            codes.word[1] |= static_cast<u32>(from[i]) << (8 * (i - 4));
    }
    return codes;
}
template <int Bytes>
CODEC_FUNCTION void store_some_codes(u8* to, const QuadCodes& codes, u64 count) {
    for (u32 i = 0; i < count * Bytes; ++i)
        to[i] = static_cast<u8>(i < 4 ? codes.word[0] >> (8 * i) : codes.word[1] >> (8 * (i - 4)));
}

template <typename F>
CODEC_FUNCTION Quad widened(const QuadCodes& codes) {
    Quad quad;
    if constexpr (F::Instructions::present) {
        quad = F::Instructions::widen(codes);
    } else {
        for (int i = 0; i < 4; ++i) quad.v[i] = F::widen(code_at<F::code_bytes>(codes, i));
    }
    return quad;
}

CODEC_FUNCTION float scale_of(u32 byte) { return float_of(byte << 23); }

// Multiplies decoded numbers by their scale. Every operation on NaN may change its bits, so it is settled last.
template <typename F>
CODEC_FUNCTION void scale_numbers(Quad& quad, float factor) {
    for (int i = 0; i < 4; ++i) {
        if constexpr (F::scaled) quad.v[i] = product(quad.v[i], factor);
        quad.v[i] = settled(quad.v[i]);
    }
}

// Rounds usual elements, already divided by their scale: returns the codes, and makes `quad` the decoded numbers.
template <typename F, bool Stochastic>
CODEC_FUNCTION QuadCodes round_usual(Quad& quad, float factor, u64 element, const Rounding& rounding) {
    QuadCodes codes;
    if constexpr (!Stochastic && F::Instructions::present) {
        codes = F::Instructions::narrow(quad);
        quad = F::Instructions::widen(codes);
    } else {
        u32 code[4];
        for (int i = 0; i < 4; ++i) {
            const Rounded found =
                Stochastic ? F::stochastic(quad.v[i], rounding.random(element + i)) : F::nearest(quad.v[i]);
            code[i] = found.code;
            quad.v[i] = found.number;
        }
        codes = packed<F::code_bytes>(code);
    }
    for (int i = 0; i < 4; ++i)
        if constexpr (F::scaled) quad.v[i] = product(quad.v[i], factor);
    return codes;
}

// Rounds any element, already divided by its scale.
template <typename F, bool Stochastic>
CODEC_FUNCTION Rounded round_any(float value, u32 random) {
    const u32 wide = bits_of(value), magnitude = wide & magnitude_mask, sign = wide & sign_mask;
    if (magnitude < infinity_bits) {
        const float saturated = float_of(smaller(magnitude, F::limit) | sign);
        return Stochastic ? F::stochastic(saturated, random) : F::nearest(saturated);
    }
    if (F::has_infinity && magnitude == infinity_bits) return {(sign != 0 ? F::sign_bit : 0u) | F::infinity, value};
    return {F::nan, float_of(canonical_nan)};
}

// Does the same as `round_usual` for any elements.
template <typename F, bool Stochastic>
CODEC_FUNCTION QuadCodes round_unusual(Quad& quad, float factor, u64 element, const Rounding& rounding) {
    u32 code[4];
    for (int i = 0; i < 4; ++i) {
        const Rounded found = round_any<F, Stochastic>(quad.v[i], Stochastic ? rounding.random(element + i) : 0u);
        code[i] = found.code;
        quad.v[i] = F::scaled ? settled(product(found.number, factor)) : found.number;
    }
    return packed<F::code_bytes>(code);
}

// Rounds a part of a codec block; returns the byte of its scale.
template <typename F, bool Stochastic>
CODEC_FUNCTION u32 round_part(Part& part, QuadCodes (&codes)[LANE_QUADS], u64 first, const Rounding& rounding) {
    using L = Limits<F, Stochastic>;
    u32 largest = 0;
    for (u32 i = 0; i < LANE_QUADS; ++i) largest = larger(largest, largest_magnitude(quad_of(part, i)));
    if constexpr (F::scaled) largest = largest_of_codec_block(largest);
    const bool usual = largest <= L::usual;  // the same for all lanes of a codec block that has a scale
    u32 byte = 0;
    float factor = 1;
    if constexpr (F::scaled) {
        if (!usual) {
            largest = 0;
            for (u32 i = 0; i < LANE_QUADS; ++i) largest = larger(largest, largest_finite(quad_of(part, i)));
            largest = largest_of_codec_block(largest);
        }
        byte = L::scale_byte(largest);
        factor = scale_of(byte);
        const float inverse = scale_of(254 - byte);
        for (float& value : part.v) value = product(value, inverse);  // exact, or so small that the code is 0
    }
    for (u32 i = 0; i < LANE_QUADS; ++i) {
        Quad quad = quad_of(part, i);
        if (usual)
            codes[i] = round_usual<F, Stochastic>(quad, factor, first + 4 * i, rounding);
        else
            codes[i] = round_unusual<F, Stochastic>(quad, factor, first + 4 * i, rounding);
        put_quad(part, i, quad);
    }
    return byte;
}

CODEC_FUNCTION u64 count_from(u64 element, u64 n) { return element >= n ? 0 : n - element >= 4 ? 4 : n - element; }

// Returns whether the codes of a segment lie where `Whole` loads and stores need them.
template <typename F>
CODEC_FUNCTION bool codes_are_aligned(const u8* base, u64 n) {
    return address_of(base + scales_of<F>(n)) % (4 * F::code_bytes) == 0;
}

// Encoded elements of a lane. Loading and decoding are separate, so that a loop can have several loads in flight.
struct Encoded {
    QuadCodes codes[LANE_QUADS];
    u32 scale;
};

// With `Whole`, the codes are aligned and none of the lane's elements is after the last one.
template <typename F, bool Whole = false>
CODEC_FUNCTION Encoded fetch_as(const u8* base, u64 n, u64 first) {
    Encoded encoded;
    const u8* const codes = base + scales_of<F>(n);
    encoded.scale = F::scaled && (Whole || first < n) ? base[first / BLOCK_ELEMENTS] : 127u;
    for (u32 i = 0; i < LANE_QUADS; ++i) {
        const u64 element = first + 4 * i, count = Whole ? 4 : count_from(element, n);
        const u8* const from = codes + element * F::code_bytes;
        encoded.codes[i] = count == 4 ? load_codes<F::code_bytes, Whole>(from) : load_some_codes<F::code_bytes>(from, count);
    }
    return encoded;
}

template <typename F>
CODEC_FUNCTION Part decoded(const Encoded& encoded) {
    Part part;
    const float factor = scale_of(encoded.scale);
    for (u32 i = 0; i < LANE_QUADS; ++i) {
        Quad quad = widened<F>(encoded.codes[i]);
        scale_numbers<F>(quad, factor);
        put_quad(part, i, quad);
    }
    return part;
}

template <typename F, bool Stochastic, bool Whole = false>
CODEC_FUNCTION void store_as(u8* base, u64 n, u64 first, Part& part, const Rounding& rounding) {
    if (!Whole && first + LANE_ELEMENTS > n)
        for (u32 i = 0; i < LANE_ELEMENTS; ++i)
            if (first + i >= n) part.v[i] = 0;
    QuadCodes codes[LANE_QUADS];
    const u32 byte = round_part<F, Stochastic>(part, codes, first, rounding);
    if (base == nullptr) return;
    if (F::scaled && first % BLOCK_ELEMENTS == 0 && (Whole || first < n))
        base[first / BLOCK_ELEMENTS] = static_cast<u8>(byte);
    u8* const begin = base + scales_of<F>(n);
    for (u32 i = 0; i < LANE_QUADS; ++i) {
        const u64 element = first + 4 * i, count = Whole ? 4 : count_from(element, n);
        u8* const to = begin + element * F::code_bytes;
        if (count == 4)
            store_codes<F::code_bytes, Whole>(to, codes[i]);
        else
            store_some_codes<F::code_bytes>(to, codes[i], count);
    }
}

#if !defined(UNISONO_WIRE)
#define UNISONO_WIRE wire_none
#endif
#if !defined(UNISONO_STOCHASTIC)
#define UNISONO_STOCHASTIC 0
#endif
using Format = UNISONO_WIRE;

// Decodes the lane's elements, from `first` on, of a segment of n elements. (A kernel without a format does not call it.)
template <typename F = Format>
CODEC_FUNCTION Part load(const u8* base, u64 n, u64 first) {
    if constexpr (F::used)
        return decoded<F>(fetch_as<F>(base, n, first));
    else
        return {};
}
// Encodes them; the part becomes what `load` returns. Without a base (null) it only rounds.
template <typename F = Format>
CODEC_FUNCTION void store(u8* base, u64 n, u64 first, Part& part, const Rounding& rounding = {}) {
    if constexpr (F::used) store_as<F, UNISONO_STOCHASTIC != 0>(base, n, first, part, rounding);
}

}  // namespace unisono_kernel::wire
