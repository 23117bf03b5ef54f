// Moves the numbers of a codec block between memory, where they are small and in order, and registers of 32-bit words.
#pragma once

#include "vectors.hpp"

namespace unisono::UNISONO_VARIANT {

inline constexpr int codec_block_elements = 32;
inline constexpr int words_per_register = register_bytes / 4;
inline constexpr int codec_block_registers = codec_block_elements / words_per_register;

// The elements of a codec block, in order, `words_per_register` in each register.
template <typename V>
struct CodecBlock {
    V part[codec_block_registers];
};

UNISONO_INLINE CodecBlock<Floats> load_floats(const float* from) {
    CodecBlock<Floats> block;
    for (int i = 0; i < codec_block_registers; ++i)
        block.part[i] = load<Floats>(reinterpret_cast<const char*>(from + i * words_per_register));
    return block;
}
UNISONO_INLINE void store_floats(float* to, const CodecBlock<Floats>& block) {
    for (int i = 0; i < codec_block_registers; ++i)
        store(reinterpret_cast<char*>(to + i * words_per_register), block.part[i]);
}

// Stores the words, which must be less than 256, as bytes.
UNISONO_INLINE void store_bytes(char* to, const CodecBlock<Words>& block) {
#if defined(__AVX512F__)
    for (int i = 0; i < codec_block_registers; ++i)
        store(to + i * words_per_register, _mm512_maskz_cvtepi32_epi8(0xffff, bits_as<__m512i>(block.part[i])));
#elif defined(__AVX2__)
    const auto word = [&](int i) { return bits_as<__m256i>(block.part[i]); };
    const __m256i first = _mm256_packs_epi32(word(0), word(1)), second = _mm256_packs_epi32(word(2), word(3));
    // Packing works on each half of a register, so groups of four come out in the order 0 2 4 6, 1 3 5 7.
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    store(to, _mm256_permutevar8x32_epi32(_mm256_packus_epi16(first, second), order));
#elif defined(__SSE2__)
    const auto word = [&](int i) { return bits_as<__m128i>(block.part[i]); };
    for (int i = 0; i < codec_block_registers; i += 4) {
        const __m128i first = _mm_packs_epi32(word(i), word(i + 1)), second = _mm_packs_epi32(word(i + 2), word(i + 3));
        store(to + i * words_per_register, _mm_packus_epi16(first, second));
    }
#elif defined(__aarch64__)
    // The elements with even numbers of two registers are the lower halves of their words.
    const auto lower = [&](int i) {
        return vuzp1q_u16(bits_as<uint16x8_t>(block.part[i]), bits_as<uint16x8_t>(block.part[i + 1]));
    };
    for (int i = 0; i < codec_block_registers; i += 4)
        store(to + i * words_per_register, vuzp1q_u8(bits_as<uint8x16_t>(lower(i)), bits_as<uint8x16_t>(lower(i + 2))));
#else
    for (int i = 0; i < codec_block_elements; ++i)
        to[i] = static_cast<char>(block.part[i / words_per_register][i % words_per_register]);
#endif
}

// Stores the lower halves of the words.
UNISONO_INLINE void store_halves(char* to, const CodecBlock<Words>& block) {
#if defined(__AVX512F__)
    for (int i = 0; i < codec_block_registers; ++i)
        store(to + 2 * i * words_per_register, _mm512_maskz_cvtepi32_epi16(0xffff, bits_as<__m512i>(block.part[i])));
#elif defined(__SSE2__)
    // Packing saturates signed numbers, so the lower halves are sign-extended first.
    const auto word = [&](int i) { return bits_as<Vector<std::int32_t>>(block.part[i] << 16) >> 16; };
    for (int i = 0; i < codec_block_registers; i += 2) {
#if defined(__AVX2__)
        const __m256i pairs = _mm256_packs_epi32(bits_as<__m256i>(word(i)), bits_as<__m256i>(word(i + 1)));
        store(to + 2 * i * words_per_register, _mm256_permute4x64_epi64(pairs, 0b11011000));
#else
        store(to + 2 * i * words_per_register,
              _mm_packs_epi32(bits_as<__m128i>(word(i)), bits_as<__m128i>(word(i + 1))));
#endif
    }
#elif defined(__aarch64__)
    for (int i = 0; i < codec_block_registers; i += 2)
        store(to + 2 * i * words_per_register,
              vuzp1q_u16(bits_as<uint16x8_t>(block.part[i]), bits_as<uint16x8_t>(block.part[i + 1])));
#else
    for (int i = 0; i < codec_block_elements; ++i) {
        const auto half = static_cast<std::uint16_t>(block.part[i / words_per_register][i % words_per_register]);
        __builtin_memcpy(to + 2 * i, &half, 2);
    }
#endif
}

UNISONO_INLINE CodecBlock<Words> load_bytes(const char* from) {
    CodecBlock<Words> block;
#if defined(__AVX512F__)
    for (int i = 0; i < codec_block_registers; ++i)
        block.part[i] =
            bits_as<Words>(_mm512_maskz_cvtepu8_epi32(0xffff, load<__m128i>(from + i * words_per_register)));
#elif defined(__AVX2__)
    for (int i = 0; i < codec_block_registers; ++i) {
        const __m128i eight = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from + i * words_per_register));
        block.part[i] = bits_as<Words>(_mm256_cvtepu8_epi32(eight));
    }
