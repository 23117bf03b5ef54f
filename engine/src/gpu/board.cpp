#include "unisono/gpu/board.hpp"

#include <sys/mman.h>

#include <cerrno>

#include "unisono/fault_message.hpp"
#include "unisono/waiting.hpp"

namespace unisono::gpu {

std::uint64_t RegistrationBoard::section_bytes(std::uint32_t size) {
    return page_bytes + rounded_up(slots * slot_bytes(size), page_bytes);
}

std::uint64_t RegistrationBoard::bytes(std::uint32_t size) {
    return rounded_up(size * section_bytes(size), huge_page_bytes);  // the next communicator begins at a huge page
}

RegistrationBoard::RegistrationBoard(int file, std::uint64_t offset, std::uint32_t size)
    : file_(file), offset_(offset), size_(size) {
    for (std::uint32_t rank = 0; rank < size; ++rank)
        allocate_shared(file, offset + rank * section_bytes(size), page_bytes);
    void* const memory = ::mmap(nullptr, bytes(size), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file,
                                static_cast<off_t>(offset));
    if (memory == MAP_FAILED) throw MemoryRefused{"no_address_space", bytes(size), errno};
    base_ = static_cast<std::byte*>(memory);
    ::madvise(memory, bytes(size), MADV_DONTFORK);
}

RegistrationBoard::~RegistrationBoard() { ::munmap(base_, bytes(size_)); }

void RegistrationBoard::allocate_slot(std::uint32_t rank, std::uint32_t number) const {
    allocate_shared(file_, offset_ + rank * section_bytes(size_) + page_bytes + number * slot_bytes(size_),
                    slot_bytes(size_));
}

void RegistrationBoard::wake(std::uint32_t rank) const {
    head(rank).bell.fetch_add(1, std::memory_order_release);
    futex_wake_all(head(rank).bell);
}

void RegistrationBoard::wake_all() const {
    for (std::uint32_t rank = 0; rank < size_; ++rank) wake(rank);
}

// A robust mutex whose owner has died has this bit in its first word (futex(2)).
bool RegistrationBoard::has_died(std::uint32_t rank) const {
    constexpr std::uint32_t owner_died = 0x40000000;
    const auto& word = *reinterpret_cast<const std::uint32_t*>(&head(rank).alive);
    return (__atomic_load_n(&word, __ATOMIC_ACQUIRE) & owner_died) != 0;
}

SignOfLife::SignOfLife(RegistrationBoard& board, std::uint32_t rank) : mutex_(board.head(rank).alive) {
    pthread_mutexattr_t attributes;
    ::pthread_mutexattr_init(&attributes);
    ::pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    ::pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    ::pthread_mutex_init(&mutex_, &attributes);
    ::pthread_mutexattr_destroy(&attributes);
    ::pthread_mutex_lock(&mutex_);
}

SignOfLife::~SignOfLife() { ::pthread_mutex_unlock(&mutex_); }

}  // namespace unisono::gpu
