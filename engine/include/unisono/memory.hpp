// The memory that the ranks of a communicator share: what lies where.
//
//     control | boards, one per rank | channels | staging areas, one per rank | transfer slots, some per pair
//
// *Channel*: a first-in-first-out of message headers; what is short travels in the header itself. *Staging area*: where a
// rank puts the longer messages of its collectives, in a circle. It is far larger than what is on its way at a time, and
// that is on purpose: a line that both cores still have in their own caches is slow to write again, one that has moved on
// to the shared cache is not (measured: 7 against 38 GB/s).
//
// It is one file without a name (memfd), and sparse: a page exists once somebody has written to it or reserved it, so a
// channel that no program uses costs address space only. Fresh pages hold zeros, and zeros mean "nothing yet".
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace unisono {

// Two cache lines: processors fetch lines in pairs, and counters of different writers must not meet in one.
inline constexpr std::size_t cache_line_pair_bytes = 128;
inline constexpr std::size_t cache_line_bytes = 64;  // bytes of a cache line
inline constexpr std::size_t page_bytes = 4096;
// What a processor can translate as one piece. A staging area that fills such pages lies in one piece of the real memory
// too. Scattered over small pages, some of them crowd the same corner of the caches, other ones in each run: the same
// call took 48, 60 or 86 µs, and now and then 550.
inline constexpr std::size_t huge_page_bytes = 2 << 20;
// A communicator that makes short calls only has this much of each staging area: programs make hundreds of groups, and
// most of them exchange little.
inline constexpr std::size_t small_staging_bytes = 64 << 10;

// What every rank must agree on before it touches the memory.
struct Geometry {
    std::uint32_t size;            // ranks
    std::uint32_t depth;           // messages that a channel holds
    std::uint64_t staging_bytes;   // of each rank
    std::uint64_t transfer_bytes;  // of one message of send and recv
};

// Why a communicator cannot be used any more. The first rank to notice writes it down for everyone.
enum class Fault : std::uint32_t { none, peer_lost, timeout, mismatch, aborted, interrupted, no_memory, internal };

struct FaultReport {
    Fault fault = Fault::none;
    std::int32_t culprit = -1;  // the rank in the job that it is about; -1: none in particular
    char text[1000] = {};
};

struct Control {
    alignas(cache_line_pair_bytes) std::atomic<std::uint32_t> broken;  // 0: no; 1: somebody is writing the report; 2: it can be read
    FaultReport report;
    alignas(cache_line_pair_bytes) std::atomic<std::uint32_t> closed;  // ranks that have closed the communicator
    // In the first communicator of a file only: where the next one may begin (see Endpoint::reserve_space).
    alignas(cache_line_pair_bytes) std::atomic<std::uint64_t> file_end;
};

// One call, as its rank has announced it.
struct CallRecord {
    std::atomic<std::uint64_t> number;       // the first call of a communicator has number 1
    std::atomic<std::uint64_t> fingerprint;  // of what was called
    std::atomic<std::uint32_t> text;         // which of the texts says it in words
    std::uint32_t unused[3];
};

inline constexpr std::size_t remembered_calls = 16;
inline constexpr std::size_t remembered_texts = 16;
inline constexpr std::size_t text_bytes = 160;

// Where a rank tells the others what it is doing. Only its own rank writes here, except the wake word.
struct Board {
    alignas(cache_line_pair_bytes) std::atomic<std::uint32_t> asleep;  // threads of this rank that sleep until they are woken
    std::atomic<std::uint32_t> wake_word;
    alignas(cache_line_pair_bytes) std::atomic<std::uint64_t> calls;  // entered so far
    std::atomic<std::uint32_t> closed;
    std::atomic<std::int32_t> waiting_for;  // a rank, plus one; 0: none; -1: any
    std::atomic<std::uint32_t> waiting_step;
    alignas(cache_line_pair_bytes) CallRecord recent[remembered_calls];
    char texts[remembered_texts][text_bytes];
};
static_assert(sizeof(Board) <= page_bytes);

// A message, or where the rest of it lies. What is short lies beside the flag, in the same line.
struct alignas(64) MessageHeader {
    static constexpr std::size_t inline_bytes = 32;
    std::atomic<std::uint64_t> ready;  // number of the message, counted from 1
    std::uint64_t fingerprint;         // of the call that it belongs to
    std::uint64_t bytes;
    std::uint64_t offset;  // of the payload in the shared memory, where it is longer than fits here (but see transfer.hpp)
    std::byte payload[inline_bytes];
};
static_assert(sizeof(MessageHeader) == 64);

// How many messages a reader has taken from a channel, on lines of its own.
struct alignas(cache_line_pair_bytes) Taken {
    std::atomic<std::uint64_t> messages;
};

// Computes what lies where. Channels are numbered: first one for each ordered pair, for collectives; then again one for
// each ordered pair, for send and recv; then one from each rank to all others.
class Layout {
  public:
    explicit Layout(const Geometry& geometry);

    struct Range {
        std::size_t offset, bytes;
    };
    std::size_t bytes() const { return end_; }
    std::size_t channel_count() const { return 2 * size_ * size_ + size_; }
    Range before_channels() const { return {0, channels_}; }
    std::size_t board(std::size_t rank) const { return boards_ + rank * page_bytes; }
    Range channel(std::size_t number) const;
    Range staging(std::size_t rank) const { return {staging_ + rank * staging_bytes_, staging_bytes_}; }
    // The part of it that suffices for programs that send little.
    Range front_of_staging(std::size_t rank) const {
        return {staging(rank).offset, staging_bytes_ < small_staging_bytes ? staging_bytes_ : small_staging_bytes};
    }
    // The payloads of a channel of send and recv.
    Range transfer_slots(std::size_t from, std::size_t to) const {
        return {transfers_ + (from * size_ + to) * transfer_stride_, transfer_stride_};
    }

    // Inside a channel: the headers, then a counter for each reader.
    std::size_t header(std::size_t index) const { return index * sizeof(MessageHeader); }
    std::size_t taken(std::size_t reader) const { return depth_ * sizeof(MessageHeader) + reader * sizeof(Taken); }

    std::size_t between(std::size_t from, std::size_t to) const { return from * size_ + to; }
    std::size_t transfer(std::size_t from, std::size_t to) const { return size_ * size_ + from * size_ + to; }
    std::size_t to_all(std::size_t from) const { return 2 * size_ * size_ + from; }

  private:
    std::size_t size_, depth_, boards_, channels_, pair_stride_, all_stride_, staging_, staging_bytes_, transfers_,
        transfer_stride_, end_;
};

}  // namespace unisono