#elif defined(__SSE2__)
    const __m128i zero = _mm_setzero_si128();
    for (int i = 0; i < codec_block_registers; i += 4) {
        const __m128i bytes = load<__m128i>(from + i * words_per_register);
        const __m128i low = _mm_unpacklo_epi8(bytes, zero), high = _mm_unpackhi_epi8(bytes, zero);
        block.part[i] = bits_as<Words>(_mm_unpacklo_epi16(low, zero));
        block.part[i + 1] = bits_as<Words>(_mm_unpackhi_epi16(low, zero));
        block.part[i + 2] = bits_as<Words>(_mm_unpacklo_epi16(high, zero));
        block.part[i + 3] = bits_as<Words>(_mm_unpackhi_epi16(high, zero));
    }
#elif defined(__aarch64__)
    for (int i = 0; i < codec_block_registers; i += 4) {
        const auto bytes = load<uint8x16_t>(from + i * words_per_register);
        const uint16x8_t low = vmovl_u8(vget_low_u8(bytes)), high = vmovl_high_u8(bytes);
        block.part[i] = bits_as<Words>(vmovl_u16(vget_low_u16(low)));
        block.part[i + 1] = bits_as<Words>(vmovl_high_u16(low));
        block.part[i + 2] = bits_as<Words>(vmovl_u16(vget_low_u16(high)));
        block.part[i + 3] = bits_as<Words>(vmovl_high_u16(high));
    }
#else
    for (int i = 0; i < codec_block_elements; ++i)
        block.part[i / words_per_register][i % words_per_register] = static_cast<std::uint8_t>(from[i]);
#endif
    return block;
}

