// A vector whose memory consists of large pages where it is long: the simulation visits the state of one rank after
// another, so with small pages nearly every access would also miss the table of pages.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

namespace unisono {

template <typename T>
struct LargePages {
    using value_type = T;
    static constexpr std::size_t page_bytes = std::size_t{2} << 20;

    LargePages() = default;
    template <typename Other>
    LargePages(const LargePages<Other>&) {}

    static std::align_val_t alignment(std::size_t count) {
        return std::align_val_t{is_large(count) ? page_bytes : alignof(T)};
    }
    static bool is_large(std::size_t count) { return count >= 2 * page_bytes / sizeof(T); }

    T* allocate(std::size_t count) {
        if (count > PTRDIFF_MAX / sizeof(T)) throw std::bad_array_new_length();
        void* const memory = ::operator new(count * sizeof(T), alignment(count));
        // It fails on systems without large pages; then these are small.
        if (is_large(count)) ::madvise(memory, count * sizeof(T) / page_bytes * page_bytes, MADV_HUGEPAGE);
        return static_cast<T*>(memory);
    }
    void deallocate(T* memory, std::size_t count) { ::operator delete(memory, alignment(count)); }
    bool operator==(const LargePages&) const { return true; }
};

template <typename T>
using LargeVector = std::vector<T, LargePages<T>>;

}  // namespace unisono
