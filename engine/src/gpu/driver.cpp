#include "unisono/gpu/driver.hpp"

#include <dlfcn.h>

#include <cstdio>

namespace unisono::gpu {

namespace {

constexpr int oldest_version = 12000;

}  // namespace

Driver::Driver(const std::string& path) {
    void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library == nullptr) throw Unavailable(::dlerror());
    std::string missing;
#define UNISONO_LOOK_UP(name, symbol, ...)                                                   \
    functions_.name = reinterpret_cast<decltype(functions_.name)>(::dlsym(library, symbol)); \
    if (functions_.name == nullptr && missing.empty()) missing = symbol;
    UNISONO_CUDA_FUNCTIONS(UNISONO_LOOK_UP)
#undef UNISONO_LOOK_UP
    if (!missing.empty()) throw Unavailable(path + ": has no function " + missing + "; expected CUDA 12.0 or later");
    if (const cuda::Result result = functions_.init(0); result != cuda::Result::success)
        throw Unavailable(path + ": cuInit: " + name_of(result));
    functions_.driver_get_version(&version_);
    if (version_ < oldest_version)
        throw Unavailable(path + ": is CUDA " + std::to_string(version_ / 1000) + "." +
                          std::to_string(version_ % 1000 / 10) + "; expected 12.0 or later");
}

std::string Driver::name_of(cuda::Result result) const {
    const char* name = nullptr;
    if (functions_.get_error_name(result, &name) == cuda::Result::success && name != nullptr) return name;
    return "error " + std::to_string(static_cast<int>(result));
}

void Driver::refuse(cuda::Result result, const char* operation) const { throw DriverError(operation, name_of(result)); }

std::vector<DeviceInfo> Driver::devices() const {
    int count = 0;
    check(functions_.device_get_count(&count), "cuDeviceGetCount");
    std::vector<cuda::Device> devices(static_cast<std::size_t>(count));
    for (int ordinal = 0; ordinal < count; ++ordinal)
        check(functions_.device_get(&devices[static_cast<std::size_t>(ordinal)], ordinal), "cuDeviceGet");
    std::vector<DeviceInfo> found;
    for (const cuda::Device device : devices) {
        DeviceInfo info;
        info.ordinal = static_cast<int>(found.size());
        char name[256] = {};
        check(functions_.device_get_name(name, sizeof name - 1, device), "cuDeviceGetName");
        info.name = name;
        cuda::Uuid uuid{};
        check(functions_.device_get_uuid(&uuid, device), "cuDeviceGetUuid");
        for (const unsigned char byte : uuid.bytes) {
            char digits[3];
            std::snprintf(digits, sizeof digits, "%02x", byte);
            info.uuid += digits;
        }
        std::size_t bytes = 0;
        check(functions_.device_total_mem(&bytes, device), "cuDeviceTotalMem");
        info.memory_bytes = bytes;
        const auto attribute = [&](cuda::DeviceAttribute which) {
            int value = 0;
            check(functions_.device_get_attribute(&value, which, device), "cuDeviceGetAttribute");
            return value;
        };
        info.multiprocessors = attribute(cuda::DeviceAttribute::multiprocessors);
        info.major = attribute(cuda::DeviceAttribute::compute_capability_major);
        info.minor = attribute(cuda::DeviceAttribute::compute_capability_minor);
        int mps = 0;  // an old driver does not know this attribute
        info.mps = functions_.device_get_attribute(&mps, cuda::DeviceAttribute::mps_enabled, device) ==
                       cuda::Result::success &&
                   mps != 0;
        for (const cuda::Device peer : devices) {
            int can = 1;
            if (peer != device) check(functions_.device_can_access_peer(&can, device, peer), "cuDeviceCanAccessPeer");
            info.peers.push_back(can != 0);
        }
        found.push_back(info);
    }
    return found;
}

CurrentContext::CurrentContext(const Driver& driver, cuda::Context context) : driver_(driver) {
    cuda::Context current = nullptr;
    if (driver_.functions().ctx_get_current(&current) == cuda::Result::success && current == context) return;
    driver_.check(driver_.functions().ctx_push_current(context), "cuCtxPushCurrent");
    pushed_ = true;
}

CurrentContext::~CurrentContext() {
    cuda::Context popped = nullptr;
    if (pushed_) driver_.functions().ctx_pop_current(&popped);
}

}  // namespace unisono::gpu
