// Memory and streams of a device, with an owner.
//
// Destructors ignore errors: at the end of a process the driver may be gone already, and with it the memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "unisono/gpu/driver.hpp"

namespace unisono::gpu {

class DeviceMemory {
  public:
    DeviceMemory() = default;
    DeviceMemory(const Driver& driver, std::size_t bytes) : driver_(&driver), bytes_(bytes) {
        driver.check(driver.functions().mem_alloc(&address_, bytes), "cuMemAlloc");
    }
    ~DeviceMemory() { release(); }
    DeviceMemory(DeviceMemory&& other) noexcept { *this = std::move(other); }
    DeviceMemory& operator=(DeviceMemory&& other) noexcept {
        std::swap(driver_, other.driver_);
        std::swap(address_, other.address_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }
    cuda::Address address() const { return address_; }
    std::size_t bytes() const { return bytes_; }
    void release() {
        if (address_ != 0) driver_->functions().mem_free(address_);
        address_ = 0;
    }

  private:
    const Driver* driver_ = nullptr;
    cuda::Address address_ = 0;
    std::size_t bytes_ = 0;
};

// Host memory that kernels can access; filled with zeros.
class MappedMemory {
  public:
    MappedMemory(const Driver& driver, std::size_t bytes);
    ~MappedMemory() { release(); }
    MappedMemory(const MappedMemory&) = delete;
    MappedMemory& operator=(const MappedMemory&) = delete;
    std::byte* host() const { return static_cast<std::byte*>(host_); }
    cuda::Address address() const { return address_; }
    void release() {
        if (host_ != nullptr) driver_.functions().mem_free_host(host_);
        host_ = nullptr;
    }

  private:
    const Driver& driver_;
    void* host_ = nullptr;
    cuda::Address address_ = 0;
};

// Lets kernels access host memory that exists already, a page of it.
class RegisteredPage {
  public:
    RegisteredPage(const Driver& driver, void* page, std::size_t bytes);
    ~RegisteredPage() { release(); }
    RegisteredPage(const RegisteredPage&) = delete;
    RegisteredPage& operator=(const RegisteredPage&) = delete;
    cuda::Address address() const { return address_; }
    void release() {
        if (page_ != nullptr) driver_.functions().mem_host_unregister(page_);
        page_ = nullptr;
    }

  private:
    const Driver& driver_;
    void* page_ = nullptr;
    cuda::Address address_ = 0;
};

// A stream that waits for no other. It has the highest priority, because streams of different priorities never share
// a hardware queue, in which it could be stuck behind a stream that waits for a peer.
class PrivateStream {
  public:
    explicit PrivateStream(const Driver& driver);
    ~PrivateStream() { release(); }
    PrivateStream(const PrivateStream&) = delete;
    PrivateStream& operator=(const PrivateStream&) = delete;
    cuda::Stream handle() const { return stream_; }
    void release() {
        if (stream_ != nullptr) driver_.functions().stream_destroy(stream_);
        stream_ = nullptr;
    }

  private:
    const Driver& driver_;
    cuda::Stream stream_ = nullptr;
};

// An event without times.
class GpuEventHandle {
  public:
    explicit GpuEventHandle(const Driver& driver) : driver_(driver) {
        driver.check(driver.functions().event_create(&event_, cuda::event_without_timing), "cuEventCreate");
    }
    ~GpuEventHandle() { release(); }
    GpuEventHandle(const GpuEventHandle&) = delete;
    GpuEventHandle& operator=(const GpuEventHandle&) = delete;
    cuda::Event handle() const { return event_; }
    void release() {
        if (event_ != nullptr) driver_.functions().event_destroy(event_);
        event_ = nullptr;
    }

  private:
    const Driver& driver_;
    cuda::Event event_ = nullptr;
};

}  // namespace unisono::gpu
