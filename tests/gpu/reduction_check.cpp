// The reductions of the kernel, every one for every type, as functions that a test can call.
#include "reductions.cuh"

using namespace unisono_kernel;

namespace {

template <Op O, typename D>
constexpr bool is_defined() {
    constexpr bool bitwise = O == Op::band || O == Op::bor || O == Op::bxor;
    constexpr bool ordering = O == Op::max || O == Op::min;
    if (D::kind == Kind::floating) return !bitwise;
    if (D::kind == Kind::complex) return !bitwise && !ordering;
    return true;
}

template <Op O, typename D>
bool combine_all(Vector* out, const Vector* const* sources, u32 count, u64 vectors) {
    if constexpr (is_defined<O, D>()) {
        for (u64 i = 0; i < vectors; ++i) {
            Wides<D> total = widen<D>(sources[0][i]);
            for (u32 s = 1; s < count; ++s) accumulate<O, D>(total, sources[s][i]);
            out[i] = narrow<D>(total);
        }
        return true;
    } else {
        return false;
    }
}

template <typename D>
bool divide_all(Vector* out, const Vector* in, u32 size, u64 vectors) {
    if constexpr (divisible<D>) {
        for (u64 i = 0; i < vectors; ++i) out[i] = divided<D>(in[i], size);
        return true;
    } else {
        return false;
    }
}

struct Functions {
    bool (*combine[7])(Vector*, const Vector* const*, u32, u64);
    bool (*divide)(Vector*, const Vector*, u32, u64);
};
template <typename D>
constexpr Functions functions_of{{combine_all<Op::sum, D>, combine_all<Op::prod, D>, combine_all<Op::max, D>,
                                  combine_all<Op::min, D>, combine_all<Op::band, D>, combine_all<Op::bor, D>,
                                  combine_all<Op::bxor, D>},
                                 divide_all<D>};

const Functions* const by_dtype[] = {
    &functions_of<dtype_float32>,       &functions_of<dtype_float64>,     &functions_of<dtype_float16>,
    &functions_of<dtype_bfloat16>,      &functions_of<dtype_float8_e4m3fn>, &functions_of<dtype_float8_e5m2>,
    &functions_of<dtype_int8>,          &functions_of<dtype_int16>,       &functions_of<dtype_int32>,
    &functions_of<dtype_int64>,         &functions_of<dtype_uint8>,       &functions_of<dtype_uint16>,
    &functions_of<dtype_uint32>,        &functions_of<dtype_uint64>,      &functions_of<dtype_bool>,
    &functions_of<dtype_complex64>,     &functions_of<dtype_complex128>,
};

}  // namespace

// Types and reductions are numbered as in the engine (reduce.hpp). Returns whether the reduction is defined.
extern "C" bool combine_vectors(u32 op, u32 dtype, Vector* out, const Vector* const* sources, u32 count, u64 vectors) {
    return by_dtype[dtype]->combine[op](out, sources, count, vectors);
}
extern "C" bool divide_vectors(u32 dtype, Vector* out, const Vector* in, u32 size, u64 vectors) {
    return by_dtype[dtype]->divide(out, in, size, vectors);
}
