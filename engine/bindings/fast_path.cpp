// A collective as a callable object.
//
//     comm.all_reduce(x, op="max", async_op=True)
//
// Everything that the table does not know (the first call of its kind, a timeout, sizes, unusual arrays, mistakes) goes
// to the Python method.
#include "fast_path.hpp"

#include "gpu_fast_path.hpp"
#include <structmember.h>

#include <cstddef>

namespace nb = nanobind;

namespace unisono::bindings {

namespace {

constexpr double endpoint_timeout = -1;

struct FastCall {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject* endpoint;    // kept alive
    FastPath* fast_path;   // the same object
    PyObject* method;      // the full path
    PyObject* default_op;  // None where the collective does not reduce
    PyObject* gpu;         // kept alive
    GpuTable* gpu_table;   // the same object
    std::uint64_t collective;
    Py_ssize_t arrays;  // 0, 1 or 2
};

PyObject* name_of(const char* text) { return PyUnicode_InternFromString(text); }

// Returns the result of the call; null without an exception if it must take the full path.
PyObject* try_fast_path(FastCall* self, PyObject* const* args, std::size_t nargsf, PyObject* kwnames) {
    static PyObject* const op_name = name_of("op");
    static PyObject* const root_name = name_of("root");
    static PyObject* const algorithm_name = name_of("algorithm");
    static PyObject* const codec_name = name_of("codec");
    static PyObject* const async_name = name_of("async_op");
    const Py_ssize_t given = PyVectorcall_NARGS(nargsf);
    if (given != self->arrays) return nullptr;
    PyObject* op = self->default_op;
    PyObject* root = nullptr;
    PyObject* algorithm = Py_None;
    PyObject* codec = Py_None;
    bool async_op = false;
    const Py_ssize_t named = kwnames != nullptr ? PyTuple_Size(kwnames) : 0;
    for (Py_ssize_t index = 0; index < named; ++index) {
        PyObject* const name = PyTuple_GetItem(kwnames, index);
        PyObject* const value = args[given + index];
        if (name == op_name && op != Py_None)
            op = value;
        else if (name == root_name)
            root = value;
        else if (name == algorithm_name)
            algorithm = value;
        else if (name == codec_name)
            codec = value;
        else if (name == async_name && PyBool_Check(value))
            async_op = value == Py_True;
        else
            return nullptr;
    }
    long long root_rank = 0;
    if (root != nullptr) {
        if (!PyLong_CheckExact(root)) return nullptr;
        int overflow = 0;
        root_rank = PyLong_AsLongLongAndOverflow(root, &overflow);
        if (overflow != 0 || root_rank < 0) return nullptr;
    }
    const OutsideCall call{self->collective, self->arrays > 0 ? args[0] : nullptr, self->arrays > 1 ? args[1] : nullptr,
                           op, static_cast<std::uint64_t>(root_rank), algorithm, codec};
    try {
        nb::object made = self->fast_path->repeat(self->endpoint, call, endpoint_timeout, async_op);
        if (!made.is_valid() && !async_op) made = self->gpu_table->repeat(call, self->fast_path->default_timeout_s());
        return made.release().ptr();
    } catch (nb::python_error& error) {
        error.restore();
        return nullptr;
    }
}

PyObject* call(PyObject* object, PyObject* const* args, std::size_t nargsf, PyObject* kwnames) {
    auto* const self = reinterpret_cast<FastCall*>(object);
    PyObject* const result = try_fast_path(self, args, nargsf, kwnames);
    if (result != nullptr || PyErr_Occurred() != nullptr) return result;
    return PyObject_Vectorcall(self->method, args, nargsf, kwnames);
}

void free_fast_call(PyObject* object) {
    auto* const self = reinterpret_cast<FastCall*>(object);
    PyTypeObject* const type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    Py_XDECREF(self->endpoint);
    Py_XDECREF(self->method);
    Py_XDECREF(self->default_op);
    Py_XDECREF(self->gpu);
    PyObject_GC_Del(object);
    Py_DECREF(type);
}

int traverse(PyObject* object, visitproc visit, void* arg) {
    auto* const self = reinterpret_cast<FastCall*>(object);
    Py_VISIT(self->endpoint);
    Py_VISIT(self->method);
    Py_VISIT(Py_TYPE(object));
    return 0;
}

int clear(PyObject* object) {
    auto* const self = reinterpret_cast<FastCall*>(object);
    Py_CLEAR(self->method);
    return 0;
}

// Documentation and signature are those of the method: inspect and help look at __wrapped__ and __doc__.
PyObject* get_doc(PyObject* object, void*) {
    return PyObject_GetAttrString(reinterpret_cast<FastCall*>(object)->method, "__doc__");
}
PyObject* get_name(PyObject* object, void*) {
    return PyObject_GetAttrString(reinterpret_cast<FastCall*>(object)->method, "__name__");
}
PyObject* get_wrapped(PyObject* object, void*) {
    PyObject* const method = reinterpret_cast<FastCall*>(object)->method;
    Py_INCREF(method);
    return method;
}

PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(FastCall, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};
PyGetSetDef attributes[] = {
    {"__doc__", get_doc, nullptr, nullptr, nullptr},
    {"__name__", get_name, nullptr, nullptr, nullptr},
    {"__wrapped__", get_wrapped, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyType_Slot slots[] = {
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_dealloc, reinterpret_cast<void*>(free_fast_call)},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(clear)},
    {Py_tp_members, members},
    {Py_tp_getset, attributes},
    {0, nullptr},
};
PyType_Spec spec = {
    "unisono._engine.FastCall", sizeof(FastCall), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots,
};

PyTypeObject* fast_call_type() {
    static PyObject* const type = PyType_FromSpec(&spec);
    if (type == nullptr) throw nb::python_error();
    return reinterpret_cast<PyTypeObject*>(type);
}

}  // namespace

nb::object make_fast_call(nb::object endpoint, FastPath& fast_path, std::uint64_t collective, int arrays,
                          nb::object default_op, nb::object method, nb::object gpu) {
    FastCall* const made = PyObject_GC_New(FastCall, fast_call_type());
    if (made == nullptr) throw nb::python_error();
    made->vectorcall = call;
    made->endpoint = endpoint.release().ptr();
    made->fast_path = &fast_path;
    made->method = method.release().ptr();
    made->default_op = default_op.release().ptr();
    made->gpu_table = &nb::cast<GpuTable&>(gpu);
    made->gpu = gpu.release().ptr();
    made->collective = collective;
    made->arrays = arrays;
    PyObject_GC_Track(reinterpret_cast<PyObject*>(made));
    return nb::steal(reinterpret_cast<PyObject*>(made));
}

}  // namespace unisono::bindings
