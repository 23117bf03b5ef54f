// The two ends of a channel: a FIFO of message headers in shared memory, with one writer and one or more readers.
// Nothing here waits; see Endpoint::wait.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "unisono/memory.hpp"

namespace unisono {

struct Message {
    const std::byte* inline_data;  // of a short message
    std::uint64_t offset;          // of a longer one in the shared memory; for send and recv: the tag
    std::uint64_t bytes;
    std::uint64_t fingerprint;
    bool is_short() const { return bytes <= MessageHeader::inline_bytes; }
};

class Writer {
  public:
    Writer() = default;
    Writer(std::byte* channel, const Layout& layout, std::uint32_t depth, std::vector<std::uint32_t> readers);

    // Returns whether a slot is free. The counters of the readers are read only if their last known values do not
    // suffice.
    bool has_room() {
        if (written_ < room_until_) return true;
        room_until_ = taken_by_slowest() + depth_;
        return written_ < room_until_;
    }
    // Returns the reader that has taken the fewest messages.
    std::uint32_t slowest() const { return slowest_; }
    // Returns the address for the payload of the next message, if it is short.
    std::byte* inline_payload() { return next()->payload; }
    // Returns the number of messages written so far, which is also the number of the last message.
    std::uint64_t written() const { return written_; }
    // Returns whether every reader has taken the message with this number.
    bool was_taken(std::uint64_t number) {
        if (number + depth_ <= room_until_) return true;
        room_until_ = taken_by_slowest() + depth_;
        return number + depth_ <= room_until_;
    }
    void publish(std::uint64_t bytes, std::uint64_t offset, std::uint64_t fingerprint) {
        MessageHeader* header = next();
        header->bytes = bytes;
        header->offset = offset;
        header->fingerprint = fingerprint;
        ++written_;
        header->ready.store(written_, std::memory_order_release);
    }

    std::vector<std::uint32_t> readers;

  private:
    MessageHeader* next() { return headers_ + written_ % depth_; }
    std::uint64_t taken_by_slowest() {
        std::uint64_t fewest = ~std::uint64_t{0};
        for (std::size_t index = 0; index < readers.size(); ++index) {
            const std::uint64_t taken = counters_[index]->messages.load(std::memory_order_acquire);
            if (taken < fewest) {
                fewest = taken;
                slowest_ = readers[index];
            }
        }
        return fewest;
    }

    std::vector<Taken*> counters_;
    MessageHeader* headers_ = nullptr;
    std::uint64_t depth_ = 1;
    std::uint64_t written_ = 0;
    std::uint64_t room_until_ = 0;  // messages that can be written without reading the counters
    std::uint32_t slowest_ = 0;
};

class Reader {
  public:
    Reader() = default;
    // `index`: of this reader among the readers of the channel.
    Reader(std::byte* channel, const Layout& layout, std::uint32_t depth, std::uint32_t writer, std::size_t index);

    bool has_message() const { return headers_[read_ % depth_].ready.load(std::memory_order_acquire) == read_ + 1; }
    Message message() const {
        const MessageHeader& header = headers_[read_ % depth_];
        return {header.payload, header.offset, header.bytes, header.fingerprint};
    }
    // Returns the number of messages taken so far.
    std::uint64_t taken() const { return read_; }
    void release() {
        ++read_;
        counter_->messages.store(read_, std::memory_order_release);
    }

    std::uint32_t writer = 0;

  private:
    Taken* counter_ = nullptr;
    MessageHeader* headers_ = nullptr;
    std::uint64_t depth_ = 1;
    std::uint64_t read_ = 0;
};

}  // namespace unisono
