// The layout of the memory that the ranks of a communicator share.
//
//     control | boards, one per rank | channels | staging areas, one per rank and track | transfer slots, several per
//     pair
//
// *Channel*: a FIFO of message headers; short messages travel in the header itself. *Staging area*: the buffer of a
// rank for the longer messages of its collectives, used in a circle. It is deliberately far larger than the messages in
// flight at a time: a line that both cores still hold in their own caches is slow to write again (7 GB/s), a line that
// has moved to the shared cache is not (38 GB/s).
//
// The memory is an anonymous file (memfd), and sparse: a page exists once a rank has written or reserved it, so a
// channel that no program uses costs only address space. Fresh pages hold zeros, and zeros mean "nothing yet".
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace unisono {

// Processors fetch cache lines in pairs, so counters of different writers must be two lines apart.
inline constexpr std::size_t cache_line_pair_bytes = 128;
inline constexpr std::size_t cache_line_bytes = 64;
inline constexpr std::size_t page_bytes = 4096;
// A staging area in huge pages is contiguous in physical memory. Scattered over small pages, parts of it compete for
// the same cache sets, different ones in each run: the same call took 48, 60 or 86 µs, and occasionally 550.
inline constexpr std::size_t huge_page_bytes = 2 << 20;
// A communicator that makes only short calls uses this much of each staging area, because programs make hundreds of
// communicators, most of which exchange little.
inline constexpr std::size_t small_staging_bytes = 64 << 10;

constexpr std::size_t rounded_up(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }
// Allocates a range of the file of the shared memory, so that no later write can fail for lack of memory. Throws
// MemoryRefused.
void allocate_shared(int file, std::uint64_t offset, std::uint64_t bytes);

// The parameters on which all ranks must agree before they access the memory.
struct Geometry {
    std::uint32_t size;            // ranks
    std::uint32_t depth;           // messages in a channel
    std::uint64_t staging_bytes;   // of each rank, for each track
    std::uint64_t transfer_bytes;  // of one message of send and recv
    std::uint32_t tracks = 1;      // passes of a call that run at the same time (track.hpp)
};

// The reason why a communicator can no longer be used. The first rank to notice reports it to all others.
enum class Fault : std::uint32_t {
    none,
    peer_lost,
    timeout,
    mismatch,
    aborted,
    interrupted,
    no_memory,
    internal,
    gpu,
    excluded
};
inline constexpr std::array fault_names{"none",        "peer_lost", "timeout",  "mismatch", "aborted",
                                        "interrupted", "no_memory", "internal", "gpu",      "excluded"};

struct FaultReport {
    Fault fault = Fault::none;
    std::int32_t culprit = -1;  // the rank in the job that the fault is about; -1: no particular rank
    char text[1000] = {};       // a FaultMessage; its end may be cut off
};

struct Control {
    // 0: not broken; 1: the report is being written; 2: it can be read.
    alignas(cache_line_pair_bytes) std::atomic<std::uint32_t> broken;
    FaultReport report;
    // The offset at which the next communicator may begin (see Endpoint::reserve_space). In the first one of a file
    // only.
    alignas(cache_line_pair_bytes) std::atomic<std::uint64_t> file_end;
    // The rank whose proposal of the next communicator is in effect, plus one; 0: none (survivors.hpp).
    std::atomic<std::uint32_t> decided;
    // The last attempt to grow that has been settled, times two, plus one if it succeeded (docs/adr/0072).
    std::atomic<std::uint64_t> growth;
};

// A call that a rank has announced.
class CallRecord {
  public:
    struct Call {
        std::uint64_t number;       // the first call of a communicator has number 1
        std::uint64_t fingerprint;  // of the call
        std::uint32_t text;         // the index of its description in Board::texts
    };
    // One thread writes at a time. A reader that sees one of the new values finds afterwards that the number has
    // changed.
    void store(const Call& call) {
        number_.store(0, std::memory_order_relaxed);
        fingerprint_.store(call.fingerprint, std::memory_order_release);
        text_.store(call.text, std::memory_order_release);
        number_.store(call.number, std::memory_order_release);
    }
    // Returns nothing if there is no call yet, or another one is being written.
    std::optional<Call> load() const {
        const std::uint64_t number = number_.load(std::memory_order_acquire);
        const Call call{number, fingerprint_.load(std::memory_order_acquire), text_.load(std::memory_order_acquire)};
        if (number == 0 || number_.load(std::memory_order_relaxed) != number) return {};
        return call;
    }

  private:
    std::atomic<std::uint64_t> number_;
    std::atomic<std::uint64_t> fingerprint_;
    std::atomic<std::uint32_t> text_;
    [[maybe_unused]] std::uint32_t unused_[3];
};

inline constexpr std::size_t remembered_calls = 16;
inline constexpr std::size_t remembered_texts = 16;
inline constexpr std::size_t text_bytes = 160;

// The part of a rank in the agreement of the survivors. A rank that the user has interrupted withdraws.
enum class Vote : std::uint32_t { none, posted, withdrawn };
inline constexpr std::size_t most_survivors = 4096;

// The state that a rank publishes for the others. Only its own rank writes here, except to the wake word.
struct Board {
    // The number of threads of this rank that sleep on the wake word.
    alignas(cache_line_pair_bytes) std::atomic<std::uint32_t> asleep;
    std::atomic<std::uint32_t> wake_word;                             // a futex; changed to wake them
    alignas(cache_line_pair_bytes) std::atomic<std::uint64_t> calls;  // entered so far
    std::atomic<std::uint32_t> closed;
    std::atomic<std::int32_t> waiting_for;    // a rank, plus one; 0: none; -1: any
    std::atomic<std::uint32_t> waiting_step;  // counted from 1; 0: not in a collective
    struct JobEntry {
        std::int32_t process;
        std::int32_t waits_for;  // a rank of the first communicator, plus one; 0: none
    } job_entry;                 // in the first communicator of a file only: see job_board.hpp
    alignas(cache_line_pair_bytes) CallRecord recent[remembered_calls];
    char texts[remembered_texts][text_bytes];
    // The agreement on the members of the next communicator, after this one has broken.
    alignas(cache_line_pair_bytes) std::atomic<Vote> vote;
    std::atomic<std::uint32_t> arrived;  // in the communicator, by Endpoint::meet
    struct Proposal {
        std::uint64_t offset;  // of the next communicator in the file
        std::uint64_t members[most_survivors / 64];
    } proposal;  // written once, before Control::decided
};
static_assert(sizeof(Board) <= page_bytes);

// A message, or the location of its payload. Short payloads lie beside the flag, in the same cache line.
struct alignas(64) MessageHeader {
    static constexpr std::size_t inline_bytes = 32;
    std::atomic<std::uint64_t> ready;  // number of the message, counted from 1
    std::uint64_t fingerprint;         // of its call
    std::uint64_t bytes;
    std::uint64_t offset;  // of a longer payload in the shared memory (but see transfer.hpp)
    std::byte payload[inline_bytes];
};
static_assert(sizeof(MessageHeader) == 64);

// The number of messages that a reader has taken from a channel, on separate cache lines.
struct alignas(cache_line_pair_bytes) Taken {
    std::atomic<std::uint64_t> messages;
};

// Computes offsets. Channels are numbered: first one for each ordered pair of ranks, for the collectives of track 0,
// then of track 1 and so on; then one for each ordered pair, for send and recv; then one from each rank to all others,
// by track.
class Layout {
  public:
    explicit Layout(const Geometry& geometry);

    struct Range {
        std::size_t offset, bytes;
    };
    std::size_t bytes() const { return end_; }
    Range before_channels() const { return {0, channels_}; }
    std::size_t board(std::size_t rank) const { return boards_ + rank * page_bytes; }
    Range channel(std::size_t number) const;
    Range staging(std::size_t rank, std::size_t track) const {
        return {staging_ + (rank * tracks_ + track) * staging_bytes_, staging_bytes_};
    }
    // The part of it that suffices for short calls.
    Range front_of_staging(std::size_t rank, std::size_t track) const {
        return {staging(rank, track).offset,
                staging_bytes_ < small_staging_bytes ? staging_bytes_ : small_staging_bytes};
    }
    // The payloads of a channel for send and recv.
    Range transfer_slots(std::size_t from, std::size_t to) const {
        return {transfers_ + (from * size_ + to) * transfer_stride_, transfer_stride_};
    }

    // Offsets inside a channel: the headers, then a counter for each reader.
    std::size_t header(std::size_t index) const { return index * sizeof(MessageHeader); }
    std::size_t taken(std::size_t reader) const { return depth_ * sizeof(MessageHeader) + reader * sizeof(Taken); }

    std::size_t between(std::size_t from, std::size_t to, std::size_t track) const {
        return (track * size_ + from) * size_ + to;
    }
    std::size_t transfer(std::size_t from, std::size_t to) const { return between(from, to, tracks_); }
    std::size_t to_all(std::size_t from, std::size_t track) const { return pairs() + track * size_ + from; }
    // The channel with this number if it is one between two ranks; `track` is the number of tracks for send and recv.
    struct Pair {
        std::size_t track, from, to;
    };
    std::optional<Pair> pair(std::size_t channel) const {
        if (channel >= pairs()) return {};
        return Pair{channel / (size_ * size_), channel / size_ % size_, channel % size_};
    }

  private:
    std::size_t pairs() const { return (tracks_ + 1) * size_ * size_; }

    std::size_t size_, depth_, tracks_, boards_, channels_, pair_stride_, all_stride_, staging_, staging_bytes_,
        transfers_, transfer_stride_, end_;
};

}  // namespace unisono
