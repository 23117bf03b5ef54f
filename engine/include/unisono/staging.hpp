// The staging area of a rank: where its longer messages wait for their readers.
//
// Room is taken in a circle and given back in the same order, once all readers of the oldest message have taken it. What a
// rank sends in one pass of a program always fits (the compiler cuts accordingly), so nobody waits here for a reader of the
// same pass: the proof that the programs do not deadlock stays true.
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

    // Takes the area to be longer from now on. Messages that wait for their readers stay where they are: in the front of
    // the area, which is in use until the last of them was taken.
    void grow(std::uint64_t bytes) {
        if (bytes <= capacity_) return;
        const std::uint64_t lap = (head_ / bytes + 1) * bytes;  // the beginning of the longer circle
        for (Message& message : waiting_) message.end = lap;
        oldest_ = lap;
        head_ = waiting_.empty() ? lap : lap + capacity_;
        if (!waiting_.empty()) waiting_.back().end = head_;
        capacity_ = bytes;
    }
    // Whether a message is so short that it may lie a little behind the beginning of a line. (The compiler leaves room
    // for that; programs that fill the area to the last byte are not its own.)
    bool is_roomy_for(std::uint64_t bytes) const { return bytes + cache_line_bytes <= capacity_ / 2; }
    // Whether there is room for so many bytes; gives back what has been taken by its readers.
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
    // The rank that the oldest message waits for.
    std::uint32_t slowest() const { return waiting_.front().writer->slowest(); }
    // Takes the room; returns the offset of the payload in the shared memory.
    std::uint64_t take(std::uint64_t bytes) {
        const std::uint64_t start = start_for(bytes);
        head_ = start + rounded(bytes);
        return offset_ + start % capacity_;
    }
    // Says which message what was taken last belongs to.
    void belongs_to(Writer& writer) { waiting_.push_back({head_, &writer, writer.written()}); }

  private:
    static std::uint64_t rounded(std::uint64_t bytes) { return (bytes + cache_line_pair_bytes - 1) / cache_line_pair_bytes * cache_line_pair_bytes; }
    // A payload is not cut at the end of the area: it begins at the front again.
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
    std::uint64_t head_ = 0, oldest_ = 0;  // positions on the endless line that is wound round the area
    std::deque<Message> waiting_;
};

}  // namespace unisono
