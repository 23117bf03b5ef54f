// Vector registers, as wide as the instruction set that this file is compiled for.
//
// They are the vector types of gcc and clang: arithmetic and comparisons work element by element, on every processor.
// Processor-specific intrinsics are used only for operations that these types cannot express (docs/adr/0038).
//
// Everything is in the namespace of the variant (see combine.cpp): an inline function compiled for newer instructions
// must not replace the same function compiled for older ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#if defined(__SSE2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

// Processors that convert IEEE 16-bit floats to float and back: x86 with F16C, and every aarch64.
#if defined(__F16C__) || defined(__aarch64__)
#define UNISONO_CONVERTS_HALVES
#endif

#define UNISONO_INLINE inline __attribute__((always_inline))

namespace unisono::UNISONO_VARIANT {

#if defined(__AVX512F__)
inline constexpr std::size_t register_bytes = 64;
#elif defined(__AVX2__)
inline constexpr std::size_t register_bytes = 32;
#else
inline constexpr std::size_t register_bytes = 16;
#endif

template <typename T>
struct VectorOf {
    typedef T type __attribute__((vector_size(register_bytes)));
};
template <typename T>
using Vector = typename VectorOf<T>::type;
using Floats = Vector<float>;
using Words = Vector<std::uint32_t>;
using Halves = Vector<std::uint16_t>;
using Bytes = Vector<std::uint8_t>;

template <typename To, typename From>
UNISONO_INLINE To bits_as(From value) {
    return __builtin_bit_cast(To, value);
}

// Memory is aligned to elements, not to registers.
template <typename V>
UNISONO_INLINE V load(const char* from) {
    V value;
    __builtin_memcpy(&value, from, sizeof value);
    return value;
}
template <typename V>
UNISONO_INLINE void store(char* to, V value) {
    __builtin_memcpy(to, &value, sizeof value);
}

// The lanes of several registers, on which the loops work at a time: enough to keep the processor busy, few enough that
// the lanes, their addends and the constants all fit into the registers.
template <typename T>
struct Lanes {
    static constexpr int parts = 4;
    Vector<T> part[parts];
};

// The canonical NaN.
template <typename T>
inline constexpr T not_a_number = static_cast<T>(__builtin_nanf(""));

template <typename T>
UNISONO_INLINE Vector<T> all(T value) {
    return Vector<T>{} + value;
}

template <typename T>
UNISONO_INLINE Vector<T> settled(Vector<T> value) {
    return value == value ? value : all(not_a_number<T>);
}

// gcc 12 recognises the minimum and maximum of words on aarch64, but not on x86.
UNISONO_INLINE Words smaller(Words a, Words b) {
#if defined(__AVX512F__)
    return bits_as<Words>(_mm512_maskz_min_epu32(0xffff, bits_as<__m512i>(a), bits_as<__m512i>(b)));
#elif defined(__AVX2__)
    return bits_as<Words>(_mm256_min_epu32(bits_as<__m256i>(a), bits_as<__m256i>(b)));
#else
    return a < b ? a : b;
#endif
}
UNISONO_INLINE Words larger(Words a, Words b) {
#if defined(__AVX512F__)
    return bits_as<Words>(_mm512_maskz_max_epu32(0xffff, bits_as<__m512i>(a), bits_as<__m512i>(b)));
#elif defined(__AVX2__)
    return bits_as<Words>(_mm256_max_epu32(bits_as<__m256i>(a), bits_as<__m256i>(b)));
#else
    return a > b ? a : b;
#endif
}
UNISONO_INLINE Bytes larger(Bytes a, Bytes b) {
#if defined(__AVX512F__)
    return bits_as<Bytes>(_mm512_max_epu8(bits_as<__m512i>(a), bits_as<__m512i>(b)));
#elif defined(__AVX2__)
    return bits_as<Bytes>(_mm256_max_epu8(bits_as<__m256i>(a), bits_as<__m256i>(b)));
#elif defined(__SSE2__)
    return bits_as<Bytes>(_mm_max_epu8(bits_as<__m128i>(a), bits_as<__m128i>(b)));
#else
    return a > b ? a : b;
#endif
}

// Selects the bits of `a` where the mask is one, and those of `b` where it is zero.
UNISONO_INLINE Halves chosen(std::uint16_t mask, Halves a, Halves b) {
#if defined(__AVX512F__)
    return bits_as<Halves>(
        _mm512_ternarylogic_epi64(_mm512_set1_epi16(mask), bits_as<__m512i>(a), bits_as<__m512i>(b), 0xca));
#else
    return (a & mask) | (b & static_cast<std::uint16_t>(~mask));
#endif
}

// Returns whether any bit is set.
UNISONO_INLINE bool any(Words words) {
#if defined(__AVX512F__)
    return _mm512_test_epi32_mask(bits_as<__m512i>(words), bits_as<__m512i>(words)) != 0;
#elif defined(__AVX2__)
    return !_mm256_testz_si256(bits_as<__m256i>(words), bits_as<__m256i>(words));
#else
    using Longs = Vector<std::uint64_t>;
    const Longs longs = bits_as<Longs>(words);
    return (longs[0] | longs[1]) != 0;
#endif
}
UNISONO_INLINE bool any_at_least(Bytes bytes, std::uint8_t least) {
#if defined(__AVX512F__)
    return _mm512_cmpge_epu8_mask(bits_as<__m512i>(bytes), bits_as<__m512i>(all(least))) != 0;
#else
    return any(bits_as<Words>(larger(bytes, all(least)) == bytes));
#endif
}

// Interleaves the lower or upper halves of the words of two registers: x, y, the next of x, ...
#if defined(__AVX512F__)
template <std::size_t First, std::size_t... I>
UNISONO_INLINE Halves interleaved(Words x, Words y, std::index_sequence<I...>) {
    return __builtin_shufflevector(bits_as<Halves>(x), bits_as<Halves>(y),
                                   ((I & ~std::size_t{1}) + First + (I & 1) * sizeof...(I))...);
}
UNISONO_INLINE Halves lower_halves(Words x, Words y) {
    return interleaved<0>(x, y, std::make_index_sequence<register_bytes / 2>{});
}
UNISONO_INLINE Halves upper_halves(Words x, Words y) {
    return interleaved<1>(x, y, std::make_index_sequence<register_bytes / 2>{});
}
#elif defined(__AVX2__)
UNISONO_INLINE Halves lower_halves(Words x, Words y) {
    return bits_as<Halves>(_mm256_blend_epi16(bits_as<__m256i>(x), bits_as<__m256i>(y << 16), 0xaa));
}
UNISONO_INLINE Halves upper_halves(Words x, Words y) {
    return bits_as<Halves>(_mm256_blend_epi16(bits_as<__m256i>(x >> 16), bits_as<__m256i>(y), 0xaa));
}
#else
UNISONO_INLINE Halves lower_halves(Words x, Words y) { return bits_as<Halves>((x & 0x0000ffffu) | (y << 16)); }
UNISONO_INLINE Halves upper_halves(Words x, Words y) { return bits_as<Halves>((x >> 16) | (y & 0xffff0000u)); }
#endif

// Returns whether the lanes may contain a NaN. They rarely do, so a branch is cheaper than fixing each register.
UNISONO_INLINE bool may_have_nan(const Lanes<float>& lanes) {
    const Floats* const p = lanes.part;
#if defined(__AVX512F__)
    const auto first = _mm512_cmp_ps_mask((__m512)p[0], (__m512)p[1], _CMP_UNORD_Q);
    const auto second = _mm512_cmp_ps_mask((__m512)p[2], (__m512)p[3], _CMP_UNORD_Q);
    return __builtin_expect(!_mm512_kortestz(first, second), false);
#elif defined(__AVX2__)
    const __m256 first = _mm256_cmp_ps((__m256)p[0], (__m256)p[1], _CMP_UNORD_Q);
    const __m256 second = _mm256_cmp_ps((__m256)p[2], (__m256)p[3], _CMP_UNORD_Q);
    return __builtin_expect(_mm256_movemask_ps(_mm256_or_ps(first, second)) != 0, false);
#elif defined(__SSE2__)
    const __m128 first = _mm_cmpunord_ps((__m128)p[0], (__m128)p[1]);
    const __m128 second = _mm_cmpunord_ps((__m128)p[2], (__m128)p[3]);
    return __builtin_expect(_mm_movemask_ps(_mm_or_ps(first, second)) != 0, false);
#else
    const auto numbers = (p[0] == p[0]) & (p[1] == p[1]) & (p[2] == p[2]) & (p[3] == p[3]);
    return __builtin_expect(any(~bits_as<Words>(numbers)), false);
#endif
}

}  // namespace unisono::UNISONO_VARIANT
