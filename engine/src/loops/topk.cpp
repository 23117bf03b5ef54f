#include "unisono/topk.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <stdexcept>
#include <vector>

#include "unisono/wire.hpp"

namespace unisono {

namespace {

// Compared as integers, magnitudes are ordered like the numbers, and every NaN is above infinity. None is negative.
using Magnitude = std::int32_t;
Magnitude magnitude(float value) { return static_cast<Magnitude>(std::bit_cast<std::uint32_t>(value) & 0x7fffffffu); }

// Calls `put(count, i)` for the elements above a limit and counts them. It is also called for other elements, whose
// count is reused for the next one: this avoids unpredictable branches. There must be room for one more element.
template <typename Put>
std::size_t collect(const float* from, std::size_t begin, std::size_t end, Magnitude limit, std::size_t count,
                    Put put) {
    constexpr std::size_t stretch = 16;
    std::size_t i = begin;
    const auto each = [&](std::size_t until) {
        for (; i < until; ++i) {
            put(count, i);
            count += magnitude(from[i]) > limit;
        }
    };
    while (i + stretch <= end) {
        // Most stretches have none; this loop is vectorised.
        int some = 0;
        for (std::size_t j = i; j < i + stretch; ++j) some |= magnitude(from[j]) > limit;
        if (some)
            each(i + stretch);
        else
            i += stretch;
    }
    each(end);
    return count;
}

constexpr std::size_t sampled = 4096;

// Returns the magnitudes of a sample of the elements, the largest first.
std::vector<Magnitude> sample(const float* from, std::size_t n) {
    std::vector<Magnitude> found(std::min(n, sampled));
    const std::size_t stride = n / found.size();
    // One element of each stretch, at varying positions, because an array may be periodic.
    for (std::size_t i = 0; i < found.size(); ++i)
        found[i] = magnitude(from[i * stride + (i * 0x9e3779b97f4a7c15u >> 32) % stride]);
    std::sort(found.begin(), found.end(), std::greater<>());
    return found;
}

// The k-th largest magnitude, and the number of elements above it.
struct Threshold {
    Magnitude magnitude;
    std::size_t larger;
};

// Guesses a magnitude that is slightly too small, collects the elements above it, and finds the k-th largest among
// these. A guess that was too large is followed by a smaller one; zero is never too large.
Threshold threshold(const float* from, std::size_t n, std::size_t k) {
    const std::vector<Magnitude> samples = sample(from, n);
    const std::unique_ptr<Magnitude[]> above(new Magnitude[n + 1]);  // pages that are not written are not allocated
    const double expected = static_cast<double>(k) * static_cast<double>(samples.size()) / static_cast<double>(n);
    for (double position = expected + 4 * std::sqrt(expected) + 4;; position *= 4) {
        const bool possible = position < static_cast<double>(samples.size());
        const Magnitude guess = possible ? samples[static_cast<std::size_t>(position)] : 0;
        const std::size_t larger =
            collect(from, 0, n, guess, 0, [&](std::size_t count, std::size_t i) { above[count] = magnitude(from[i]); });
        if (larger >= k) {
            Magnitude* const kth = above.get() + k - 1;
            std::nth_element(above.get(), kth, above.get() + larger, std::greater<>());
            return {*kth, static_cast<std::size_t>(std::count_if(above.get(), kth, [&](auto m) { return m > *kth; }))};
        }
        const auto equal = std::count_if(from, from + n, [&](float value) { return magnitude(value) == guess; });
        if (larger + static_cast<std::size_t>(equal) >= k) return {guess, larger};
    }
}

// Returns the index after the first `count` elements of a magnitude.
std::size_t end_of_first(std::size_t count, Magnitude wanted, const float* from, std::size_t n) {
    std::size_t i = 0;
    for (; i < n && count != 0; ++i) count -= magnitude(from[i]) == wanted;
    return i;
}

std::size_t windows_of(std::size_t n) { return (n + topk_window - 1) / topk_window; }

}  // namespace

void encode_topk(const float* from, std::byte* to, std::size_t n, std::size_t k) {
    if (k == 0) {
        std::fill_n(to, topk_bytes(n, k), std::byte{});
        return;
    }
    const auto [limit, larger] = threshold(from, n, k);
    const std::size_t end_of_equal = end_of_first(k - larger, limit, from, n);
    std::vector<std::uint16_t> positions(k + 1);
    std::vector<float> values(k + 1);
    const auto put = [&](std::size_t count, std::size_t i) {
        positions[count] = static_cast<std::uint16_t>(i % topk_window);
        values[count] = from[i];
    };
    std::size_t kept = 0;
    for (std::size_t begin = 0; begin < n; begin += topk_window) {
        const std::size_t before = kept, end = std::min(begin + topk_window, n);
        const std::size_t middle = std::clamp(end_of_equal, begin, end);
        kept = collect(from, begin, middle, limit - 1, kept, put);
        kept = collect(from, middle, end, limit, kept, put);
        const auto count = static_cast<std::uint32_t>(kept - before);
        __builtin_memcpy(to + begin / topk_window * 4, &count, 4);
    }
    std::byte* const rest = to + windows_of(n) * 4;
    __builtin_memcpy(rest, positions.data(), 2 * k);
    encode(Wire::bf16, values.data(), rest + 2 * k, k);
}

void add_topk(const std::byte* from, float* out, std::size_t n, std::size_t k) {
    const std::byte* const positions = from + windows_of(n) * 4;
    std::vector<float> values(k);
    decode(Wire::bf16, positions + 2 * k, values.data(), k);
    std::size_t at = 0;
    for (std::size_t begin = 0; begin < n; begin += topk_window) {
        const std::size_t length = std::min(topk_window, n - begin);
        std::uint32_t count;
        __builtin_memcpy(&count, from + begin / topk_window * 4, 4);
        if (count > k - at) throw std::invalid_argument("the windows of a top-k wire hold more than k elements");
        for (const std::size_t end = at + count; at < end; ++at) {
            std::uint16_t position;
            __builtin_memcpy(&position, positions + 2 * at, 2);
            if (position >= length)
                throw std::invalid_argument("a position on a top-k wire is past the end of its window");
            const float sum = out[begin + position] + values[at];
            out[begin + position] = sum == sum ? sum : std::numeric_limits<float>::quiet_NaN();
        }
    }
    if (at != k) throw std::invalid_argument("the windows of a top-k wire hold fewer than k elements");
}

}  // namespace unisono
