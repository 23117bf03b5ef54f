// The random bits of stochastic rounding: 32 bits for each element, which depend only on a seed and the element's
// index.
#pragma once

#include "packing.hpp"

namespace unisono::UNISONO_VARIANT {

// Mixes the bits of a word: two steps of shifting and multiplying (with the constants of MurmurHash3) spread every bit
// over all others. The key, between the steps, selects the sequence.
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
        : shift(mixed(static_cast<std::uint32_t>(seed), 0)), key(mixed(static_cast<std::uint32_t>(seed >> 32), shift)) {
    }

    // Returns the random bits of one register of elements, beginning with element `first`. They repeat after 2^32
    // elements.
    UNISONO_INLINE Words next(std::uint64_t first) const {
        Words index{};
        for (int i = 0; i < words_per_register; ++i) index[i] = static_cast<std::uint32_t>(i);
        return mixed(index + (static_cast<std::uint32_t>(first) + shift), key);
    }

  private:
    std::uint32_t shift, key;
};

}  // namespace unisono::UNISONO_VARIANT
