#include "unisono/gpu/programs.hpp"

#include <algorithm>
#include <bit>

namespace unisono::gpu {

std::unique_ptr<ProgramMemory::Piece> ProgramMemory::place(const void* program, std::size_t bytes,
                                                           cuda::Stream stream) {
    const int size_class = std::bit_width(std::max<std::size_t>(bytes, 256) - 1);
    auto piece = std::make_unique<Piece>(shared_from_this(), take(size_class), size_class);
    driver_.check(driver_.functions().memcpy_htod_async(piece->address, program, bytes, stream), "cuMemcpyHtoDAsync");
    driver_.check(driver_.functions().stream_synchronize(stream), "cuStreamSynchronize");
    return piece;
}

cuda::Address ProgramMemory::take(int size_class) {
    const std::lock_guard lock(mutex_);
    if (!free_[size_class].empty()) {
        const cuda::Address address = free_[size_class].back();
        free_[size_class].pop_back();
        return address;
    }
    const std::size_t bytes = std::size_t{1} << size_class;
    if (left_ < bytes) {
        const std::size_t needed = std::max(bytes, chunk_bytes);
        chunks_.emplace_back(driver_, needed);
        left_ = needed;
    }
    const DeviceMemory& chunk = chunks_.back();
    const cuda::Address address = chunk.address() + (chunk.bytes() - left_);
    left_ -= bytes;
    return address;
}

void ProgramMemory::give_back(cuda::Address address, int size_class) {
    const std::lock_guard lock(mutex_);
    free_[size_class].push_back(address);
}

void ProgramMemory::release() {
    const std::lock_guard lock(mutex_);
    chunks_.clear();
    left_ = 0;
    for (auto& addresses : free_) addresses.clear();
}

}  // namespace unisono::gpu
