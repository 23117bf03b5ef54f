#include "unisono/memory.hpp"

namespace unisono {

namespace {

std::size_t rounded_up(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

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
