// The part of DLPack's C exchange interface that the fast path uses: what a tensor is, without calls of its methods.
//
// A class of tensors states it in the attribute __dlpack_c_exchange_api__ (torch 2.10 or later). The layout of these
// structures does not change within a major version.
#pragma once

#include <Python.h>

#include <cstdint>

namespace unisono::bindings::dlpack {

inline constexpr std::uint32_t major_version = 1;
inline constexpr std::int32_t on_cuda = 2;       // DLDeviceType
inline constexpr std::uint8_t complex_code = 5;  // DLDataTypeCode

struct Type {
    std::uint8_t code, bits;
    std::uint16_t lanes;
};

struct Tensor {  // DLTensor
    void* data;
    std::int32_t device_type, device;
    std::int32_t dimensions;
    Type type;
    std::int64_t* shape;
    std::int64_t* strides;
    std::uint64_t byte_offset;
};

struct Exchange {  // DLPackExchangeAPI
    std::uint32_t major, minor;
    const void* previous;
    void* make;
    void* export_owned;
    void* import_owned;
    int (*describe)(void* object, Tensor* tensor);  // -1 and an exception where DLPack cannot describe it
    void* current_stream;
};

// Returns the interface of a class, or null, without an exception, if it has none that is understood.
inline const Exchange* exchange_of(PyTypeObject* type) {
    PyObject* const capsule = PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "__dlpack_c_exchange_api__");
    const Exchange* found = nullptr;
    if (capsule != nullptr) {
        found = static_cast<const Exchange*>(PyCapsule_GetPointer(capsule, "dlpack_exchange_api"));
        Py_DECREF(capsule);  // the structure lives as long as the process
    }
    PyErr_Clear();
    return found != nullptr && found->major == major_version && found->describe != nullptr ? found : nullptr;
}

// Returns whether the elements lie one after the other, in the order of their indices.
inline bool is_contiguous(const Tensor& tensor) {
    if (tensor.strides == nullptr) return true;
    std::int64_t expected = 1;
    for (std::int32_t axis = tensor.dimensions; axis-- > 0;) {
        if (tensor.shape[axis] == 0) return true;
        if (tensor.shape[axis] != 1 && tensor.strides[axis] != expected) return false;
        expected *= tensor.shape[axis];
    }
    return true;
}

inline std::uint64_t bytes_of(const Tensor& tensor) {
    std::uint64_t count = 1;
    for (std::int32_t axis = 0; axis < tensor.dimensions; ++axis)
        count *= static_cast<std::uint64_t>(tensor.shape[axis]);
    return (count * tensor.type.bits * tensor.type.lanes + 7) / 8;
}

}  // namespace unisono::bindings::dlpack
