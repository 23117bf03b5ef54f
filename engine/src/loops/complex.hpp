// Complex numbers: as in memory, real and imaginary parts alternate in a register.
#pragma once

#include "small_floats.hpp"

namespace unisono::UNISONO_VARIANT {

// A tag type.
template <typename T>
struct Complex {};
template <typename T>
inline constexpr bool is_complex = false;
template <typename T>
inline constexpr bool is_complex<Complex<T>> = true;

template <typename T>
struct LaneTraits<Complex<T>> : LaneTraits<T> {
    static constexpr std::size_t count = LaneTraits<T>::count / 2;
};

// Exchanges the two parts of each number, or duplicates one of them.
enum class Parts { exchanged, real, imaginary };

template <Parts P, typename V, std::size_t... I>
UNISONO_INLINE V pick(V value, std::index_sequence<I...>) {
    constexpr std::size_t one = 1;
    return __builtin_shufflevector(value, value,
                                   (P == Parts::exchanged ? I ^ one
                                    : P == Parts::real    ? I & ~one
                                                          : I | one)...);
}
template <Parts P, typename T>
UNISONO_INLINE Vector<T> parts(Vector<T> value) {
    return pick<P>(value, std::make_index_sequence<register_bytes / sizeof(T)>{});
}

// Combines the real parts of one register with the imaginary parts of another.
template <typename V, std::size_t... I>
UNISONO_INLINE V put_together(V real, V imaginary, std::index_sequence<I...>) {
    return __builtin_shufflevector(real, imaginary, (I & 1 ? I + sizeof...(I) : I)...);
}
template <typename T>
UNISONO_INLINE Vector<T> put_together(Vector<T> real, Vector<T> imaginary) {
    return put_together(real, imaginary, std::make_index_sequence<register_bytes / sizeof(T)>{});
}

}  // namespace unisono::UNISONO_VARIANT
