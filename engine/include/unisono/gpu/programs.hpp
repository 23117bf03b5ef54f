// Device memory for programs, which are short and many.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "unisono/gpu/device_memory.hpp"

namespace unisono::gpu {

// Hands out pieces of larger allocations, because to free an allocation waits for the whole device. Pieces have sizes
// of powers of two, and a piece that was given back is used again.
class ProgramMemory : public std::enable_shared_from_this<ProgramMemory> {
  public:
    explicit ProgramMemory(const Driver& driver) : driver_(driver) {}

    class Piece {
      public:
        Piece(std::shared_ptr<ProgramMemory> memory, cuda::Address address, int size_class)
            : address(address), memory_(std::move(memory)), class_(size_class) {}
        ~Piece() { memory_->give_back(address, class_); }
        Piece(const Piece&) = delete;
        Piece& operator=(const Piece&) = delete;
        const cuda::Address address;

      private:
        std::shared_ptr<ProgramMemory> memory_;
        int class_;
    };
    // Copies a program to the device and returns when it is there; `stream` is used for the copy.
    std::unique_ptr<Piece> place(const void* program, std::size_t bytes, cuda::Stream stream);
    void release();  // all memory; later pieces must not be used

  private:
    void give_back(cuda::Address address, int size_class);
    cuda::Address take(int size_class);

    static constexpr std::size_t chunk_bytes = 256 << 10;
    const Driver& driver_;
    std::mutex mutex_;  // plans may be destroyed by any thread
    std::vector<DeviceMemory> chunks_;
    std::size_t left_ = 0;  // bytes at the end of the last chunk
    std::vector<cuda::Address> free_[64];
};

}  // namespace unisono::gpu
