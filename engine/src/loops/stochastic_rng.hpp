// The random bits of stochastic rounding: 32 bits for each element, a function of a seed and the element's index alone.
#pragma once

#include "packing.hpp"

namespace unisono::UNISONO_VARIANT {

// Two rounds of shifting and multiplying (the constants are those of MurmurHash3) spread every bit of a word over all
// others. The first key shifts the sequence, the second one, between the rounds, makes it another one.
template <typename T>
UNISONO_INLINE T mixed(T x, std::uint32_t key) {
    x = (x ^ (x >> 16)) * 0x85ebca6bu;
    x = x ^ key;
    x = (x ^ (x >> 13)) * 0xc2b2ae35u;
    return x ^ (x >> 16);
}

class StochasticRng {
  public:
    explicit StochasticRng(std::uint64_t seed)
        : shift(mixed(static_cast<std::uint32_t>(seed), 0)),
          key(mixed(static_cast<std::uint32_t>(seed >> 32), shift)) {}

    // The random bits of the elements from `first` on, one register full. They are the same again after 2^32 elements.
    UNISONO_INLINE Words next(std::uint64_t first) const {
        Words index{};
        for (int i = 0; i < words_per_register; ++i) index[i] = static_cast<std::uint32_t>(i);
        return mixed(index + (static_cast<std::uint32_t>(first) + shift), key);
    }

  private:
    std::uint32_t shift, key;
};

}  // namespace unisono::UNISONO_VARIANT
