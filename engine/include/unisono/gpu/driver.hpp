// The CUDA driver, loaded at run time.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "unisono/gpu/driver_abi.hpp"

namespace unisono::gpu {

// Thrown where there is no driver, or none that can be used.
struct Unavailable : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// Thrown where the driver refuses an operation.
struct DriverError : std::runtime_error {
    DriverError(const std::string& operation, const std::string& result)
        : std::runtime_error(operation + ": " + result), operation(operation), result(result) {}
    std::string operation, result;
};

struct DeviceInfo {
    int ordinal = 0;
    std::string name, uuid;
    int multiprocessors = 0, major = 0, minor = 0;
    std::uint64_t memory_bytes = 0;
    bool mps = false;
    std::vector<bool> peers;
};

class Driver {
  public:
    explicit Driver(const std::string& path);  // throws Unavailable

    const cuda::Functions& functions() const { return functions_; }
    int version() const { return version_; }
    std::vector<DeviceInfo> devices() const;
    // Throws DriverError unless the result is success.
    void check(cuda::Result result, const char* operation) const {
        if (result != cuda::Result::success) [[unlikely]]
            refuse(result, operation);
    }
    std::string name_of(cuda::Result result) const;

  private:
    [[noreturn]] void refuse(cuda::Result result, const char* operation) const;

    cuda::Functions functions_{};
    int version_ = 0;
};

// Makes a context current for as long as this object exists, unless it is current already.
class CurrentContext {
  public:
    CurrentContext(const Driver& driver, cuda::Context context);
    ~CurrentContext();
    CurrentContext(const CurrentContext&) = delete;
    CurrentContext& operator=(const CurrentContext&) = delete;

  private:
    const Driver& driver_;
    bool pushed_ = false;
};

// Allows the calling thread, for as long as this object exists, operations that the driver refuses while a stream is
// being captured: they are not meant to be part of the capture.
class CaptureAllowance {
  public:
    explicit CaptureAllowance(const Driver& driver) : driver_(driver) {
        driver_.functions().thread_exchange_capture_mode(&mode_);
    }
    ~CaptureAllowance() { driver_.functions().thread_exchange_capture_mode(&mode_); }
    CaptureAllowance(const CaptureAllowance&) = delete;
    CaptureAllowance& operator=(const CaptureAllowance&) = delete;

  private:
    const Driver& driver_;
    cuda::CaptureMode mode_ = cuda::CaptureMode::relaxed;
};

}  // namespace unisono::gpu
