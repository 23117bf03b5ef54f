// Initialisation, devices and their contexts, settings and faults.
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <shared_mutex>

#include "streams.hpp"

namespace fakecuda {

Driver& driver() {
    static Driver* only = new Driver;
    return *only;
}

Settings settings() {
    std::lock_guard guard(driver().lock);
    return driver().settings;
}

namespace {

thread_local std::vector<Context*> stack;  // of current contexts
thread_local bool synchronizing = false;

std::shared_mutex& device_lock() {
    static std::shared_mutex* only = new std::shared_mutex;
    return *only;
}

int number_of(const std::string& value) {
    if (value == "refuse" || value == "never") return 0;
    return std::atoi(value.c_str());  // "50ms" is 50
}

// Read "name=value;name=value" into the settings; false if a name is unknown.
bool read(Settings& into, const std::string& text) {
    const std::map<std::string, int*> places = {
        {"devices", &into.devices},
        {"peers", &into.peers},
        {"mps", &into.mps},
        {"multiprocessors", &into.multiprocessors},
        {"occupancy", &into.occupancy},
        {"export", &into.exports},
        {"open", &into.opens},
        {"launch", &into.launches},
        {"slow_open", &into.slow_open_ms},
        {"slow_launch", &into.slow_launch_ms},
        {"version", &into.version},
        {"close_waits", &into.close_waits},
        {"open_waits", &into.open_waits},
        {"implicit", &into.implicit},
        {"resident", &into.resident},
    };
    std::size_t begin = 0;
    while (begin < text.size()) {
        auto end = std::min(text.find(';', begin), text.size());
        auto word = text.substr(begin, end - begin);
        begin = end + 1;
        if (word.empty()) continue;
        auto split = word.find('=');
        if (split == std::string::npos) return false;
        auto name = word.substr(0, split), value = word.substr(split + 1);
        if (name == "memory_mib") {
            into.memory_bytes = static_cast<long long>(number_of(value)) << 20;
        } else if (auto place = places.find(name); place != places.end()) {
            *place->second = number_of(value);
        } else {
            return false;
        }
    }
    return true;
}

// The devices that this process sees: all, or those of CUDA_VISIBLE_DEVICES, which CUDA's driver reads as well.
std::vector<int> visible_devices(int count) {
    std::vector<int> found;
    const char* text = std::getenv("CUDA_VISIBLE_DEVICES");
    if (text == nullptr) {
        for (int device = 0; device < count; ++device) found.push_back(device);
        return found;
    }
    while (*text != '\0') {
        char* end;
        long device = std::strtol(text, &end, 10);
        if (end == text || device < 0 || device >= count) break;  // CUDA ignores the rest as well
        found.push_back(static_cast<int>(device));
        text = *end == ',' ? end + 1 : end;
    }
    return found;
}

int check_device(int device) {
    if (int error = ready()) return error;
    return device >= 0 && device < static_cast<int>(driver().visible.size()) ? SUCCESS : INVALID_DEVICE;
}

}  // namespace

Context* current() { return stack.empty() ? nullptr : stack.back(); }

int physical(const Context* context) { return driver().visible[context->ordinal]; }

int ready() {
    if (driver().owner != getpid()) return NOT_INITIALIZED;  // before any lock, which a child may inherit locked
    return driver().sticky.load();
}

int ready_with_context() {
    if (int error = ready()) return error;
    if (current() == nullptr) return INVALID_CONTEXT;
    if (!synchronizing) const std::shared_lock after(device_lock());  // a thread that synchronizes
    return SUCCESS;
}

void synchronize_implicitly() {
    if (!settings().implicit || synchronizing) return;
    std::unique_lock guard(device_lock());
    synchronizing = true;
    wait_for_all();
    synchronizing = false;
}

int misuse(int error, const char* format, ...) {
    ++driver().misuses;
    char text[512];
    va_list values;
    va_start(values, format);
    std::vsnprintf(text, sizeof text, format, values);
    va_end(values);
    std::fprintf(stderr, "fakecuda: %s\n", text);
    return error;
}

}  // namespace fakecuda

using namespace fakecuda;

FAKE_API cuInit(unsigned flags) {
    if (flags != 0) return INVALID_VALUE;
    auto& state = driver();
    if (state.owner == getpid()) return SUCCESS;
    if (state.owner != 0) return NOT_INITIALIZED;  // a child of a process that uses CUDA
    std::lock_guard guard(state.lock);
    const char* text = std::getenv("FAKECUDA");
    if (!read(state.settings, text ? text : "")) return misuse(INVALID_VALUE, "FAKECUDA=%s is not understood", text);
    state.visible = visible_devices(state.settings.devices);
    if (state.visible.empty()) return NO_DEVICE;
    for (int ordinal = 0; ordinal < static_cast<int>(state.visible.size()); ++ordinal)
        state.contexts.push_back({ordinal});
    state.owner = getpid();
    return SUCCESS;
}

FAKE_API cuDriverGetVersion(int* version) {
    *version = settings().version;
    return SUCCESS;
}

