// What the calls on the GPUs of this process wait for, written to a file when a signal arrives.
//
// It needs neither the interpreter's lock nor the driver, because threads that hang may hold either. The tools that run
// programs on GPUs under a time limit use it (tools/gpu_watch.py).
#pragma once

#include <string>

namespace unisono::gpu {

class GpuEndpoint;

// Makes a thread write the state of every endpoint of this process to the end of a file, each time `signal` arrives.
// Kernels that wait are ended, because only they know for whom they wait: a process is not usable after that.
// In a forked child, call it again.
void describe_on_signal(int signal, const std::string& path);

// Keeps an endpoint in the list of those that are described.
class Described {
  public:
    explicit Described(GpuEndpoint& endpoint);
    ~Described();
    Described(const Described&) = delete;
    Described& operator=(const Described&) = delete;

  private:
    GpuEndpoint& endpoint_;
};

}  // namespace unisono::gpu
