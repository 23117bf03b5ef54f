// The state of the fake driver: what its functions share. One instance per process, never destroyed, because threads of
// streams may still run while the process exits.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#define FAKE_API extern "C" __attribute__((visibility("default"))) int

namespace fakecuda {

// The numbers of the errors of CUDA's driver that the fake returns.
enum Error : int {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NOT_INITIALIZED = 3,
    NO_DEVICE = 100,
    INVALID_DEVICE = 101,
    INVALID_IMAGE = 200,
    INVALID_CONTEXT = 201,
    CANNOT_MAP = 205,
    PEER_ACCESS_UNSUPPORTED = 217,
    INVALID_HANDLE = 400,
    NOT_FOUND = 500,
    NOT_READY = 600,
    ILLEGAL_ADDRESS = 700,
    LAUNCH_OUT_OF_RESOURCES = 701,
    STREAM_CAPTURE_UNSUPPORTED = 900,
    STREAM_CAPTURE_INVALIDATED = 901,
    STREAM_CAPTURE_IMPLICIT = 906,
};

// What the fake pretends, and the faults that it injects: the words of FAKECUDA="devices=2;mps=1;...", read by cuInit.
// fake_set changes them later.
struct Settings {
    int devices = 1;
    int peers = 1;             // 0: no device can access the memory of another
    int mps = 0;               // the value of CU_DEVICE_ATTRIBUTE_MPS_ENABLED
    int multiprocessors = 16;  // of each device
    int occupancy = 2;         // thread blocks per multiprocessor
    int exports = -1;          // the number of exports that succeed; -1: all ("export=refuse": 0)
    int opens = -1;            // the number of opened handles that succeed; -1: all ("open=refuse": 0)
    int launches = -1;         // the number of kernels that run; later ones never start ("launch=never": 0)
    int slow_open_ms = 0;      // cuIpcOpenMemHandle takes this long
    int slow_launch_ms = 0;    // a kernel starts this late
    int version = 13000;       // cuDriverGetVersion
    long long memory_bytes = 4LL << 30;
    // Whether every function that may wait for the device does, and all other calls of the process for it: allocation,
    // loading of modules, the first launch of a kernel (lazy loading), copies of pageable memory, IPC handles.
    int implicit = 0;
    int resident = -1;  // the number of kernels of this process that run at the same time, at most; -1: any
    // Whether cuIpcCloseMemHandle waits for all streams, as functions that change the address space may.
    int close_waits = 1;
    // Whether cuIpcOpenMemHandle waits for what is in the streams: a real driver lets it wait at least while another
    // thread of the process waits for the device.
    int open_waits = 0;
};

struct Context {
    int ordinal;
    int references = 0;
};

enum class Kind { device, imported, host };

struct Allocation {
    std::uint64_t base = 0;
    std::size_t bytes = 0;     // as asked for
    std::size_t reserved = 0;  // whole pages, and one more that nothing may touch
    std::uint64_t id = 0;      // never used again
    Kind kind = Kind::device;
    int descriptor = -1;
    int device = 0;      // the physical number
    int references = 1;  // how often it has been opened here, if it is imported
    bool shareable = true;
    std::string origin;  // the handle, if it is imported
};

struct Driver {
    std::mutex lock;
    pid_t owner = 0;  // the process that has called cuInit; its forked children get errors, as with CUDA
    Settings settings;
    std::vector<int> visible;  // physical numbers, by ordinal
    std::vector<Context> contexts;
    std::map<std::uint64_t, Allocation> allocations;  // by base
    std::map<std::size_t, std::vector<std::uint64_t>>
        unused;  // reserved addresses by length; the last freed comes first
    std::uint64_t next_id = 1;
    std::size_t used_bytes = 0;
    std::set<void*> modules, functions, events, graphs;
    std::atomic<int> sticky{0};  // an error of the device that every later call returns
    std::atomic<int> misuses{0};
    std::atomic<bool> skips{false};  // kernels, events and waits cost nothing: they are not put into streams
};

Driver& driver();

// Where settings are changed while threads read them.
Settings settings();

// The current context of this thread.
Context* current();
int physical(const Context* context);

// SUCCESS, or why no function may be called: before cuInit, in a forked child, after an error of the device.
int ready();
int ready_with_context();

// Wait for all streams if the settings say so; until then, other threads wait at the beginning of their calls.
void synchronize_implicitly();

// Count and print a mistake of the program that CUDA would not forgive, and return the error.
int misuse(int error, const char* format, ...) __attribute__((format(printf, 2, 3)));

// The allocation that contains [address, address + bytes), or null. The lock must be held.
Allocation* find_allocation(std::uint64_t address, std::size_t bytes);
// Whether device code may access the range; takes the lock.
bool accessible(std::uint64_t address, std::size_t bytes);

}  // namespace fakecuda