FAKE_API cuGetErrorName(int error, const char** name) {
    static const std::map<int, const char*> names = {
        {SUCCESS, "CUDA_SUCCESS"},
        {INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
        {OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
        {NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED"},
        {NO_DEVICE, "CUDA_ERROR_NO_DEVICE"},
        {INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE"},
        {INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE"},
        {INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT"},
        {CANNOT_MAP, "CUDA_ERROR_MAP_FAILED"},
        {PEER_ACCESS_UNSUPPORTED, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED"},
        {INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE"},
        {NOT_FOUND, "CUDA_ERROR_NOT_FOUND"},
        {NOT_READY, "CUDA_ERROR_NOT_READY"},
        {ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS"},
        {LAUNCH_OUT_OF_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"},
        {STREAM_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
        {STREAM_CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"},
        {STREAM_CAPTURE_IMPLICIT, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT"},
    };
    auto found = names.find(error);
    *name = found == names.end() ? nullptr : found->second;
    return found == names.end() ? INVALID_VALUE : SUCCESS;
}

FAKE_API cuDeviceGetCount(int* count) {
    if (int error = ready()) return error;
    *count = static_cast<int>(driver().visible.size());
    return SUCCESS;
}

FAKE_API cuDeviceGet(int* device, int ordinal) {
    if (int error = check_device(ordinal)) return error;
    *device = ordinal;
    return SUCCESS;
}

FAKE_API cuDeviceGetName(char* name, int length, int device) {
    if (int error = check_device(device)) return error;
    std::snprintf(name, length, "Fake GPU %d", driver().visible[device]);
    return SUCCESS;
}

FAKE_API cuDeviceGetUuid_v2(unsigned char* uuid, int device) {
    if (int error = check_device(device)) return error;
    std::memcpy(uuid, "fake GPU uuid \0\0", 16);
    uuid[15] = static_cast<unsigned char>(driver().visible[device]);
    return SUCCESS;
}

FAKE_API cuDeviceTotalMem_v2(std::size_t* bytes, int device) {
    if (int error = check_device(device)) return error;
    *bytes = settings().memory_bytes;
    return SUCCESS;
}

FAKE_API cuDeviceGetAttribute(int* value, int attribute, int device) {
    if (int error = check_device(device)) return error;
    auto now = settings();
    const std::map<int, int> values = {
        {16, now.multiprocessors},
        {75, 9},  // compute capability 9.0
        {76, 0},
        {97, 227 << 10},  // shared memory per block, on request
        {133, now.mps},
    };
    auto found = values.find(attribute);
    if (found == values.end()) return INVALID_VALUE;
    *value = found->second;
    return SUCCESS;
}

FAKE_API cuDeviceCanAccessPeer(int* can, int device, int peer) {
    if (int error = check_device(device)) return error;
    if (int error = check_device(peer)) return error;
    *can = device != peer && settings().peers ? 1 : 0;
    return SUCCESS;
}

FAKE_API cuDevicePrimaryCtxRetain(Context** context, int device) {
    if (int error = check_device(device)) return error;
    std::lock_guard guard(driver().lock);
    *context = &driver().contexts[device];
    ++(*context)->references;
    return SUCCESS;
}

FAKE_API cuDevicePrimaryCtxRelease_v2(int device) {
    if (int error = check_device(device)) return error;
    std::lock_guard guard(driver().lock);
    if (driver().contexts[device].references == 0) return misuse(INVALID_CONTEXT, "a context is released too often");
    --driver().contexts[device].references;  // the last release does not destroy anything: tests do not come back
    return SUCCESS;
}

FAKE_API cuCtxGetCurrent(Context** context) {
    if (int error = ready()) return error;
    *context = current();
    return SUCCESS;
}

FAKE_API cuCtxSetCurrent(Context* context) {
    if (int error = ready()) return error;
    if (!stack.empty()) stack.pop_back();
    if (context != nullptr) stack.push_back(context);
    return SUCCESS;
}

FAKE_API cuCtxPushCurrent_v2(Context* context) {
    if (int error = ready()) return error;
    if (context == nullptr) return INVALID_CONTEXT;
    stack.push_back(context);
    return SUCCESS;
}

FAKE_API cuCtxPopCurrent_v2(Context** context) {
    if (int error = ready_with_context()) return error;
    if (context != nullptr) *context = stack.back();
    stack.pop_back();
    return SUCCESS;
}

FAKE_API cuCtxGetDevice(int* device) {
    if (int error = ready_with_context()) return error;
    *device = current()->ordinal;
    return SUCCESS;
}

// ---- for tests --------------------------------------------------------------------------------------------------

// Change settings while the process runs: "export=refuse".
FAKE_API fake_set(const char* text) {
    std::lock_guard guard(driver().lock);
    return read(driver().settings, text) ? SUCCESS : INVALID_VALUE;
}

// Skip what a call of a communicator puts into a stream, to measure the time of everything else.
FAKE_API fake_skip(int skips) {
    driver().skips = skips != 0;
    return SUCCESS;
}

FAKE_API fake_misuses() { return driver().misuses; }
