#include "array_view.hpp"

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>

namespace nb = nanobind;

namespace unisono::bindings {

namespace {

PyObject* interned(const char* text) { return PyUnicode_InternFromString(text); }

nb::object attribute(PyObject* object, PyObject* name) { return nb::steal(PyObject_GetAttr(object, name)); }

nb::object result_of(PyObject* object, PyObject* method) {
    return nb::steal(PyObject_VectorcallMethod(method, &object, 1 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr));
}

bool is(const nb::object& object, PyObject* expected) { return object.ptr() == expected; }

// Reads a number; false, with an exception set, if it is none.
bool read(const nb::object& object, std::uint64_t& number) {
    if (!object.is_valid()) return false;
    number = PyLong_AsUnsignedLongLong(object.ptr());
    return PyErr_Occurred() == nullptr;
}

bool is_on(PyObject* tensor, int device) {
    static PyObject* const is_cpu = interned("is_cpu");
    static PyObject* const is_cuda = interned("is_cuda");
    static PyObject* const get_device = interned("get_device");
    if (device == cpu_device) return is(attribute(tensor, is_cpu), Py_True);
    std::uint64_t ordinal = 0;
    return is(attribute(tensor, is_cuda), Py_True) && read(result_of(tensor, get_device), ordinal) &&
           ordinal == static_cast<std::uint64_t>(device);
}

}  // namespace

void TensorTypes::find() {
    if (tensor_ != nullptr) return;
    PyObject* const torch = PyDict_GetItemString(PyImport_GetModuleDict(), "torch");
    if (torch == nullptr) return;
    const nb::object tensor = nb::steal(PyObject_GetAttrString(torch, "Tensor"));
    const nb::object nn = nb::steal(PyObject_GetAttrString(torch, "nn"));
    if (nn.is_valid()) {
        const nb::object parameter = nb::steal(PyObject_GetAttrString(nn.ptr(), "Parameter"));
        if (parameter.is_valid() && tensor.is_valid() && PyType_Check(parameter.ptr()) && PyType_Check(tensor.ptr())) {
            tensor_ = reinterpret_cast<const PyTypeObject*>(tensor.ptr());
            exchange_ = dlpack::exchange_of(reinterpret_cast<PyTypeObject*>(tensor.ptr()));
            parameter_ = reinterpret_cast<const PyTypeObject*>(parameter.ptr());
        }
    }
    PyErr_Clear();  // a torch that is being imported lacks some names
}

bool View::look_at(nb::handle array, bool writable, const TensorTypes& tensors, int device) {
    if (!PyArray_CheckExact(array.ptr())) {
        if (!tensors.contains(Py_TYPE(array.ptr()))) return false;
        dlpack::Tensor described;
        const dlpack::Exchange* const exchange = device == cpu_device ? nullptr : tensors.exchange();
        const bool usable = exchange != nullptr && exchange->describe(array.ptr(), &described) == 0
                                ? look_at_cuda_tensor(array.ptr(), described, device)
                                : look_at_tensor(array.ptr(), device);
        if (!usable) PyErr_Clear();  // the full path reports what is wrong
        return usable;
    }
    if (device != cpu_device) return false;
    auto* const given = reinterpret_cast<PyArrayObject*>(array.ptr());
    const int needed = NPY_ARRAY_C_CONTIGUOUS | (writable ? NPY_ARRAY_WRITEABLE : 0);
    if (!PyArray_CHKFLAGS(given, needed) || PyArray_ISBYTESWAPPED(given)) return false;
    data = static_cast<std::byte*>(PyArray_DATA(given));
    bytes = static_cast<std::uint64_t>(PyArray_NBYTES(given));
    dtype = PyArray_DESCR(given);
    return true;
}

bool View::look_at_tensor(PyObject* tensor, int device) {
    static PyObject* const is_nested = interned("is_nested");
    static PyObject* const is_contiguous = interned("is_contiguous");
    static PyObject* const is_neg = interned("is_neg");
    static PyObject* const is_conj = interned("is_conj");
    static PyObject* const nbytes = interned("nbytes");
    static PyObject* const data_ptr = interned("data_ptr");
    static PyObject* const dtype_name = interned("dtype");
    if (!is_on(tensor, device) || !is(attribute(tensor, is_nested), Py_False) ||
        !is(result_of(tensor, is_contiguous), Py_True) || !is(result_of(tensor, is_neg), Py_False) ||
        !is(result_of(tensor, is_conj), Py_False))
        return false;
    std::uint64_t address = 0;
    if (!read(attribute(tensor, nbytes), bytes) || !is_in_storage(tensor)) return false;
    const nb::object type = attribute(tensor, dtype_name);
    if (!type.is_valid() || !read(result_of(tensor, data_ptr), address) || address == 0) return false;
    data = reinterpret_cast<std::byte*>(address);
    dtype = type.ptr();
    return true;
}

// The same with fewer calls: those that remain cost as much as all others together.
bool View::look_at_cuda_tensor(PyObject* tensor, const dlpack::Tensor& described, int device) {
    static PyObject* const is_neg = interned("is_neg");
    static PyObject* const is_conj = interned("is_conj");
    if (described.device_type != dlpack::on_cuda || described.device != device || described.data == nullptr ||
        !dlpack::is_contiguous(described) || !is(result_of(tensor, is_neg), Py_False))
        return false;
    if (described.type.code == dlpack::complex_code && !is(result_of(tensor, is_conj), Py_False)) return false;
    bytes = dlpack::bytes_of(described);
    if (bytes == 0 || !is_in_storage(tensor)) return false;
    data = static_cast<std::byte*>(described.data) + described.byte_offset;
    const std::uint64_t number = described.type.code | described.type.bits << 8 | described.type.lanes << 16;
    dtype = reinterpret_cast<const void*>(number);
    return true;
}

// Returns whether the storage of a tensor has room for its `bytes`: it may have been freed or shrunk.
bool View::is_in_storage(PyObject* tensor) {
    static PyObject* const untyped_storage = interned("untyped_storage");
    static PyObject* const nbytes = interned("nbytes");
    static PyObject* const storage_offset = interned("storage_offset");
    static PyObject* const itemsize = interned("itemsize");
    const nb::object storage = result_of(tensor, untyped_storage);
    std::uint64_t held = 0, offset = 0, element = 0;
    if (!storage.is_valid() || !read(result_of(storage.ptr(), nbytes), held)) return false;
    if (held == bytes) return true;
    return read(result_of(tensor, storage_offset), offset) && read(attribute(tensor, itemsize), element) &&
           held >= bytes + offset * element;
}

// numpy fills a table of its functions when it is imported, once for each source file that uses them.
int load_numpy() {
    import_array1(-1);
    return 0;
}

}  // namespace unisono::bindings
