// The number formats of the wire, one element at a time: right, and not yet fast.
#include "unisono/wire.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace unisono {

namespace {

// A format of numbers: E bits of exponent, M of mantissa. `limit` is the largest number, `past` the first that is none.
struct Format {
    int exponent_bits, mantissa_bits;
    bool has_infinity;
    float limit;
    std::uint32_t nan;
    int largest_exponent;  // of the limit

    int smallest_exponent() const { return 2 - (1 << (exponent_bits - 1)); }  // of a normal number
};
constexpr Format half{5, 10, true, 65504.0f, 0x7e00, 15};
constexpr Format brain{8, 7, true, 0x1.fep127f, 0x7fc0, 127};
constexpr Format e4m3{4, 3, false, 448.0f, 0x7f, 8};
constexpr Format e5m2{5, 2, true, 57344.0f, 0x7e, 15};

std::uint32_t mixed(std::uint32_t x) {
    x = (x ^ (x >> 16)) * 0x85ebca6bu;
    x = (x ^ (x >> 13)) * 0xc2b2ae35u;
    return x ^ (x >> 16);
}

// A number in [0, 1) for an element.
double die(const Rounding& rounding, std::size_t i) {
    const std::uint64_t index = rounding.first + i;
    const std::uint32_t key = mixed(static_cast<std::uint32_t>(rounding.seed) +
                                    mixed(static_cast<std::uint32_t>(rounding.seed >> 32) +
                                          mixed(static_cast<std::uint32_t>(index >> 32))));
    return (mixed(static_cast<std::uint32_t>(index) ^ key) >> 8) * 0x1p-24;
}

// A number that is a multiple of `quantum` next to a finite value.
double rounded(double value, double quantum, const Rounding& rounding, std::size_t i) {
    const double units = value / quantum;  // exact: a power of two
    return (rounding.stochastic ? std::floor(units + die(rounding, i)) : std::nearbyint(units)) * quantum;
}

std::uint32_t encode_float(const Format& format, float value, const Rounding& rounding, std::size_t i) {
    const int width = format.exponent_bits + format.mantissa_bits;
    const std::uint32_t sign = std::signbit(value) ? 1u << width : 0;
    if (std::isnan(value) || (std::isinf(value) && !format.has_infinity)) return format.nan;
    const std::uint32_t infinity = ((1u << format.exponent_bits) - 1) << format.mantissa_bits;
    if (std::isinf(value)) return sign | infinity;
    const double magnitude = std::min(std::abs(value), format.limit);
    if (magnitude == 0) return sign;
    const int exponent = std::max(std::ilogb(magnitude), format.smallest_exponent());
    const double quantum = std::ldexp(1.0, exponent - format.mantissa_bits);
    const double number = std::min(rounded(magnitude, quantum, rounding, i), double{format.limit});
    const auto units = static_cast<std::uint32_t>(number / quantum);
    const auto biased = static_cast<std::uint32_t>(exponent - format.smallest_exponent());
    return sign | ((biased << format.mantissa_bits) + units);
}

float decode_float(const Format& format, std::uint32_t code) {
    const int width = format.exponent_bits + format.mantissa_bits;
    const std::uint32_t magnitude = code & ((1u << width) - 1);
    const std::uint32_t infinity = ((1u << format.exponent_bits) - 1) << format.mantissa_bits;
    const float sign = (code >> width) & 1 ? -1.0f : 1.0f;
    if (format.has_infinity ? magnitude > infinity : magnitude == format.nan)
        return std::numeric_limits<float>::quiet_NaN();
    if (format.has_infinity && magnitude == infinity) return sign * std::numeric_limits<float>::infinity();
    const int biased = static_cast<int>(magnitude >> format.mantissa_bits);
    const auto mantissa = static_cast<double>(magnitude & ((1u << format.mantissa_bits) - 1)) /
                          (1 << format.mantissa_bits) + (biased != 0);
    return sign * static_cast<float>(std::ldexp(mantissa, std::max(biased, 1) - 1 + format.smallest_exponent()));
}

std::uint8_t encode_int8(float value, const Rounding& rounding, std::size_t i) {
    if (!std::isfinite(value)) return 0x80;
    const double number = std::clamp(rounded(value, 1.0, rounding, i), -127.0, 127.0);
    return static_cast<std::uint8_t>(static_cast<std::int8_t>(number));
}

struct Blocks {
    Wire wire;
    float largest_code;
    float last_within;  // the largest number that rounds to a code
    int largest_exponent;
};
Blocks blocks_of(Wire wire) {
    switch (wire) {
        case Wire::fp8_e4m3: return {wire, 448.0f, 464.0f, 8};
        case Wire::fp8_e5m2: return {wire, 57344.0f, std::nextafter(61440.0f, 0.0f), 15};
        case Wire::int8: return {wire, 127.0f, std::nextafter(127.5f, 0.0f), 6};
        default: throw std::invalid_argument("there is no such codec in the engine");
    }
}

int scale_exponent(const Blocks& blocks, const float* from, std::size_t n, bool stochastic) {
    float largest = 0;
    for (std::size_t i = 0; i < n; ++i)
        if (std::isfinite(from[i])) largest = std::max(largest, std::abs(from[i]));
    const float limit = stochastic ? blocks.largest_code : blocks.last_within;
    int exponent = largest == 0 ? -126 : std::ilogb(largest) - blocks.largest_exponent;
    if (largest > std::ldexp(double{limit}, exponent)) ++exponent;
    return std::clamp(exponent, -126, 127 - blocks.largest_exponent);
}

std::uint8_t encode_code(const Blocks& blocks, float value, const Rounding& rounding, std::size_t i) {
    if (blocks.wire == Wire::int8) return encode_int8(value, rounding, i);
    return static_cast<std::uint8_t>(encode_float(blocks.wire == Wire::fp8_e4m3 ? e4m3 : e5m2, value, rounding, i));
}
float decode_code(const Blocks& blocks, std::uint8_t code) {
    if (blocks.wire == Wire::int8)
        return code == 0x80 ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(static_cast<std::int8_t>(code));
    return decode_float(blocks.wire == Wire::fp8_e4m3 ? e4m3 : e5m2, code);
}

template <typename Use>
void decode_each(Wire wire, const std::byte* from, std::size_t n, Use use) {
    if (wire == Wire::fp16 || wire == Wire::bf16) {
        for (std::size_t i = 0; i < n; ++i) {
            std::uint16_t code;
            __builtin_memcpy(&code, from + 2 * i, 2);
            use(i, decode_float(wire == Wire::fp16 ? half : brain, code));
        }
        return;
    }
    const Blocks blocks = blocks_of(wire);
    const std::byte* const codes = from + (n + wire_block - 1) / wire_block;
    for (std::size_t i = 0; i < n; ++i) {
        const float scale = std::bit_cast<float>(static_cast<std::uint32_t>(from[i / wire_block]) << 23);
        use(i, decode_code(blocks, static_cast<std::uint8_t>(codes[i])) * scale);
    }
}

}  // namespace