UNISONO_INLINE CodecBlock<Words> load_halves(const char* from) {
    CodecBlock<Words> block;
#if defined(__AVX512F__)
    for (int i = 0; i < codec_block_registers; ++i)
        block.part[i] =
            bits_as<Words>(_mm512_maskz_cvtepu16_epi32(0xffff, load<__m256i>(from + 2 * i * words_per_register)));
#elif defined(__AVX2__)
    for (int i = 0; i < codec_block_registers; ++i)
        block.part[i] = bits_as<Words>(_mm256_cvtepu16_epi32(load<__m128i>(from + 2 * i * words_per_register)));
#elif defined(__SSE2__)
    for (int i = 0; i < codec_block_registers; i += 2) {
        const __m128i halves = load<__m128i>(from + 2 * i * words_per_register);
        block.part[i] = bits_as<Words>(_mm_unpacklo_epi16(halves, _mm_setzero_si128()));
        block.part[i + 1] = bits_as<Words>(_mm_unpackhi_epi16(halves, _mm_setzero_si128()));
    }
#elif defined(__aarch64__)
    for (int i = 0; i < codec_block_registers; i += 2) {
        const auto halves = load<uint16x8_t>(from + 2 * i * words_per_register);
        block.part[i] = bits_as<Words>(vmovl_u16(vget_low_u16(halves)));
        block.part[i + 1] = bits_as<Words>(vmovl_high_u16(halves));
    }
#else
    for (int i = 0; i < codec_block_elements; ++i) {
        std::uint16_t half;
        __builtin_memcpy(&half, from + 2 * i, 2);
        block.part[i / words_per_register][i % words_per_register] = half;
    }
#endif
    return block;
}

#if defined(UNISONO_CONVERTS_HALVES)
// Loads as many bytes as a register has halves, one into each half.
UNISONO_INLINE Halves widened_bytes(const char* from) {
#if defined(__AVX512F__)
    return bits_as<Halves>(_mm512_maskz_cvtepu8_epi16(0xffffffff, load<__m256i>(from)));
#elif defined(__aarch64__)
    return bits_as<Halves>(vmovl_u8(load<uint8x8_t>(from)));
#else
    return bits_as<Halves>(_mm256_cvtepu8_epi16(load<__m128i>(from)));
#endif
}

// Widens IEEE 16-bit floats into two registers of floats.
UNISONO_INLINE void widen_halves(Halves halves, Floats& low, Floats& high) {
#if defined(__AVX512F__)
    const __m512i both = bits_as<__m512i>(halves);
    low = (Floats)_mm512_maskz_cvtph_ps(0xffff, _mm512_maskz_extracti64x4_epi64(0xf, both, 0));
    high = (Floats)_mm512_maskz_cvtph_ps(0xffff, _mm512_maskz_extracti64x4_epi64(0xf, both, 1));
#elif defined(__aarch64__)
    const auto both = bits_as<float16x8_t>(halves);
    low = bits_as<Floats>(vcvt_f32_f16(vget_low_f16(both)));
    high = bits_as<Floats>(vcvt_high_f32_f16(both));
#else
    const __m256i both = bits_as<__m256i>(halves);
    low = (Floats)_mm256_cvtph_ps(_mm256_castsi256_si128(both));
    high = (Floats)_mm256_cvtph_ps(_mm256_extracti128_si256(both, 1));
#endif
}
#endif

// Returns the largest word of a register.
UNISONO_INLINE std::uint32_t largest_of(Words words) {
#if defined(__AVX512F__)
    const __m512i sixteen = bits_as<__m512i>(words);
    const __m256i eight = _mm256_max_epu32(_mm512_maskz_extracti64x4_epi64(0xf, sixteen, 0),
                                           _mm512_maskz_extracti64x4_epi64(0xf, sixteen, 1));
#elif defined(__AVX2__)
    const __m256i eight = bits_as<__m256i>(words);
#endif
#if defined(__AVX2__)
    __m128i four = _mm_max_epu32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
    four = _mm_max_epu32(four, _mm_shuffle_epi32(four, 0b01001110));
    four = _mm_max_epu32(four, _mm_shuffle_epi32(four, 0b10110001));
    return static_cast<std::uint32_t>(_mm_cvtsi128_si32(four));
#elif defined(__aarch64__)
    return vmaxvq_u32(bits_as<uint32x4_t>(words));
#else
    std::uint32_t found = 0;
    for (int i = 0; i < words_per_register; ++i) found = words[i] > found ? words[i] : found;
    return found;
#endif
}

}  // namespace unisono::UNISONO_VARIANT
