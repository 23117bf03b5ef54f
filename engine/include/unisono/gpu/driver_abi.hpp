// The part of the binary interface of the CUDA driver (libcuda.so.1, version 12.0 or later) that the engine uses.
//
// The driver is loaded at run time, so its header is not needed to build. tests/gpu/test_driver_abi.py compares these
// declarations with the header where it is installed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace unisono::cuda {

using Address = std::uint64_t;  // CUdeviceptr
using Device = int;             // CUdevice
struct ContextHandle;           // CUctx_st
struct StreamHandle;            // CUstream_st
struct EventHandle;             // CUevent_st
struct ModuleHandle;            // CUmod_st
struct FunctionHandle;          // CUfunc_st
using Context = ContextHandle*;
using Stream = StreamHandle*;  // also 0 (the default stream), 1 (the same) and 2 (the default stream of the thread)
using Event = EventHandle*;
using Module = ModuleHandle*;
using Function = FunctionHandle*;

// Results (CUresult) with a meaning here; every other one is an error.
enum class Result : int {
    success = 0,
    invalid_value = 1,
    out_of_memory = 2,
    deinitialized = 4,  // the process is about to end
    no_device = 100,
    not_ready = 600,
    not_supported = 801,
};

struct Uuid {  // CUuuid
    unsigned char bytes[16];
};
struct IpcHandle {  // CUipcMemHandle
    unsigned char bytes[64];
};

enum class DeviceAttribute : int {  // CUdevice_attribute
    multiprocessors = 16,
    compute_capability_major = 75,
    compute_capability_minor = 76,
    most_shared_bytes = 97,  // CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
    mps_enabled = 133,
};

enum class PointerAttribute : int {  // CUpointer_attribute
    buffer_id = 7,                   // u64
    device = 9,                      // int: the ordinal
    can_be_exported = 10,            // int: CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE
};

enum class FunctionAttribute : int { most_dynamic_shared_bytes = 8 };  // CUfunction_attribute

enum class CaptureStatus : int { none = 0, active = 1, invalidated = 2 };  // CUstreamCaptureStatus
enum class CaptureMode : int { global = 0, of_thread = 1, relaxed = 2 };   // CUstreamCaptureMode

inline constexpr unsigned host_memory_portable = 1, host_memory_mapped = 2;  // CU_MEMHOSTALLOC_PORTABLE, _DEVICEMAP
inline constexpr unsigned lazy_peer_access = 1;                              // CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS
inline constexpr unsigned stream_non_blocking = 1;                           // CU_STREAM_NON_BLOCKING
inline constexpr unsigned event_without_timing = 2;                          // CU_EVENT_DISABLE_TIMING

// One operation of cuStreamBatchMemOp (CUstreamBatchMemOpParams).
struct MemoryOperation {
    enum class Kind : std::uint32_t { wait_32 = 1, write_32 = 2, wait_64 = 4, write_64 = 5 };
    // Of a wait: until the signed difference *address - value is at least 0. Of a write: after all earlier writes.
    static constexpr std::uint32_t at_least = 0, in_order = 0;
    Kind kind;
    std::uint32_t unused = 0;
    Address address;
    std::uint64_t value;
    std::uint32_t flags = 0;
    std::uint32_t unused_too = 0;
    Address alias = 0;
    std::uint64_t padding = 0;
};
static_assert(sizeof(MemoryOperation) == 48 && offsetof(MemoryOperation, flags) == 24);

