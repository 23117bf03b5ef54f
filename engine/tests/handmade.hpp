// An all-reduce written by hand: every rank adds its part to the message of the rank before it and sends the sum to the
// rank after it, then forwards the results in the same way. It is one C++ loop on the channels and the staging area,
// without a program to interpret. Otherwise it does all that the executor does: it announces the call, marks and checks
// messages, waits, and divides the vector into the same segments.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "unisono/copy.hpp"
#include "unisono/endpoint.hpp"
#include "unisono/reduce.hpp"
#include "unisono/staging.hpp"

namespace unisono::tests {

class Handmade {
  public:
    explicit Handmade(Endpoint& endpoint)
        : endpoint_(endpoint), size_(endpoint.settings.geometry.size), rank_(endpoint.settings.rank) {
        const Layout& layout = endpoint.layout;
        const std::uint32_t depth = endpoint.settings.geometry.depth;
        const std::uint32_t after = (rank_ + 1) % size_, before = (rank_ + size_ - 1) % size_;
        const std::size_t out = layout.between(rank_, after, 0), in = layout.between(before, rank_, 0);
        to_ = Writer(endpoint.channel(out), layout, depth, {after});
        from_ = Reader(endpoint.channel(in), layout, depth, before, 0);
        staging_ = Staging(layout.staging(rank_, 0).offset, layout.staging(rank_, 0).bytes);
        endpoint.open_channel(out);
        endpoint.open_channel(in);
        endpoint.open(layout.staging(rank_, 0));
        add_ = variants().front().find_many(DType::float32, Reduction::sum);
    }

    void all_reduce(float* data, std::uint64_t count, std::uint64_t segment_bytes, std::uint64_t passes, bool streams,
                    const Deadline& deadline) {
        deadline_ = deadline;
        mark_ = 2 + endpoint_.enter(2, text_, 1) * 0x9e3779b97f4a7c15u;
        for (std::uint64_t pass = 0; pass < passes; ++pass) {
            const auto part = [&](std::uint32_t back) {
                return segment(data, count, (rank_ + size_ - back) % size_, segment_bytes, pass);
            };
            const Segment first = part(1 % size_);
            std::memcpy(acquire(first.bytes), first.data, first.bytes);
            publish(first.bytes);
            for (std::uint32_t back = 2; back < size_; ++back) {
                const Segment mine = part(back);
                const void* message = await(mine.bytes);
                add_(acquire(mine.bytes), nullptr, mine.data, &message, 1, mine.bytes / sizeof(float));
                publish(mine.bytes);
                release();
            }
            const Segment whole = part(0);  // with this rank's part the sum is complete
            const void* message = await(whole.bytes);
            add_(whole.data, acquire(whole.bytes), whole.data, &message, 1, whole.bytes / sizeof(float));
            publish(whole.bytes);
            release();
            for (std::uint32_t back = 1; back < size_; ++back) {
                const Segment result = part(back);
                const void* found = await(result.bytes);
                if (back + 1 < size_) {
                    std::memcpy(acquire(result.bytes), found, result.bytes);
                    publish(result.bytes);
                }
                if (streams)
                    copy_streaming(result.data, found, result.bytes);
                else
                    std::memcpy(result.data, found, result.bytes);
                release();
            }
        }
    }

  private:
    struct Segment {
        float* data;
        std::uint64_t bytes;
    };
    Segment segment(float* data, std::uint64_t count, std::uint32_t part, std::uint64_t segment_bytes,
                    std::uint64_t pass) const {
        const std::uint64_t least = count / size_, longer = count % size_;
        const std::uint64_t start = part * least + std::min<std::uint64_t>(part, longer);
        const std::uint64_t bytes = (least + (part < longer)) * sizeof(float), done = pass * segment_bytes;
        return {data + start + done / sizeof(float), bytes > done ? std::min(bytes - done, segment_bytes) : 0};
    }
    std::byte* acquire(std::uint64_t bytes) {
        if (!to_.has_room()) endpoint_.wait([&] { return to_.has_room(); }, {to_.slowest(), 0, deadline_, true});
        if (bytes <= MessageHeader::inline_bytes) return to_.inline_payload();
        if (!staging_.has_room(bytes))  // all messages have the same reader here
            endpoint_.wait([&] { return staging_.has_room(bytes); }, {to_.readers[0], 0, deadline_, true});
        offset_ = staging_.take(bytes);
        return endpoint_.at(offset_);
    }
    void publish(std::uint64_t bytes) {
        to_.publish(bytes, offset_, mark_);
        if (bytes > MessageHeader::inline_bytes) staging_.belongs_to(to_);
        endpoint_.wake_if_asleep((rank_ + 1) % size_);
    }
    const std::byte* await(std::uint64_t bytes) {
        endpoint_.wait([&] { return from_.has_message(); }, {from_.writer, 0, deadline_, true});
        const Message message = from_.message();
        if (message.fingerprint != mark_ || message.bytes != bytes) endpoint_.report_mismatch(from_.writer);
        return endpoint_.data_of(message);
    }
    void release() {
        from_.release();
        endpoint_.wake_if_asleep(from_.writer);
    }

    Endpoint& endpoint_;
    const std::uint32_t size_, rank_;
    Writer to_;
    Reader from_;
    Staging staging_;
    CombineMany add_ = nullptr;
    const std::string text_ = "an all-reduce by hand";
    std::uint64_t mark_ = 0, offset_ = 0;
    Deadline deadline_{};
};

}  // namespace unisono::tests
