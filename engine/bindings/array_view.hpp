// Arrays of Python as the fast path sees them: numpy arrays and torch tensors.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>

#include "dlpack_exchange.hpp"

namespace unisono::bindings {

// The classes of torch whose objects are accepted. torch is not imported for this: until the program has imported it,
// there are no tensors.
class TensorTypes {
  public:
    // Looks for the classes, if torch was imported.
    void find();
    bool contains(const PyTypeObject* type) const { return type != nullptr && (type == tensor_ || type == parameter_); }
    // How torch describes a tensor; null if this torch cannot.
    const dlpack::Exchange* exchange() const { return exchange_; }

  private:
    const PyTypeObject* tensor_ = nullptr;  // torch keeps its classes alive
    const PyTypeObject* parameter_ = nullptr;
    const dlpack::Exchange* exchange_ = nullptr;
};

// The devices on which arrays are: the CPU, or a CUDA device, from 0.
inline constexpr int cpu_device = -1;

// The memory of a contiguous array. (The buffer protocol would do for numpy, but takes 100 ns and lacks bfloat16.)
struct View {
    // Returns false if it is anything else, is on another device, or may not be written. A tensor must hold its values:
    // no view with the conjugate or the negative bit set, no storage that was freed or shrunk.
    bool look_at(nanobind::handle array, bool writable, const TensorTypes& tensors, int device = cpu_device);
    bool overlaps(const View& other) const { return data < other.data + other.bytes && other.data < data + bytes; }

    std::byte* data = nullptr;
    std::uint64_t bytes = 0;
    // What stands for the type: its object, or its number in DLPack; the same for all arrays of a type, as a rule.
    const void* dtype = nullptr;

  private:
    bool look_at_tensor(PyObject* tensor, int device);
    bool look_at_cuda_tensor(PyObject* tensor, const dlpack::Tensor& described, int device);
    bool is_in_storage(PyObject* tensor);
};

// Loads numpy's table of functions; once, before the first View.
int load_numpy();

}  // namespace unisono::bindings