// All functions: X(name here, symbol in the library, parameters).
#define UNISONO_CUDA_FUNCTIONS(X)                                                                                     \
    X(get_error_name, "cuGetErrorName", Result, const char** name)                                                    \
    X(init, "cuInit", unsigned flags)                                                                                 \
    X(driver_get_version, "cuDriverGetVersion", int* version)                                                         \
    X(device_get_count, "cuDeviceGetCount", int* count)                                                               \
    X(device_get, "cuDeviceGet", Device*, int ordinal)                                                                \
    X(device_get_name, "cuDeviceGetName", char* name, int bytes, Device)                                              \
    X(device_get_uuid, "cuDeviceGetUuid_v2", Uuid*, Device)                                                           \
    X(device_total_mem, "cuDeviceTotalMem_v2", std::size_t* bytes, Device)                                            \
    X(device_get_attribute, "cuDeviceGetAttribute", int* value, DeviceAttribute, Device)                              \
    X(device_can_access_peer, "cuDeviceCanAccessPeer", int* can, Device, Device peer)                                 \
    X(device_primary_ctx_retain, "cuDevicePrimaryCtxRetain", Context*, Device)                                        \
    X(device_primary_ctx_release, "cuDevicePrimaryCtxRelease_v2", Device)                                             \
    X(ctx_get_current, "cuCtxGetCurrent", Context*)                                                                   \
    X(ctx_push_current, "cuCtxPushCurrent_v2", Context)                                                               \
    X(ctx_pop_current, "cuCtxPopCurrent_v2", Context*)                                                                \
    X(ctx_get_stream_priority_range, "cuCtxGetStreamPriorityRange", int* least, int* greatest)                        \
    X(mem_alloc, "cuMemAlloc_v2", Address*, std::size_t bytes)                                                        \
    X(mem_free, "cuMemFree_v2", Address)                                                                              \
    X(mem_get_address_range, "cuMemGetAddressRange_v2", Address* base, std::size_t* bytes, Address)                   \
    X(mem_host_alloc, "cuMemHostAlloc", void** address, std::size_t bytes, unsigned flags)                            \
    X(mem_host_get_device_pointer, "cuMemHostGetDevicePointer_v2", Address*, void* host, unsigned flags)              \
    X(mem_free_host, "cuMemFreeHost", void* address)                                                                  \
    X(mem_host_register, "cuMemHostRegister_v2", void* address, std::size_t bytes, unsigned flags)                    \
    X(mem_host_unregister, "cuMemHostUnregister", void* address)                                                      \
    X(memset_d32_async, "cuMemsetD32Async", Address, unsigned value, std::size_t count, Stream)                       \
    X(memcpy_htod_async, "cuMemcpyHtoDAsync_v2", Address, const void* source, std::size_t bytes, Stream)              \
    X(memcpy_dtod_async, "cuMemcpyDtoDAsync_v2", Address, Address source, std::size_t bytes, Stream)                  \
    X(pointer_get_attribute, "cuPointerGetAttribute", void* value, PointerAttribute, Address)                         \
    X(ipc_get_mem_handle, "cuIpcGetMemHandle", IpcHandle*, Address)                                                   \
    X(ipc_open_mem_handle, "cuIpcOpenMemHandle_v2", Address*, IpcHandle, unsigned flags)                              \
    X(ipc_close_mem_handle, "cuIpcCloseMemHandle", Address)                                                           \
    X(module_load_data, "cuModuleLoadData", Module*, const void* image)                                               \
    X(module_unload, "cuModuleUnload", Module)                                                                        \
    X(module_get_function, "cuModuleGetFunction", Function*, Module, const char* name)                                \
    X(func_set_attribute, "cuFuncSetAttribute", Function, FunctionAttribute, int value)                               \
    X(occupancy_max_active_blocks, "cuOccupancyMaxActiveBlocksPerMultiprocessor", int* blocks, Function, int threads, \
      std::size_t shared_bytes)                                                                                       \
    X(launch_kernel, "cuLaunchKernel", Function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, \
      unsigned block_y, unsigned block_z, unsigned shared_bytes, Stream, void** parameters, void** extra)             \
    X(stream_create_with_priority, "cuStreamCreateWithPriority", Stream*, unsigned flags, int priority)               \
    X(stream_destroy, "cuStreamDestroy_v2", Stream)                                                                   \
    X(stream_get_id, "cuStreamGetId", Stream, unsigned long long* id)                                                 \
    X(stream_synchronize, "cuStreamSynchronize", Stream)                                                              \
    X(stream_wait_event, "cuStreamWaitEvent", Stream, Event, unsigned flags)                                          \
    X(stream_is_capturing, "cuStreamIsCapturing", Stream, CaptureStatus*)                                             \
    X(thread_exchange_capture_mode, "cuThreadExchangeStreamCaptureMode", CaptureMode*)                                \
    X(stream_batch_mem_op, "cuStreamBatchMemOp_v2", Stream, unsigned count, MemoryOperation*, unsigned flags)         \
    X(event_create, "cuEventCreate", Event*, unsigned flags)                                                          \
    X(event_destroy, "cuEventDestroy_v2", Event)                                                                      \
    X(event_record, "cuEventRecord", Event, Stream)                                                                   \
    X(event_query, "cuEventQuery", Event)

struct Functions {
#define UNISONO_DECLARE(name, symbol, ...) Result (*name)(__VA_ARGS__);
    UNISONO_CUDA_FUNCTIONS(UNISONO_DECLARE)
#undef UNISONO_DECLARE
};

}  // namespace unisono::cuda
