// The loops that encode and decode (see wire.hpp). Compiled several times, like combine.cpp.
#include <type_traits>

#include "unisono/wire.hpp"

#include "stochastic_rng.hpp"
#include "operations.hpp"
#include "wire_formats.hpp"

namespace unisono::UNISONO_VARIANT {

static_assert(codec_block_elements == codec_block_elements);

// The offsets in an encoded array. Formats without a scale use codec blocks only as a unit of work.
template <typename F>
struct Layout {
    std::size_t code_offset;

    explicit Layout(std::size_t n)
        : code_offset(F::scaled ? (n + codec_block_elements - 1) / codec_block_elements : 0) {}
    template <typename B>
    B* scale(B* wire, std::size_t block) const {
        return wire + block;
    }
    template <typename B>
    B* codes(B* wire, std::size_t block) const {
        return wire + code_offset + block * codec_block_elements * F::code_bytes;
    }
};

inline float scale_of(std::uint8_t byte) { return bits_as<float>(std::uint32_t{byte} << 23); }

// The limits of a format, as bits of a float.
template <typename F, bool Stochastic>
struct Limits {
    static constexpr std::uint32_t within = Stochastic ? F::limit : F::last_within;
    // The exponent of the largest code, and the number whose addition carries a mantissa above the limit into the
    // exponent.
    static constexpr int exponent = static_cast<int>(F::limit >> 23) - 127;
    static constexpr std::uint32_t carry = 0x7fffffu - (within & 0x7fffffu);
    static constexpr int largest_byte = 254 - exponent;
    // Above these bits an element is NaN, infinite, or too large for the largest scale.
    static constexpr std::uint32_t usual = F::scaled ? (254u << 23) | (within & 0x7fffffu) : within;

