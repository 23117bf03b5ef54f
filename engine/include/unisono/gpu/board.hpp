// The registration board: how a rank offers its device memory to the others, and learns where they have mapped it.
//
// The board lies in the shared memory of a communicator. Each rank has a section:
//
//     head (a page) | slots
//
// A *slot* offers one allocation (a *block*): its handle, and an answer from each peer, the address of the block in
// that peer's address space. The generation of a slot is odd while it offers a block. It changes with every offer and
// every withdrawal, so a peer sees which of its mappings are out of date. Pages of slots are allocated when they are
// first used.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "unisono/gpu/driver_abi.hpp"
#include "unisono/memory.hpp"

namespace unisono::gpu {

struct BoardHead {
    // A futex, on which the service thread of this rank sleeps; changed by any rank that wants it to look.
    alignas(cache_line_pair_bytes) std::atomic<std::uint32_t> bell;
    alignas(cache_line_pair_bytes) std::atomic<std::uint32_t> version;  // changes with every offer and withdrawal
    std::atomic<std::uint32_t> used_slots;                              // all slots in use are below
    std::atomic<std::uint32_t> large_calls;  // large calls whose memory this rank has offered
    // Held by the service thread of this rank. The kernel of the operating system marks it within a millisecond if the
    // process is killed, long before the process has ended: on its way it waits for the GPU.
    alignas(cache_line_pair_bytes) pthread_mutex_t alive;
    // Not 0: the kernels of this rank leave. Any rank may set it.
    alignas(cache_line_pair_bytes) std::atomic<std::uint32_t> abort;
};
static_assert(sizeof(BoardHead) <= page_bytes);

struct Answer {
    std::atomic<std::uint32_t> generation;  // of the slot; written last
    std::uint32_t unused;
    std::atomic<std::uint64_t> address;  // 0: the peer could not open the block
};

struct Slot {
    std::atomic<std::uint32_t> generation;
    std::uint32_t unused;
    std::uint64_t bytes;
    cuda::IpcHandle handle;
    Answer answers[];  // by rank
};
static_assert(sizeof(Slot) == 80 && sizeof(Answer) == 16);

class RegistrationBoard {
  public:
    static constexpr std::uint32_t slots = 1024;
    static std::uint64_t bytes(std::uint32_t size);

    // Maps the board; throws MemoryRefused.
    RegistrationBoard(int file, std::uint64_t offset, std::uint32_t size);
    ~RegistrationBoard();
    RegistrationBoard(const RegistrationBoard&) = delete;
    RegistrationBoard& operator=(const RegistrationBoard&) = delete;

    BoardHead& head(std::uint32_t rank) const { return *reinterpret_cast<BoardHead*>(section(rank)); }
    Slot& slot(std::uint32_t rank, std::uint32_t number) const {
        return *reinterpret_cast<Slot*>(section(rank) + page_bytes + number * slot_bytes(size_));
    }
    void allocate_slot(std::uint32_t rank, std::uint32_t number) const;  // throws MemoryRefused
    void wake(std::uint32_t rank) const;
    void wake_all() const;
    bool has_died(std::uint32_t rank) const;

  private:
    static std::uint64_t slot_bytes(std::uint32_t size) { return sizeof(Slot) + size * sizeof(Answer); }
    static std::uint64_t section_bytes(std::uint32_t size);
    std::byte* section(std::uint32_t rank) const { return base_ + rank * section_bytes(size_); }

    const int file_;
    const std::uint64_t offset_;
    const std::uint32_t size_;
    std::byte* base_ = nullptr;
};

// Shows the other ranks that the process of this thread lives. Made and destroyed by one thread.
class SignOfLife {
  public:
    SignOfLife(RegistrationBoard& board, std::uint32_t rank);
    ~SignOfLife();
    SignOfLife(const SignOfLife&) = delete;
    SignOfLife& operator=(const SignOfLife&) = delete;

  private:
    pthread_mutex_t& mutex_;
};

}  // namespace unisono::gpu
