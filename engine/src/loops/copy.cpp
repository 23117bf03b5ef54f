#include "unisono/copy.hpp"

#include <cstdint>
#include <cstring>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "unisono/memory.hpp"

namespace unisono {

void copy_bytes(void* to, const void* from, std::size_t bytes) {
    constexpr std::size_t small = 1024;  // up to this length memcpy uses plain moves
    constexpr std::size_t block = 128;
    auto* target = static_cast<char*>(to);
    const auto* source = static_cast<const char*>(from);
    if (bytes > small) {
        // Aligns stores to cache lines; unaligned stores are a tenth slower.
        const std::size_t before = -reinterpret_cast<std::uintptr_t>(to) % cache_line_bytes;
        std::memcpy(target, source, cache_line_bytes);
        target += before, source += before, bytes -= before;
        for (; bytes >= block; bytes -= block, target += block, source += block) {
            std::memcpy(target, source, block);  // a constant length: moves, not a call
            asm volatile("" ::: "memory");       // keeps the compiler from merging all of them into one memcpy
        }
    }
    std::memcpy(target, source, bytes);
}

#if defined(__SSE2__)

void copy_streaming(void* to, const void* from, std::size_t bytes) {
    // Only whole cache lines bypass the caches efficiently.
    char* out = static_cast<char*>(to);
    const char* in = static_cast<const char*>(from);
    const std::size_t before = -reinterpret_cast<std::uintptr_t>(to) % cache_line_bytes;
    if (bytes < before + cache_line_bytes) {
        std::memcpy(to, from, bytes);
        return;
    }
    std::memcpy(out, in, before);
    out += before;
    in += before;
    bytes -= before;
    for (; bytes >= cache_line_bytes; bytes -= cache_line_bytes, out += cache_line_bytes, in += cache_line_bytes) {
        __m128i part[4];
        for (int i = 0; i < 4; ++i) part[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in) + i);
        for (int i = 0; i < 4; ++i) _mm_stream_si128(reinterpret_cast<__m128i*>(out) + i, part[i]);
    }
    std::memcpy(out, in, bytes);
    _mm_sfence();  // unlike plain stores, these are not ordered with later stores
}

#else

void copy_streaming(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }

#endif

}  // namespace unisono
