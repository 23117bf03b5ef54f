#include "unisono/gpu/device_memory.hpp"

#include <cstring>

namespace unisono::gpu {

MappedMemory::MappedMemory(const Driver& driver, std::size_t bytes) : driver_(driver) {
    const cuda::Functions& functions = driver.functions();
    driver.check(functions.mem_host_alloc(&host_, bytes, cuda::host_memory_portable | cuda::host_memory_mapped),
                 "cuMemHostAlloc");
    std::memset(host_, 0, bytes);
    const cuda::Result result = functions.mem_host_get_device_pointer(&address_, host_, 0);
    if (result == cuda::Result::success) return;
    release();
    driver.check(result, "cuMemHostGetDevicePointer");
}

RegisteredPage::RegisteredPage(const Driver& driver, void* page, std::size_t bytes) : driver_(driver) {
    const cuda::Functions& functions = driver.functions();
    // The flags of registration have the values of those of allocation.
    driver.check(functions.mem_host_register(page, bytes, cuda::host_memory_portable | cuda::host_memory_mapped),
                 "cuMemHostRegister");
    page_ = page;
    const cuda::Result result = functions.mem_host_get_device_pointer(&address_, page, 0);
    if (result == cuda::Result::success) return;
    release();
    driver.check(result, "cuMemHostGetDevicePointer");
}

PrivateStream::PrivateStream(const Driver& driver) : driver_(driver) {
    int least = 0, greatest = 0;
    driver.check(driver.functions().ctx_get_stream_priority_range(&least, &greatest), "cuCtxGetStreamPriorityRange");
    driver.check(driver.functions().stream_create_with_priority(&stream_, cuda::stream_non_blocking, greatest),
                 "cuStreamCreateWithPriority");
}

}  // namespace unisono::gpu
