"""The kernel compiles for the GPU; its loops keep everything in registers; it knows no algorithm."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import types

import pytest

from unisono import UsageError
from unisono.algorithms import BUILT_IN
from unisono.cache_files import user_cache
from unisono.gpu import nvrtc

NVCC = shutil.which("nvcc")
ELF = b"\x7fELF"


@pytest.fixture
def compiler(monkeypatch, tmp_path):
    """Replace cuda.core by a stand-in that counts compilations and refuses sources with the macro WRONG."""
    nvrtc.nvrtc_version.cache_clear()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    compiled = []

    class Program:
        def __init__(self, code, language, options):
            self.options = options

        def compile(self, target):
            if ("WRONG", "1") in self.options.define_macro:
                raise RuntimeError("error: no such type")
            compiled.append((self.options.arch, target))
            return types.SimpleNamespace(code=ELF + str(len(compiled)).encode())

        def close(self):
            pass

    core = types.SimpleNamespace(Program=Program, ProgramOptions=types.SimpleNamespace)
    bindings = types.SimpleNamespace(nvrtcVersion=lambda: (0, 13, 0))
    parts = {"cuda.core": core, "cuda.bindings.nvrtc": bindings}
    monkeypatch.setattr(nvrtc, "import_module", parts.__getitem__)
    yield compiled
    nvrtc.nvrtc_version.cache_clear()


def test_an_image_is_compiled_once_for_each_architecture_and_variant(compiler):
    first = nvrtc.kernel_image("float32", "sum", None, 16, 9, 0)
    assert nvrtc.kernel_image("float32", "sum", None, 16, 9, 0) == first
    assert compiler == [("sm_90", "cubin")]
    assert nvrtc.kernel_image("float32", "sum", None, 16, 8, 0) != first
    assert nvrtc.kernel_image("float32", "sum", None, 64, 9, 0) != first
    assert nvrtc.kernel_image("float32", None, None, 16, 9, 0) != first
    assert len(compiler) == 4


def test_a_record_that_is_not_an_image_is_ignored(compiler):
    nvrtc.kernel_image("float32", "sum", None, 16, 9, 0)
    (record,) = (user_cache() / "kernels").glob("*.json")
    record.write_text('{"image": "QUJD"}')
    with pytest.warns(UserWarning, match="expected a compiled kernel; the kernel is compiled again"):
        assert nvrtc.kernel_image("float32", "sum", None, 16, 9, 0) == ELF + b"2"


def test_a_source_that_nvrtc_refuses_is_a_usage_error(compiler):
    with pytest.raises(
        UsageError, match=r"NVRTC 13\.0 cannot compile interpreter\.cu for sm_90: error: no such type"
    ):
        nvrtc.image_of("interpreter.cu", ("WRONG=1",), 9, 0)


def test_a_missing_compiler_is_named_with_the_command_that_installs_it(monkeypatch):
    nvrtc.nvrtc_version.cache_clear()
    monkeypatch.setitem(sys.modules, "cuda", None)
    with pytest.raises(UsageError, match=r"expected the packages cuda-core and nvidia-cuda-nvrtc: pip install"):
        nvrtc.kernel_image("float32", "sum", None, 16, 9, 0)
    nvrtc.nvrtc_version.cache_clear()


def test_a_source_contains_each_file_that_it_includes_once():
    code = nvrtc.source_of("interpreter.cu")
    assert code.count('#line 1 "launch.cuh"') == 1
    assert '#include "' not in code


def test_the_kernel_names_no_algorithm():
    # Words that are also plain English are left out.
    names = {algorithm.name for algorithm in BUILT_IN} - {"direct", "tree"}
    assert {"ring", "naive"} <= names
    for path in nvrtc.KERNEL.glob("*.cu*"):
        words = set(re.findall(r"\w+", path.read_text(encoding="utf-8").lower()))
        assert not names & words, path.name


def register_use(architecture: str, dtype: str, reduction: str | None, folder) -> dict[str, tuple[int, int]]:
    """Return the bytes of spill stores and loads of each function of the kernel."""
    command = [
        NVCC, "-std=c++20", f"-arch={architecture}", "--fmad=false", "-Xptxas", "-v", "-x", "cu", "-cubin",
        *(f"-D{macro}" for macro in nvrtc.kernel_macros(dtype, reduction, None, 16)),
        str(nvrtc.KERNEL / "interpreter.cu"), "-o", str(folder / "kernel.cubin"),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(re.search(r"Used (\d+) registers", done.stderr)[1]) <= 64
    pattern = (
        r"Function properties for (\S+)\s+\d+ bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads"
    )
    return {name: (int(stores), int(loads)) for name, stores, loads in re.findall(pattern, done.stderr)}


@pytest.mark.skipif(NVCC is None, reason="nvcc is not installed")
@pytest.mark.parametrize(
    ("architecture", "dtype", "reduction"),
    [
        ("sm_90", "float32", "sum"),
        ("sm_80", "float32", "sum"),
        ("sm_90", "bfloat16", "avg"),
        ("sm_90", "uint8", None),
    ],
)
def test_the_loops_of_the_kernel_spill_no_register(architecture, dtype, reduction, tmp_path):
    spills = register_use(architecture, dtype, reduction, tmp_path)
    loops = {name: found for name, found in spills.items() if "sweep" in name}
    assert loops
    assert set(loops.values()) == {(0, 0)}
    # The interpreter around them may keep a few words in local memory: it touches them once per move.
    assert spills["run_program"][0] <= 64