    // Returns the byte of the scale of a codec block, from its largest finite magnitude.
    static UNISONO_INLINE std::uint8_t scale_byte(std::uint32_t largest) {
        const int byte = static_cast<int>((largest + carry) >> 23) - exponent;
        return static_cast<std::uint8_t>(byte < 1 ? 1 : byte > largest_byte ? largest_byte : byte);
    }
};

template <typename F>
UNISONO_INLINE void store_codes(std::byte* to, const CodecBlock<Words>& codes) {
    if constexpr (F::code_bytes == 1)
        store_bytes(reinterpret_cast<char*>(to), codes);
    else
        store_halves(reinterpret_cast<char*>(to), codes);
}

// Encodes one codec block. Most have only usual numbers (`Limits::usual`); returns false, and does nothing, if one does
// not.
template <typename F, bool Stochastic, bool AllUsual>
UNISONO_INLINE bool encode_codec_block(const float* from, float* rounded, std::byte* scale, std::byte* to,
                                       const StochasticRng& random, std::uint64_t index) {
    using L = Limits<F, Stochastic>;
    CodecBlock<Floats> values = load_floats(from);
    Words largest{};
    for (const Floats& part : values.part) {
        const Words magnitude = bits_as<Words>(part) & 0x7fffffffu;
        const Words counted = AllUsual ? magnitude : magnitude & bits_as<Words>(magnitude < 0x7f800000u);
        largest = larger(largest, counted);
    }
    float factor = 1;
    if constexpr (F::scaled) {
        const std::uint32_t found = largest_of(largest);
        if (AllUsual && __builtin_expect(found > L::usual, 0)) return false;
        const std::uint8_t byte = L::scale_byte(found);
        *scale = std::byte{byte};
        factor = scale_of(byte);
        for (Floats& part : values.part) part *= scale_of(254 - byte);  // exact, or so small that its code is 0
    } else if (AllUsual && __builtin_expect(any(bits_as<Words>(largest > L::usual)), 0)) {
        return false;
    }
    CodecBlock<Words> codes;
    for (int i = 0; i < codec_block_registers; ++i) {
        const Words bits = bits_as<Words>(values.part[i]), magnitude = bits & 0x7fffffffu, sign = bits & 0x80000000u;
        const Words saturated = smaller(magnitude, all(F::limit)) | sign;
        const Floats value = AllUsual ? values.part[i] : bits_as<Floats>(saturated);
        const Rounded found =
            Stochastic ? F::stochastic(value, random.next(index + i * words_per_register)) : F::nearest(value);
        codes.part[i] = found.code;
        values.part[i] = found.number * factor;
        if (!AllUsual) {
            const Words infinite = F::has_infinity ? bits_as<Words>(magnitude == 0x7f800000u) : Words{};
            const Words infinity_code = (sign != 0 ? all(F::sign_bit) : Words{}) | F::infinity;
            codes.part[i] = magnitude < 0x7f800000u ? codes.part[i] : infinite ? infinity_code : all(F::nan);
            const Floats special = infinite ? bits_as<Floats>(bits) : all(not_a_number<float>);
            values.part[i] = magnitude < 0x7f800000u ? values.part[i] : special;
        }
    }
    store_codes<F>(to, codes);
    if (rounded != nullptr) store_floats(rounded, values);
    return true;
}

// Not inlined, because it would take the registers that hold the constants of the usual case.
template <typename F, bool Stochastic>
[[gnu::noinline]] void encode_unusual(const float* from, float* rounded, std::byte* scale, std::byte* to,
                                      const StochasticRng& random, std::uint64_t index) {
    encode_codec_block<F, Stochastic, false>(from, rounded, scale, to, random, index);
}

template <typename F, bool Stochastic, bool RoundsSource>
[[gnu::noinline]] void encode_all(std::conditional_t<RoundsSource, float*, const float*> from, std::byte* to,
                                  std::size_t n, Rounding rounding) {
    const Layout<F> layout(n);
    const StochasticRng random(rounding.seed);
    const auto encode_at = [&](std::size_t block, const float* values, float* rounded, std::byte* codes) {
        const std::uint64_t index = rounding.first + block * codec_block_elements;
        std::byte* const scale = layout.scale(to, block);
        if (!encode_codec_block<F, Stochastic, true>(values, rounded, scale, codes, random, index))
            encode_unusual<F, Stochastic>(values, rounded, scale, codes, random, index);
    };
    std::size_t block = 0;
    for (; (block + 1) * codec_block_elements <= n; ++block) {
        const auto values = from + block * codec_block_elements;
        if constexpr (RoundsSource)
            encode_at(block, values, values, layout.codes(to, block));
        else
            encode_at(block, values, nullptr, layout.codes(to, block));
    }
    const std::size_t rest = n - block * codec_block_elements;
    if (rest == 0) return;
    // The last, partial block is encoded in a copy on the stack, padded with zeros.
    float values[codec_block_elements]{};
    std::byte codes[codec_block_elements * F::code_bytes];
    __builtin_memcpy(values, from + block * codec_block_elements, rest * sizeof(float));
    encode_at(block, values, RoundsSource ? values : nullptr, codes);
    __builtin_memcpy(layout.codes(to, block), codes, rest * F::code_bytes);
    if constexpr (RoundsSource) __builtin_memcpy(from + block * codec_block_elements, values, rest * sizeof(float));
}

template <typename F, bool RoundsSource>
void encode(std::conditional_t<RoundsSource, float*, const float*> from, std::byte* to, std::size_t n,
            Rounding rounding) {
    const auto loop = rounding.stochastic ? encode_all<F, true, RoundsSource> : encode_all<F, false, RoundsSource>;
    loop(from, to, n, rounding);
}

template <typename F>
UNISONO_INLINE CodecBlock<Floats> decode_codec_block(const std::byte* scale, const std::byte* from) {
    CodecBlock<Floats> values = F::load_block(reinterpret_cast<const char*>(from));
    if constexpr (F::scaled) {
        const float factor = scale_of(static_cast<std::uint8_t>(*scale)) * F::loaded_factor;
        for (Floats& part : values.part) part *= factor;
    }
    return values;
}

// What to do with decoded numbers.
struct Store {
    static UNISONO_INLINE void use(const CodecBlock<Floats>& values, const float*, float* out) {
        store_floats(out, values);
    }
};
template <Reduction R>
struct Add {
    static UNISONO_INLINE void use(const CodecBlock<Floats>& values, const float* left, float* out) {
        CodecBlock<Floats> sums = load_floats(left);
        for (int i = 0; i < codec_block_registers; ++i)
            sums.part[i] = settled<float>(combine_floats<R, float>(sums.part[i], values.part[i]));
        store_floats(out, sums);
    }
};

template <typename F, typename Then>
void decode_combine(const std::byte* from, const float* left, float* out, std::size_t n) {
    const Layout<F> layout(n);
    std::size_t block = 0;
    for (; (block + 1) * codec_block_elements <= n; ++block) {
        const std::size_t at = block * codec_block_elements;
        Then::use(decode_codec_block<F>(layout.scale(from, block), layout.codes(from, block)), left + at, out + at);
    }
    const std::size_t at = block * codec_block_elements, rest = n - at;
    if (rest == 0) return;
    std::byte codes[codec_block_elements * F::code_bytes]{};
    float side[codec_block_elements]{};
    __builtin_memcpy(codes, layout.codes(from, block), rest * F::code_bytes);
    __builtin_memcpy(side, left + at, rest * sizeof(float));
    Then::use(decode_codec_block<F>(layout.scale(from, block), codes), side, side);
    __builtin_memcpy(out + at, side, rest * sizeof(float));
}

template <typename F>
void decode(const std::byte* from, float* out, std::size_t n) {
    decode_combine<F, Store>(from, out, out, n);
}

template <typename F>
DecodeCombine find_decode_combine(Reduction reduction) {
    switch (reduction) {
        case Reduction::sum: return decode_combine<F, Add<Reduction::sum>>;
        case Reduction::prod: return decode_combine<F, Add<Reduction::prod>>;
        case Reduction::max: return decode_combine<F, Add<Reduction::max>>;
        case Reduction::min: return decode_combine<F, Add<Reduction::min>>;
        default: return nullptr;
    }
}

template <typename F>
constexpr WireLoops loops_of{encode<F, false>, encode<F, true>, decode<F>, find_decode_combine<F>};

const WireLoops* find_wire(Wire wire) {
    switch (wire) {
        case Wire::none: return nullptr;
        case Wire::fp16: return &loops_of<Float16>;
        case Wire::bf16: return &loops_of<BrainFloat>;
        case Wire::fp8_e4m3: return &loops_of<ScaledE4M3>;
        case Wire::fp8_e5m2: return &loops_of<ScaledE5M2>;
        case Wire::int8: return &loops_of<ScaledInteger>;
    }
    return nullptr;
}

}  // namespace unisono::UNISONO_VARIANT
