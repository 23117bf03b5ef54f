// The layout of the memory that the engine shares with the kernel (src/unisono/gpu/kernel/launch.cuh).
//
// The kernel is compiled for a maximal number of ranks (`most`: 16 or 64), on which the sizes depend.
//
// Record: the flags of one thread block.
//     u64 entry[2][most][3]      peers write here: by parity and peer, the input, the output and the fingerprint
//     u32 signal[most]           peers write here
//     u32 calls[most], sent[most], received[most]     of this rank only
// State: u32 abort, u32 fault_claimed, padding to 128 bytes, records. After the records of the thread blocks follow
// two for send and recv: for messages from a lower to a higher rank, and for the others.
//
// An entry has its value in bits 0 to 47 and the sequence number of the pair in bits 48 to 63; the parity is that of
// the sequence number. In kernel mode the kernel keeps the sequence numbers. In stream mode the engine does: Peer::
// fingerprint then holds the complete entry (with the sequence number) that the kernel must find, because pairs of
// ranks may have different sequence numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace unisono::gpu {

inline constexpr std::uint32_t threads_per_block = 512;
inline constexpr std::uint32_t most_ranks = 64;
inline constexpr int sequence_shift = 48;
inline constexpr std::uint64_t entry_mask = (std::uint64_t{1} << sequence_shift) - 1;

struct LaunchHead {
    std::uint64_t program, state, mailbox, input, output, scratch, timeout_ns;
    std::uint32_t rank, size, record, mode, first_step, steps, pass, parity;
};
static_assert(sizeof(LaunchHead) == 88 && offsetof(LaunchHead, rank) == 56);

struct LaunchPeer {
    std::uint64_t state, input, output, fingerprint, scratch;
};
static_assert(sizeof(LaunchPeer) == 40);

// The parameter of the kernel: a LaunchHead, then a LaunchPeer for each of `most` ranks.
class LaunchParameter {
  public:
    explicit LaunchParameter(std::uint32_t most) : words_((sizeof(LaunchHead) + most * sizeof(LaunchPeer)) / 8) {}
    LaunchHead& head() { return *reinterpret_cast<LaunchHead*>(words_.data()); }
    LaunchPeer& peer(std::uint32_t rank) {
        return reinterpret_cast<LaunchPeer*>(words_.data() + sizeof(LaunchHead) / 8)[rank];
    }
    void* data() { return words_.data(); }

  private:
    std::vector<std::uint64_t> words_;
};

inline constexpr std::uint32_t kernel_mode = 0, stream_mode = 1;

class StateLayout {
  public:
    explicit StateLayout(std::uint32_t most) : most_(most) {}
    std::uint64_t record_bytes() const { return 64 * most_; }
    std::uint64_t bytes(std::uint32_t records) const { return head_bytes + records * record_bytes(); }
    std::uint64_t abort() const { return 0; }
    std::uint64_t abort_in_host() const { return 8; }
    std::uint64_t record(std::uint32_t number) const { return head_bytes + number * record_bytes(); }
    std::uint64_t entry(std::uint32_t record_number, std::uint32_t parity, std::uint32_t peer) const {
        return record(record_number) + (parity * most_ + peer) * 24;
    }
    std::uint64_t signal(std::uint32_t record_number, std::uint32_t peer) const {
        return record(record_number) + 48 * most_ + 4 * peer;
    }

  private:
    static constexpr std::uint64_t head_bytes = 128;
    std::uint64_t most_;
};

// What a kernel tells the host, in host memory.
struct Mailbox {
    // Written last. `aborted` is not a fault but says where a thread waited when it found the abort word set.
    enum Fault : std::uint32_t { none = 0, mismatch = 1, timeout = 2, aborted = 3 };
    std::uint32_t fault, peer, step, pass;
    std::uint32_t started, completed;  // calls of stream mode; they wrap around
    std::uint32_t kind, calls;         // calls: of kernel mode that were over at the time of the fault
};
static_assert(sizeof(Mailbox) == 32);

// The head of a compiled program; see src/unisono/gpu/lowering.py for the rest.
struct ProgramHead {
    std::uint32_t words, steps, passes, flags;
    std::uint64_t segment_bytes, contacts;  // contacts: bit r is set if anything is exchanged with rank r
};
static_assert(sizeof(ProgramHead) == 32);

// An operation of a plan in stream mode; see src/unisono/gpu/stream_plan.py.
struct StreamOperation {
    enum Kind : std::uint32_t { post = 0, signal = 1, wait = 2, launch = 3 };
    std::uint32_t kind, peer, count, step;
};
static_assert(sizeof(StreamOperation) == 16);

}  // namespace unisono::gpu
