#include "unisono/memory.hpp"

#include <fcntl.h>

#include <cerrno>

#include "unisono/fault_message.hpp"

namespace unisono {

void allocate_shared(int file, std::uint64_t offset, std::uint64_t bytes) {
    while (::fallocate(file, 0, static_cast<off_t>(offset), static_cast<off_t>(bytes)) != 0)
        if (errno != EINTR) throw MemoryRefused{"no_shared_memory", bytes, errno};
}

Layout::Layout(const Geometry& geometry) : size_(geometry.size), depth_(geometry.depth), tracks_(geometry.tracks) {
    boards_ = rounded_up(sizeof(Control), page_bytes);
    channels_ = boards_ + size_ * page_bytes;
    pair_stride_ = rounded_up(taken(1), cache_line_pair_bytes);
    all_stride_ = rounded_up(taken(size_), cache_line_pair_bytes);
    const std::size_t unit = geometry.staging_bytes >= huge_page_bytes ? huge_page_bytes : page_bytes;
    staging_ = rounded_up(channels_ + pairs() * pair_stride_ + tracks_ * size_ * all_stride_, unit);
    staging_bytes_ = rounded_up(geometry.staging_bytes, unit);
    transfers_ = staging_ + size_ * tracks_ * staging_bytes_;
    transfer_stride_ = rounded_up(depth_ * geometry.transfer_bytes, page_bytes);
    end_ = rounded_up(transfers_ + size_ * size_ * transfer_stride_, huge_page_bytes);
}

Layout::Range Layout::channel(std::size_t number) const {
    if (number < pairs()) return {channels_ + number * pair_stride_, pair_stride_};
    return {channels_ + pairs() * pair_stride_ + (number - pairs()) * all_stride_, all_stride_};
}

}  // namespace unisono
