// Device memory is shared memory of the host: one memfd per allocation, which other processes open by its IPC handle.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <thread>

#include "driver.hpp"
#include "streams.hpp"

namespace fakecuda {
namespace {

constexpr std::size_t PAGE = 4096;
constexpr std::size_t FILLED = 4u << 20;  // the bytes of new memory that get arbitrary values; more would take long
constexpr unsigned char NEW = 0xCB, GUARD = 0xA5;

// What the 64 bytes of an IPC handle mean here. The inode tells whether the descriptor is still the same file.
struct Handle {
    char magic[8];
    std::int32_t process, descriptor, device, shareable;
    std::uint64_t inode, bytes, id;
};
static_assert(sizeof(Handle) <= 64);

std::size_t reservation(std::size_t bytes) { return (bytes + PAGE - 1) / PAGE * PAGE + PAGE; }

// Return reserved addresses: those that were freed last, if the length is the same, as CUDA's driver does.
std::uint64_t reserve(std::size_t length) {
    auto& unused = driver().unused[length];
    if (!unused.empty()) {
        auto address = unused.back();
        unused.pop_back();
        return address;
    }
    void* address = mmap(nullptr, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return address == MAP_FAILED ? 0 : reinterpret_cast<std::uint64_t>(address);
}

// Make the memory inaccessible: use after free is a segmentation fault. The addresses may be used again.
void retire(const Allocation& allocation) {
    mmap(reinterpret_cast<void*>(allocation.base), allocation.reserved, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    driver().unused[allocation.reserved].push_back(allocation.base);
    if (allocation.descriptor >= 0) close(allocation.descriptor);
}

// Map a file, or anonymous memory, at reserved addresses, and enter the allocation; 0 if that fails.
Allocation* map(std::size_t bytes, int descriptor, Kind kind) {
    auto& state = driver();
    Allocation made;
    made.bytes = bytes;
    made.reserved = reservation(bytes);
    made.base = reserve(made.reserved);
    if (made.base == 0) return nullptr;
    int flags = MAP_FIXED | (descriptor >= 0 ? MAP_SHARED : MAP_SHARED | MAP_ANONYMOUS);
    void* address = reinterpret_cast<void*>(made.base);
    if (mmap(address, made.reserved - PAGE, PROT_READ | PROT_WRITE, flags, descriptor, 0) == MAP_FAILED) return nullptr;
    madvise(address, made.reserved - PAGE, MADV_DONTFORK);  // a forked child has no access to the device
    made.kind = kind;
    made.id = state.next_id++;
    return &(state.allocations[made.base] = made);
}

unsigned char* tail(const Allocation& allocation) {
    return reinterpret_cast<unsigned char*>(allocation.base + allocation.bytes);
}

std::size_t tail_bytes(const Allocation& allocation) { return allocation.reserved - PAGE - allocation.bytes; }

int allocate(std::uint64_t* address, std::size_t bytes, bool shareable) {
    if (int error = ready_with_context()) return error;
    if (int error = allowed_in_capture()) return error;
    if (bytes == 0) return INVALID_VALUE;
    synchronize_implicitly();
    auto& state = driver();
    std::lock_guard guard(state.lock);
    if (state.used_bytes + bytes > static_cast<std::size_t>(state.settings.memory_bytes)) return OUT_OF_MEMORY;
    int descriptor = memfd_create("fakecuda", MFD_CLOEXEC);
    if (descriptor < 0) return OUT_OF_MEMORY;
    if (ftruncate(descriptor, static_cast<off_t>(reservation(bytes) - PAGE)) != 0) {
        close(descriptor);
        return OUT_OF_MEMORY;
    }
    Allocation* made = map(bytes, descriptor, Kind::device);
    if (made == nullptr) {
        close(descriptor);
        return OUT_OF_MEMORY;
    }
    made->descriptor = descriptor;
    made->device = physical(current());
    made->shareable = shareable;
    state.used_bytes += bytes;
    std::memset(reinterpret_cast<void*>(made->base), NEW, std::min(bytes, FILLED));
    std::memset(tail(*made), GUARD, tail_bytes(*made));
    *address = made->base;
    return SUCCESS;
}

int release(std::uint64_t address, Kind kind, const char* function) {
    if (int error = ready_with_context()) return error;
    if (address == 0) return SUCCESS;
    if (int error = allowed_in_capture()) return error;
    synchronize_implicitly();
    wait_for_all();  // CUDA does so as well
    auto& state = driver();
    std::lock_guard guard(state.lock);
    auto found = state.allocations.find(address);
    if (found == state.allocations.end() || found->second.kind != kind)
        return misuse(INVALID_VALUE, "%s of %#llx, where no such allocation begins", function,
                      static_cast<unsigned long long>(address));
    auto& allocation = found->second;
    if (kind == Kind::device) {
        auto* end = tail(allocation);
        if (std::any_of(end, end + tail_bytes(allocation), [](unsigned char byte) { return byte != GUARD; }))
            misuse(0, "something was written after the %zu bytes at %#llx", allocation.bytes,
                   static_cast<unsigned long long>(address));
        state.used_bytes -= allocation.bytes;
    }
    retire(allocation);
    state.allocations.erase(found);
    return SUCCESS;
}

bool count_down(int Settings::* limit) {
    std::lock_guard guard(driver().lock);
    int& left = driver().settings.*limit;
    if (left == 0) return false;
    if (left > 0) --left;
    return true;
}

int live(Kind kind) {
    std::lock_guard guard(driver().lock);
    int count = 0;
    for (auto& [base, allocation] : driver().allocations) count += allocation.kind == kind;
    return count;
}

}  // namespace

Allocation* find_allocation(std::uint64_t address, std::size_t bytes) {
    auto& all = driver().allocations;
    auto next = all.upper_bound(address);
    if (next == all.begin()) return nullptr;
    auto& allocation = std::prev(next)->second;
    auto offset = address - allocation.base;
    return offset < allocation.bytes && bytes <= allocation.bytes - offset ? &allocation : nullptr;
}

bool accessible(std::uint64_t address, std::size_t bytes) {
    std::lock_guard guard(driver().lock);
    return find_allocation(address, bytes) != nullptr;
}

}  // namespace fakecuda

using namespace fakecuda;

FAKE_API cuMemAlloc_v2(std::uint64_t* address, std::size_t bytes) { return allocate(address, bytes, true); }
FAKE_API cuMemFree_v2(std::uint64_t address) { return release(address, Kind::device, "cuMemFree"); }

FAKE_API cuMemHostAlloc(void** address, std::size_t bytes, unsigned) {
    if (int error = ready_with_context()) return error;
    if (int error = allowed_in_capture()) return error;
    if (bytes == 0) return INVALID_VALUE;
    synchronize_implicitly();
    std::lock_guard guard(driver().lock);
    Allocation* made = map(bytes, -1, Kind::host);
    if (made == nullptr) return OUT_OF_MEMORY;
    *address = reinterpret_cast<void*>(made->base);
    return SUCCESS;
}

FAKE_API cuMemFreeHost(void* address) {
    return release(reinterpret_cast<std::uint64_t>(address), Kind::host, "cuMemFreeHost");
}

FAKE_API cuMemHostRegister_v2(void*, std::size_t bytes, unsigned) {
    if (int error = ready_with_context()) return error;
    return bytes == 0 ? INVALID_VALUE : SUCCESS;
}
FAKE_API cuMemHostUnregister(void*) { return ready_with_context(); }

FAKE_API cuMemHostGetDevicePointer_v2(std::uint64_t* device, void* address, unsigned) {
    if (int error = ready_with_context()) return error;
    std::lock_guard guard(driver().lock);
    auto* found = find_allocation(reinterpret_cast<std::uint64_t>(address), 1);
    // Memory of the process that was registered is not known here.
    if (found != nullptr && found->kind != Kind::host) return INVALID_VALUE;
    *device = reinterpret_cast<std::uint64_t>(address);
    return SUCCESS;
}

FAKE_API cuMemGetAddressRange_v2(std::uint64_t* base, std::size_t* bytes, std::uint64_t address) {
    if (int error = ready_with_context()) return error;
    std::lock_guard guard(driver().lock);
    auto* found = find_allocation(address, 1);
    if (found == nullptr || found->kind == Kind::host) return NOT_FOUND;
    if (base != nullptr) *base = found->base;
    if (bytes != nullptr) *bytes = found->bytes;
    return SUCCESS;
}

FAKE_API cuPointerGetAttribute(void* value, int attribute, std::uint64_t address) {
    if (int error = ready_with_context()) return error;
    auto& state = driver();
    std::lock_guard guard(state.lock);
    auto* found = find_allocation(address, 1);
    if (found == nullptr) return INVALID_VALUE;
    int ordinal = 0;
    for (std::size_t each = 0; each < state.visible.size(); ++each)
        if (state.visible[each] == found->device) ordinal = static_cast<int>(each);
    switch (attribute) {
        case 7: *static_cast<std::uint64_t*>(value) = found->id; return SUCCESS;
        case 9: *static_cast<int*>(value) = ordinal; return SUCCESS;
        case 10: *static_cast<unsigned*>(value) = found->shareable && found->kind == Kind::device; return SUCCESS;
        default: return INVALID_VALUE;
    }
}

FAKE_API cuIpcGetMemHandle(void* bytes, std::uint64_t address) {
    if (int error = ready_with_context()) return error;
    synchronize_implicitly();
    if (!count_down(&Settings::exports)) return INVALID_VALUE;
    std::lock_guard guard(driver().lock);
    auto* found = find_allocation(address, 1);
    if (found == nullptr || found->kind != Kind::device || !found->shareable) return INVALID_VALUE;
    if (found->base != address) return misuse(INVALID_VALUE, "the address of an exported allocation is not its base");
    struct stat status;
    if (fstat(found->descriptor, &status) != 0) return OUT_OF_MEMORY;
    Handle handle{};
    std::memcpy(handle.magic, "fakecuda", 8);
    handle.process = getpid();
    handle.descriptor = found->descriptor;
    handle.device = found->device;
    handle.inode = status.st_ino;
    handle.bytes = found->bytes;
    handle.id = found->id;
    std::memset(bytes, 0, 64);
    std::memcpy(bytes, &handle, sizeof handle);
    return SUCCESS;
}

// The handle is passed by value in 64 bytes.
struct IpcHandle {
    char bytes[64];
};

FAKE_API cuIpcOpenMemHandle_v2(std::uint64_t* address, IpcHandle given, unsigned flags) {
    if (int error = ready_with_context()) return error;
    if (flags != 1) return INVALID_VALUE;  // CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS
    Handle handle;
    std::memcpy(&handle, given.bytes, sizeof handle);
    if (std::memcmp(handle.magic, "fakecuda", 8) != 0) return misuse(INVALID_VALUE, "not an IPC handle");
    if (handle.process == getpid()) return INVALID_CONTEXT;
    auto now = settings();
    std::this_thread::sleep_for(std::chrono::milliseconds(now.slow_open_ms));
    synchronize_implicitly();
    if (now.open_waits) wait_for_all();
    if (!count_down(&Settings::opens)) return CANNOT_MAP;
    if (handle.device != physical(current()) && !now.peers) return PEER_ACCESS_UNSUPPORTED;
    std::string origin(given.bytes, sizeof given.bytes);
    auto& state = driver();
    std::lock_guard guard(state.lock);
    for (auto& [base, allocation] : state.allocations)
        if (allocation.origin == origin) {
            ++allocation.references;
            *address = base;
            return SUCCESS;
        }
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/fd/%d", handle.process, handle.descriptor);
    int descriptor = open(path, O_RDWR | O_CLOEXEC);
    struct stat status;
    if (descriptor < 0) return INVALID_VALUE;  // the exporting process has ended, or has freed the memory
    bool same = fstat(descriptor, &status) == 0 && status.st_ino == handle.inode;
    Allocation* made = same ? map(handle.bytes, descriptor, Kind::imported) : nullptr;
    close(descriptor);
    if (made == nullptr) return same ? CANNOT_MAP : INVALID_VALUE;
    made->device = handle.device;
    made->shareable = false;
    made->origin = origin;
    *address = made->base;
    return SUCCESS;
}

FAKE_API cuIpcCloseMemHandle(std::uint64_t address) {
    if (int error = ready_with_context()) return error;
    {
        std::lock_guard guard(driver().lock);
        auto found = driver().allocations.find(address);
        if (found == driver().allocations.end() || found->second.kind != Kind::imported)
            return misuse(INVALID_VALUE, "cuIpcCloseMemHandle of an address that no handle was opened at");
        if (--found->second.references > 0) return SUCCESS;
    }
    synchronize_implicitly();
    if (settings().close_waits) wait_for_all();
    std::lock_guard guard(driver().lock);
    auto found = driver().allocations.find(address);
    if (found == driver().allocations.end() || found->second.references > 0) return SUCCESS;  // opened again meanwhile
    retire(found->second);
    driver().allocations.erase(found);
    return SUCCESS;
}

// ---- for tests --------------------------------------------------------------------------------------------------

// Memory that cannot be exported, like that of expandable segments.
FAKE_API fake_alloc_private(std::uint64_t* address, std::size_t bytes) { return allocate(address, bytes, false); }
FAKE_API fake_live_allocations() { return live(Kind::device); }
FAKE_API fake_live_imports() { return live(Kind::imported); }
FAKE_API fake_live_host_allocations() { return live(Kind::host); }

// The address of memory of another process that is open here, by number; 0 if there are fewer.
extern "C" __attribute__((visibility("default"))) std::uint64_t fake_import_from(int process, int number) {
    std::lock_guard guard(driver().lock);
    for (auto& [base, allocation] : driver().allocations) {
        Handle handle{};
        if (allocation.kind == Kind::imported) std::memcpy(&handle, allocation.origin.data(), sizeof handle);
        if (handle.process == process && number-- == 0) return base;
    }
    return 0;
}
