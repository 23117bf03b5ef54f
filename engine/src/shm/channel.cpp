#include "unisono/channel.hpp"

#include <utility>

namespace unisono {

namespace {

MessageHeader* headers_of(std::byte* channel, const Layout& layout) {
    return reinterpret_cast<MessageHeader*>(channel + layout.header(0));
}

Taken* counter_of(std::byte* channel, const Layout& layout, std::size_t index) {
    return reinterpret_cast<Taken*>(channel + layout.taken(index));
}

}  // namespace

Writer::Writer(std::byte* channel, const Layout& layout, std::uint32_t depth, std::vector<std::uint32_t> its_readers)
    : readers(std::move(its_readers)), headers_(headers_of(channel, layout)), depth_(depth) {
    for (std::size_t index = 0; index < readers.size(); ++index)
        counters_.push_back(counter_of(channel, layout, index));
}

Reader::Reader(std::byte* channel, const Layout& layout, std::uint32_t depth, std::uint32_t its_writer,
               std::size_t index)
    : writer(its_writer), counter_(counter_of(channel, layout, index)), headers_(headers_of(channel, layout)),
      depth_(depth) {}

}  // namespace unisono
