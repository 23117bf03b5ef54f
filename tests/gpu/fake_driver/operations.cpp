// Operations on memory that streams execute: copies, fills, waits for values and writes of values.
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <vector>

#include "streams.hpp"

namespace fakecuda {
namespace {

// The layout of CUstreamBatchMemOpParams.
struct ValueOperation {
    std::uint32_t kind, unused;
    std::uint64_t address, value;
    std::uint32_t flags, unused_too;
    std::uint64_t alias, padding;
};
static_assert(sizeof(ValueOperation) == 48);

enum : std::uint32_t { WAIT_32 = 1, WRITE_32 = 2, WAIT_64 = 4, WRITE_64 = 5, BARRIER = 6 };

// Report an access of the device to memory that it must not touch: the context is unusable from then on.
void fault(const char* what, std::uint64_t address) {
    driver().sticky = misuse(ILLEGAL_ADDRESS, "%s at %#llx, which is not allocated when the stream gets there", what,
                             static_cast<unsigned long long>(address));
}

// Whether the operation is over: with an error, if its memory has been freed.
bool usable(const char* what, std::uint64_t address, std::size_t bytes) {
    if (driver().sticky != 0) return false;
    if (bytes == 0 || accessible(address, bytes)) return true;
    fault(what, address);
    return false;
}

template <typename Word>
bool fulfilled(std::uint64_t address, Word value, std::uint32_t condition) {
    Word now = std::atomic_ref<Word>(*reinterpret_cast<Word*>(address)).load(std::memory_order_acquire);
    switch (condition) {
        case 0: return static_cast<std::make_signed_t<Word>>(now - value) >= 0;
        case 1: return now == value;
        case 2: return (now & value) != 0;
        default: return static_cast<Word>(~(now | value)) != 0;
    }
}

template <typename Word>
void wait_for(const ValueOperation& operation) {
    auto value = static_cast<Word>(operation.value);
    for (int polls = 0;; ++polls) {
        if (!usable("a wait for a value", operation.address, sizeof(Word))) return;
        if (fulfilled<Word>(operation.address, value, operation.flags & 3)) return;
        if (polls < 20) {
            sched_yield();
        } else {
            usleep(polls < 200 ? 50 : 500);  // many streams may wait on few cores
        }
    }
}

template <typename Word>
void write(const ValueOperation& operation) {
    if (!usable("a write of a value", operation.address, sizeof(Word))) return;
    std::atomic_ref<Word>(*reinterpret_cast<Word*>(operation.address))
        .store(static_cast<Word>(operation.value), std::memory_order_release);
}

void perform(const ValueOperation& operation) {
    switch (operation.kind) {
        case WAIT_32: return wait_for<std::uint32_t>(operation);
        case WAIT_64: return wait_for<std::uint64_t>(operation);
        case WRITE_32: return write<std::uint32_t>(operation);
        case WRITE_64: return write<std::uint64_t>(operation);
        default: std::atomic_thread_fence(std::memory_order_seq_cst);
    }
}

int check(const ValueOperation& operation) {
    if (operation.kind == BARRIER) return SUCCESS;
    bool is_wait = operation.kind == WAIT_32 || operation.kind == WAIT_64;
    if (!is_wait && operation.kind != WRITE_32 && operation.kind != WRITE_64) return INVALID_VALUE;
    std::size_t bytes = operation.kind <= WRITE_32 ? 4 : 8;
    if (operation.flags > (is_wait ? 3u : 1u)) return INVALID_VALUE;
    if (operation.address % bytes != 0) return misuse(INVALID_VALUE, "the address of a value is not aligned");
    if (!accessible(operation.address, bytes)) return misuse(INVALID_VALUE, "the address of a value is not allocated");
    return SUCCESS;
}

// Copy on the stream; host memory that is not ours can be anywhere.
int copy(std::uint64_t to, std::uint64_t from, std::size_t bytes, bool to_device, bool from_device, void* stream) {
    if (int error = ready_with_context()) return error;
    if (bytes == 0) return SUCCESS;
    if ((to_device && !accessible(to, bytes)) || (from_device && !accessible(from, bytes)))
        return misuse(INVALID_VALUE, "a copy of %zu bytes is not inside of allocations", bytes);
    return enqueue(stream, [=] {
        if (to_device && !usable("a copy", to, bytes)) return;
        if (from_device && !usable("a copy", from, bytes)) return;
        std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes);
    });
}

}  // namespace
}  // namespace fakecuda

using namespace fakecuda;

FAKE_API cuStreamBatchMemOp_v2(void* stream, unsigned count, ValueOperation* operations, unsigned flags) {
    if (int error = ready_with_context()) return error;
    if (count > 256 || flags != 0) return INVALID_VALUE;
    std::vector<ValueOperation> held(operations, operations + count);
    for (auto& operation : held)
        if (int error = check(operation)) return error;
    return enqueue(stream, [held] {
        for (auto& operation : held) perform(operation);
    });
}

FAKE_API cuMemsetD32Async(std::uint64_t address, unsigned value, std::size_t count, void* stream) {
    if (int error = ready_with_context()) return error;
    if (address % 4 != 0 || !accessible(address, 4 * count))
        return misuse(INVALID_VALUE, "the memory to fill is not aligned or not allocated");
    return enqueue(stream, [=] {
        if (!usable("a fill", address, 4 * count)) return;
        auto* words = reinterpret_cast<unsigned*>(address);
        for (std::size_t index = 0; index < count; ++index) words[index] = value;
    });
}

FAKE_API cuMemcpyHtoDAsync_v2(std::uint64_t to, const void* from, std::size_t bytes, void* stream) {
    // Like CUDA, which copies pageable memory before it returns; of memory from cuMemHostAlloc, later.
    auto address = reinterpret_cast<std::uint64_t>(from);
    if (accessible(address, bytes)) return copy(to, address, bytes, true, true, stream);
    if (int error = ready_with_context()) return error;
    if (!accessible(to, bytes)) return misuse(INVALID_VALUE, "a copy of %zu bytes is not inside of allocations", bytes);
    synchronize_implicitly();
    std::vector<char> held(static_cast<const char*>(from), static_cast<const char*>(from) + bytes);
    return enqueue(stream, [held, to] {
        if (usable("a copy", to, held.size())) std::memcpy(reinterpret_cast<void*>(to), held.data(), held.size());
    });
}

FAKE_API cuMemcpyDtoDAsync_v2(std::uint64_t to, std::uint64_t from, std::size_t bytes, void* stream) {
    return copy(to, from, bytes, true, true, stream);
}

FAKE_API cuMemcpyDtoHAsync_v2(void* to, std::uint64_t from, std::size_t bytes, void* stream) {
    return copy(reinterpret_cast<std::uint64_t>(to), from, bytes, false, true, stream);
}
