"""The engine compiles for aarch64, and its loops use NEON: the short version of `make aarch64`."""

from __future__ import annotations

import subprocess

import pytest

import aarch64
import native

MISSING = aarch64.missing(aarch64.COMPILER, aarch64.DISASSEMBLER)
needs_compiler = pytest.mark.skipif(bool(MISSING), reason=f"SKIPPED, NOT TESTED ON AARCH64: {MISSING}")
INCLUDE = ["-std=c++20", "-Wall", "-Wextra", "-Werror", f"-I{native.ROOT / 'engine' / 'include'}"]
# What depends on the processor: waiting, the clock, copies, the addresses of the shared memory.
DEPENDENT = ["shm/waiting", "shm/channel", "shm/memory", "core/ticks", "loops/copy"]
LOOPS = ["-O3", "-fno-math-errno", "-fno-trapping-math", "-DUNISONO_VARIANT=baseline"]


def compile_for_aarch64(*arguments):
    subprocess.run([aarch64.COMPILER, *INCLUDE, *arguments], check=True, timeout=120)


@needs_compiler
def test_what_depends_on_the_processor_compiles_for_aarch64(tmp_path):
    everything = tmp_path / "everything.cpp"
    everything.write_text("".join(f'#include "{native.ROOT}/engine/src/{name}.cpp"\n' for name in DEPENDENT))
    compile_for_aarch64("-fsyntax-only", everything)


@needs_compiler
def test_the_loops_that_divide_use_neon(tmp_path):
    """All other loops take longer to compile; `make aarch64` looks at them."""
    source, objects = native.ROOT / "engine" / "src" / "loops" / "divide.cpp", tmp_path / "divide.o"
    compile_for_aarch64(*LOOPS, "-ffp-contract=off", "-c", source, "-o", objects)
    wrong, loops = aarch64.findings(objects)
    assert wrong == []
    assert loops == 8
    code = dict(aarch64.functions(objects))
    (half,) = [text for name, text in code.items() if name.startswith("void divide<Small<5, 10, false> >")]
    assert "fcvtl\tv" in half  # float16 is widened and narrowed by the processor
    assert "fcvtn\tv" in half


@needs_compiler
def test_a_scalar_loop_and_a_fused_operation_are_found(tmp_path):
    source, objects = tmp_path / "scalar.cpp", tmp_path / "scalar.o"
    source.write_text("""
        enum class Reduction { sum };
        enum class Addends { one };
        template <Reduction R, typename T, Addends A>
        __attribute__((noinline)) void combine_many(T* out, const T* left, T factor) { *out = *left + factor; }
        template void combine_many<Reduction::sum, float, Addends::one>(float*, const float*, float);
        double fused(double a, double b, double c) { return a * b + c; }
    """)
    compile_for_aarch64("-O3", "-c", source, "-o", objects)
    wrong, loops = aarch64.findings(objects)
    assert loops == 1
    assert {text.rpartition(": ")[2] for text in wrong} == {
        "no fadd on a whole register",
        "floating-point arithmetic on single numbers",
        "a product and a sum are one operation",
    }


@pytest.mark.parametrize(
    ("name", "instruction"),
    [
        ("void combine_many<(Reduction)0, Small<4, 3, true>, (Addends)2>(void*)", "fadd"),
        ("void combine_many<(Reduction)1, unsigned long, (Addends)0>(void*)", None),
        ("void combine_many<(Reduction)1, bool, (Addends)0>(void*)", "and"),
        ("void combine_many<(Reduction)6, signed char, (Addends)1>(void*)", "eor"),
        ("void divide<Complex<float> >(void*)", "fmul"),
        ("void decode_combine<BrainFloat, Add<(Reduction)0> >(std::byte const*)", "fadd"),
        ("unisono::Endpoint::open(unisono::Layout::Range)", None),
    ],
)
def test_what_a_loop_must_contain_follows_from_its_name(name, instruction):
    assert aarch64.expected_in(name) == instruction