void encode(Wire wire, const float* from, std::byte* to, std::size_t n, Rounding rounding) {
    if (wire == Wire::fp16 || wire == Wire::bf16) {
        for (std::size_t i = 0; i < n; ++i) {
            const auto code = static_cast<std::uint16_t>(
                encode_float(wire == Wire::fp16 ? half : brain, from[i], rounding, i));
            __builtin_memcpy(to + 2 * i, &code, 2);
        }
        return;
    }
    const Blocks blocks = blocks_of(wire);
    std::byte* const codes = to + (n + wire_block - 1) / wire_block;
    for (std::size_t begin = 0; begin < n; begin += wire_block) {
        const std::size_t length = std::min(wire_block, n - begin);
        const int exponent = scale_exponent(blocks, from + begin, length, rounding.stochastic);
        to[begin / wire_block] = static_cast<std::byte>(exponent + 127);
        for (std::size_t i = begin; i < begin + length; ++i)
            codes[i] = static_cast<std::byte>(encode_code(blocks, std::ldexp(from[i], -exponent), rounding, i));
    }
}

void decode(Wire wire, const std::byte* from, float* out, std::size_t n) {
    decode_each(wire, from, n, [&](std::size_t i, float value) { out[i] = value; });
}

void encode_rounding_source(Wire wire, float* source, std::byte* to, std::size_t n, Rounding rounding) {
    encode(wire, source, to, n, rounding);
    decode(wire, to, source, n);
}

void decode_combine(Wire wire, Reduction reduction, const std::byte* from, const float* left, float* out,
                    std::size_t n) {
    const Combine combine = variants().front().find(DType::float32, reduction);
    if (combine == nullptr) throw std::invalid_argument("a bitwise reduction has no meaning for float32");
    decode_each(wire, from, n, [&](std::size_t i, float value) { combine(out + i, left + i, &value, 1); });
}

}  // namespace unisono
