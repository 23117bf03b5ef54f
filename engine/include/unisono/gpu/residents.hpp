// The communicators of this process whose kernels may be on a GPU at the same time.
//
// A kernel that waits for its peers stays on the GPU until their kernels run, so the kernels of all ranks must fit at
// the same time. The thread blocks of a call are a share for two communicators of each process
// (src/unisono/gpu/agreement.py). When a third one makes a call, its kernel waits until the kernels of the one that has
// made no call for the longest time are over. Such a wait is for calls that this process made earlier, so ranks that
// make the calls of all their communicators in one order cannot wait in a cycle.
#pragma once

#include <mutex>
#include <vector>

#include "unisono/gpu/device_memory.hpp"

namespace unisono::gpu {

class Residents {
  public:
    // A communicator, by its address. `mark` is an event that only this class records.
    struct Resident {
        const void* communicator;
        int device;
        cuda::Stream stream;  // of its last call
        const GpuEventHandle* mark;
    };
    static Residents& of_process();

    // Called before a call is put into its stream.
    void enter(const Driver& driver, const Resident& resident);
    void leave(const void* communicator);

  private:
    static constexpr int most = 2;  // COMMUNICATORS_AT_ONCE in agreement.py

    std::mutex mutex_;
    std::vector<Resident> known_;  // the last call comes last
};

}  // namespace unisono::gpu
