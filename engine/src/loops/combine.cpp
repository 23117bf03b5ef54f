// The loops that reduce arrays. This file is compiled several times, for different instruction sets (see
// CMakeLists.txt). UNISONO_VARIANT is the name of the namespace, so that the copies do not collide.
//
// The compiler must not contract a product and a sum into one operation, because the bits would then depend on the
// processor (-ffp-contract=off).
#include <type_traits>

#include "complex.hpp"
#include "small_floats.hpp"
#include "operations.hpp"
#include "own_scale.hpp"
#include "unisono/reduce.hpp"

namespace unisono::UNISONO_VARIANT {

// Values other than 0 and 1 are not valid as C++ bool, so booleans are combined as bytes.
template <>
struct LaneTraits<bool> : LaneTraits<std::uint8_t> {};

template <typename T>
UNISONO_INLINE Vector<T> multiply_complex(Vector<T> a, Vector<T> b) {
    using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    const Vector<T> first = parts<Parts::real, T>(a) * b;
    const Vector<T> second = parts<Parts::imaginary, T>(a) * parts<Parts::exchanged, T>(b);
    // Flips signs and adds instead of alternating subtraction and addition: gcc 12 fuses the latter with a product even
    // if it is told not to contract.
    const Vector<Bits> minus = all(Bits{1} << (8 * sizeof(T) - 1));
    const Vector<Bits> minus_real = put_together<Bits>(minus, Vector<Bits>{});
    return first + bits_as<Vector<T>>(bits_as<Vector<Bits>>(second) ^ minus_real);
}

template <Reduction R, typename T>
UNISONO_INLINE Vector<T> combine_integers(Vector<T> a, Vector<T> b) {
    using U = Vector<std::make_unsigned_t<T>>;  // overflow wraps around
    if constexpr (R == Reduction::sum) return bits_as<Vector<T>>(bits_as<U>(a) + bits_as<U>(b));
    if constexpr (R == Reduction::prod) return bits_as<Vector<T>>(bits_as<U>(a) * bits_as<U>(b));
    if constexpr (R == Reduction::max) return a > b ? a : b;
    if constexpr (R == Reduction::min) return a < b ? a : b;
    if constexpr (R == Reduction::band) return a & b;
    if constexpr (R == Reduction::bor) return a | b;
    if constexpr (R == Reduction::bxor) return a ^ b;
}

// As in numpy, the sum of booleans is `or` and their product is `and`.
constexpr Reduction of_booleans(Reduction r) {
    if (r == Reduction::sum || r == Reduction::max) return Reduction::bor;
    if (r == Reduction::prod || r == Reduction::min) return Reduction::band;
    return r;
}

template <Reduction R, typename T, typename E = typename LaneTraits<T>::Element>
UNISONO_INLINE void combine_lanes(Lanes<E>& a, const Lanes<E>& b) {
    for (int i = 0; i < Lanes<E>::parts; ++i) {
        Vector<E>& x = a.part[i];
        const Vector<E> y = b.part[i];
        if constexpr (std::is_same_v<T, bool>) {
            x = combine_integers<of_booleans(R), E>(x, y);
        } else if constexpr (std::is_integral_v<E>) {
            x = combine_integers<R, E>(x, y);
        } else if constexpr (is_complex<T> && R == Reduction::prod) {
            x = multiply_complex<E>(x, y);
        } else {
            x = combine_floats<R, E>(x, y);
        }
    }
}

template <Reduction R, typename T>
UNISONO_INLINE void combine_lanes(ScaledLanes& a, const ScaledLanes& b) {
    combine_lanes<R, T>(a.numbers, b.numbers);
    a.largest = larger(a.largest, b.largest);
}

// Replaces every NaN by the canonical one. For small floats, narrowing does that.
template <typename T, typename E = typename LaneTraits<T>::Element>
UNISONO_INLINE void finish(Lanes<E>& lanes) {
    for (Vector<E>& part : lanes.part) {
        if constexpr (is_complex<T>) {
            // If one part of a complex number is NaN, both become NaN.
            const Vector<E> other = parts<Parts::exchanged, E>(part);
            const auto number = (part == part) & (other == other);
            part = number ? part : all(not_a_number<E>);
        } else if constexpr (std::is_floating_point_v<T>) {
            part = settled<E>(part);
        }
    }
}

inline const char* moved(const void* pointer, std::size_t bytes) { return static_cast<const char*>(pointer) + bytes; }
inline char* moved(void* pointer, std::size_t bytes) { return static_cast<char*>(pointer) + bytes; }

// The number of addends that a loop is specialised for: one, a few, or many. Processors prefetch an array that is read
// sequentially, but not many arrays at once; those are prefetched explicitly, `ahead` bytes before they are needed.
// (Measured: twice as fast for 63 addends of 256 KiB; slower for 7.)
enum class Addends { one, few, many };
inline constexpr std::size_t most_of_few = 8;
inline constexpr std::size_t ahead = 2048;
inline constexpr std::size_t cache_line_bytes = 64;
inline constexpr std::size_t worth_aligning = 4096;  // bytes

// Combines the lanes of all arrays at an offset of `at` bytes.
template <Reduction R, typename T, typename L, Addends A>
UNISONO_INLINE auto total(const void* first, const void* const* addends, std::size_t addend_count, std::size_t at) {
    auto lanes = L::load_lanes(moved(first, at));
    for (std::size_t k = 0; k < addend_count; ++k) {
        const char* const from = moved(addends[k], at);
        if constexpr (A == Addends::many)
            for (std::size_t line = 0; line < LaneTraits<T>::bytes; line += 64)
                __builtin_prefetch(from + ahead + line, 0, 2);
        combine_lanes<R, T>(lanes, L::load_lanes(from));
    }
    return lanes;
}

// Combines at most as many bytes as the lanes hold, such as the end of the arrays, in a copy on the stack.
template <Reduction R, typename T>
[[gnu::noinline]] void combine_part(void* out, void* also, const void* first, const void* const* addends,
                                    std::size_t addend_count, std::size_t at, std::size_t bytes) {
    alignas(register_bytes) char side[LaneTraits<T>::bytes]{};
    __builtin_memcpy(side, moved(first, at), bytes);
    auto lanes = LaneTraits<T>::load_lanes(side);
    for (std::size_t k = 0; k < addend_count; ++k) {
        __builtin_memcpy(side, moved(addends[k], at), bytes);
        combine_lanes<R, T>(lanes, LaneTraits<T>::load_lanes(side));
    }
    finish<T>(lanes);
    LaneTraits<T>::store_lanes(side, lanes);
    __builtin_memcpy(moved(out, at), side, bytes);
    if (also != nullptr) __builtin_memcpy(moved(also, at), side, bytes);
}

template <Reduction R, typename T, Addends A>
[[gnu::noinline]] void combine_many(void* out, void* also, const void* first, const void* const* addends,
                                    std::size_t addend_count, std::size_t count) {
    using L = LaneTraits<T>;
    const std::size_t bytes = count * (L::bytes / L::count);
    const std::size_t n = A == Addends::one ? 1 : addend_count;
    std::size_t at = 0;
    if (bytes >= worth_aligning) {
        // Aligns stores to cache lines; unaligned stores are a tenth slower.
        const std::size_t before = -reinterpret_cast<std::uintptr_t>(out) % cache_line_bytes;
        if (before % (L::bytes / L::count) == 0 && before <= L::bytes) {
            combine_part<R, T>(out, also, first, addends, n, 0, before);
            at = before;
        }
    }
    const auto copy = [&] {
        if (also == nullptr) return;
        for (std::size_t i = at; i < at + L::bytes; i += register_bytes)
            store(moved(also, i), load<Bytes>(moved(out, i)));
    };
    if constexpr (R == Reduction::sum && in_own_scale<T>) {
        while (at + L::bytes <= bytes) {
            // The call below is kept out of the inner loop, because it would spill the registers each time.
            for (; at + L::bytes <= bytes; at += L::bytes) {
                const auto lanes = total<R, T, OwnScale<T>, A>(first, addends, n, at);
                if (!OwnScale<T>::try_store(moved(out, at), lanes)) break;
                copy();
            }
            if (at + L::bytes > bytes) break;
            combine_part<R, T>(out, also, first, addends, n, at, L::bytes);
            at += L::bytes;
        }
    } else {
        for (; at + L::bytes <= bytes; at += L::bytes) {
            auto lanes = total<R, T, L, A>(first, addends, n, at);
            finish<T>(lanes);
            L::store_lanes(moved(out, at), lanes);
            copy();
        }
    }
    if (at < bytes) combine_part<R, T>(out, also, first, addends, addend_count, at, bytes - at);
}

template <Reduction R, typename T>
void combine_any(void* out, void* also, const void* first, const void* const* addends, std::size_t addend_count,
                 std::size_t count) {
    const auto loop = addend_count == 1             ? combine_many<R, T, Addends::one>
                      : addend_count <= most_of_few ? combine_many<R, T, Addends::few>
                                                    : combine_many<R, T, Addends::many>;
    loop(out, also, first, addends, addend_count, count);
}

template <Reduction R, typename T>
void combine(void* out, const void* left, const void* right, std::size_t count) {
    combine_many<R, T, Addends::one>(out, nullptr, left, &right, 1, count);
}

// The loops for a type and a reduction; nullptr if the reduction is not defined for the type.
template <Reduction R, typename T>
constexpr bool is_defined() {
    constexpr bool bitwise = R == Reduction::band || R == Reduction::bor || R == Reduction::bxor;
    constexpr bool ordering = R == Reduction::max || R == Reduction::min;
    return std::is_integral_v<T> || !(bitwise || (ordering && is_complex<T>));
}
struct Loops {
    Combine one;
    CombineMany many;
};
template <Reduction R, typename T>
constexpr Loops loops() {
    if constexpr (is_defined<R, T>())
        return {combine<R, T>, combine_any<R, T>};
    else
        return {nullptr, nullptr};
}

template <typename T>
Loops find_loops(Reduction reduction) {
    switch (reduction) {
        case Reduction::sum: return loops<Reduction::sum, T>();
        case Reduction::prod: return loops<Reduction::prod, T>();
        case Reduction::max: return loops<Reduction::max, T>();
        case Reduction::min: return loops<Reduction::min, T>();
        case Reduction::band: return loops<Reduction::band, T>();
        case Reduction::bor: return loops<Reduction::bor, T>();
        case Reduction::bxor: return loops<Reduction::bxor, T>();
    }
    return {nullptr, nullptr};
}

Loops find_loops(DType dtype, Reduction reduction) {
    switch (dtype) {
        case DType::float32: return find_loops<float>(reduction);
        case DType::float64: return find_loops<double>(reduction);
        case DType::float16: return find_loops<Half>(reduction);
        case DType::bfloat16: return find_loops<BFloat>(reduction);
        case DType::float8_e4m3fn: return find_loops<Float8E4M3>(reduction);
        case DType::float8_e5m2: return find_loops<Float8E5M2>(reduction);
        case DType::int8: return find_loops<std::int8_t>(reduction);
        case DType::int16: return find_loops<std::int16_t>(reduction);
        case DType::int32: return find_loops<std::int32_t>(reduction);
        case DType::int64: return find_loops<std::int64_t>(reduction);
        case DType::uint8: return find_loops<std::uint8_t>(reduction);
        case DType::uint16: return find_loops<std::uint16_t>(reduction);
        case DType::uint32: return find_loops<std::uint32_t>(reduction);
        case DType::uint64: return find_loops<std::uint64_t>(reduction);
        case DType::boolean: return find_loops<bool>(reduction);
        case DType::complex64: return find_loops<Complex<float>>(reduction);
        case DType::complex128: return find_loops<Complex<double>>(reduction);
    }
    return {nullptr, nullptr};
}

Combine find_combine(DType dtype, Reduction reduction) { return find_loops(dtype, reduction).one; }
CombineMany find_many(DType dtype, Reduction reduction) { return find_loops(dtype, reduction).many; }

}  // namespace unisono::UNISONO_VARIANT
