// The staging area of a rank, which holds its longer messages until they are read.
//
// Room is taken in a circle and returned in the same order, once all readers of the oldest message have taken it. All
// that a rank sends in one pass of a program fits (the compiler sizes segments accordingly), so no rank waits here for
// a reader of the same pass, and the proof that the programs do not deadlock remains valid.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include "unisono/channel.hpp"

namespace unisono {

class Staging {
  public:
    Staging() = default;
    Staging(std::uint64_t offset, std::uint64_t bytes) : offset_(offset), capacity_(bytes) {}

    // Enlarges the area. Messages that wait for their readers stay where they are, at the front of the area, which
    // remains in use until the last of them is taken.
    void grow(std::uint64_t bytes) {
        if (bytes <= capacity_) return;
        const std::uint64_t lap = (head_ / bytes + 1) * bytes;  // the start of the larger circle
        for (Message& message : waiting_) message.end = lap;
        oldest_ = lap;
        head_ = waiting_.empty() ? lap : lap + capacity_;
        if (!waiting_.empty()) waiting_.back().end = head_;
        capacity_ = bytes;
    }
    // Returns whether a message is short enough to start inside a cache line. (The compiler leaves room for that; only
    // programs made by hand fill the area completely.)
    bool is_roomy_for(std::uint64_t bytes) const { return bytes + cache_line_bytes <= capacity_ / 2; }
    // Returns whether there is room for `bytes`; releases messages that all their readers have taken.
    bool has_room(std::uint64_t bytes) {
        const std::uint64_t end = start_for(bytes) + rounded(bytes);
        while (end - oldest_ > capacity_) {
            if (waiting_.empty()) {
                oldest_ = head_;
                if (end - oldest_ > capacity_) oldest_ = start_for(bytes);
                return end - oldest_ <= capacity_;
            }
            const Message& first = waiting_.front();
            if (!first.writer->was_taken(first.number)) return false;
            oldest_ = first.end;
            waiting_.pop_front();
        }
        return true;
    }
    // Returns the rank that has yet to take the oldest message.
    std::uint32_t slowest() const { return waiting_.front().writer->slowest(); }
    // Takes room and returns the offset of the payload in the shared memory.
    std::uint64_t take(std::uint64_t bytes) {
        const std::uint64_t start = start_for(bytes);
        head_ = start + rounded(bytes);
        return offset_ + start % capacity_;
    }
    // Assigns the room taken last to the message that was just written.
    void belongs_to(Writer& writer) { waiting_.push_back({head_, &writer, writer.written()}); }

  private:
    static std::uint64_t rounded(std::uint64_t bytes) {
        return (bytes + cache_line_pair_bytes - 1) / cache_line_pair_bytes * cache_line_pair_bytes;
    }
    // A payload is not split at the end of the area; it starts at the front instead.
    std::uint64_t start_for(std::uint64_t bytes) const {
        const std::uint64_t left = capacity_ - head_ % capacity_;
        return left >= rounded(bytes) ? head_ : head_ + left;
    }

    struct Message {
        std::uint64_t end;
        Writer* writer;
        std::uint64_t number;
    };
    std::uint64_t offset_ = 0, capacity_ = 0;
    std::uint64_t head_ = 0, oldest_ = 0;  // positions that never wrap; modulo the capacity they are offsets
    std::deque<Message> waiting_;
};

}  // namespace unisono
