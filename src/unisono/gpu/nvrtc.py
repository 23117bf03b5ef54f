"""Compiles kernels for a GPU with NVRTC, through cuda.core, which is imported only here and only when needed.

An image (a cubin) is stored in the cache directory of the user, so each kernel is compiled once per machine. Its
record is named by everything that decides its bytes: source, options, architecture, and version of NVRTC.
"""

from __future__ import annotations

import base64
import hashlib
import re
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from unisono.cache_files import Unbelievable, read_record, user_cache, warn_ignored, write_record
from unisono.errors import UsageError
from unisono.message import Template

KERNEL = Path(__file__).parent / "kernel"
STANDARD = "c++20"
_INCLUDE = re.compile(r'^#include "([\w.]+)"$')

NO_COMPILER = Template(
    "gpu.nvrtc_no_compiler",
    "cannot compile kernels for the GPU: {reason}; expected the packages cuda-core and nvidia-cuda-nvrtc: {command}",
    "无法为 GPU 编译内核：{reason}；需要软件包 cuda-core 和 nvidia-cuda-nvrtc：{command}",
)
NOT_COMPILED = Template(
    "gpu.nvrtc_not_compiled",
    "NVRTC {version} cannot compile {source} for {architecture}: {reason}",
    "NVRTC {version} 无法为 {architecture} 编译 {source}：{reason}",
)
NOT_AN_IMAGE = Template("gpu.nvrtc_not_an_image", "expected a compiled kernel", "应为编译好的内核")
HINT = Template("gpu.nvrtc_hint", "the kernel is compiled again", "将重新编译内核")
INSTALL = 'pip install "cuda-core[cu13]"'


def kernel_key(dtype: str, reduction: str | None, wire: str | None, most: int) -> str:
    """Return the name of a variant of the interpreter kernel."""
    return f"{dtype}.{reduction or 'none'}.{wire or 'none'}.{most}"


def kernel_macros(dtype: str, reduction: str | None, wire: str | None, most: int) -> tuple[str, ...]:
    """Return the macros that make this variant of the interpreter kernel."""
    return (
        f"UNISONO_DTYPE=dtype_{dtype}",
        f"UNISONO_REDUCTION=reduction_{reduction or 'none'}",
        f"UNISONO_WIRE=wire_{wire or 'none'}",
        f"UNISONO_MOST={most}",
    )


def kernel_image(dtype: str, reduction: str | None, wire: str | None, most: int, major: int, minor: int) -> bytes:
    """Return the interpreter kernel for a type, reduction and wire format, compiled for an architecture.

    ``most`` is the largest number of ranks, 16 or 64.
    """
    return image_of("interpreter.cu", kernel_macros(dtype, reduction, wire, most), major, minor)


def image_of(source: str, macros: tuple[str, ...], major: int, minor: int) -> bytes:
    """Return ``kernel/<source>`` compiled with macros, each written NAME=VALUE, for an architecture, as a cubin.

    Raise UsageError if cuda.core or NVRTC is missing, or if NVRTC refuses the source.
    """
    code = source_of(source)
    architecture = f"sm_{major}{minor}"
    version = nvrtc_version()
    key = "\0".join((code, *macros, STANDARD, architecture, version))
    path = user_cache() / "kernels" / f"{hashlib.sha256(key.encode()).hexdigest()}.json"
    image = _stored(path)
    if image is None:
        image = _compiled(source, code, macros, architecture, version)
        with suppress(OSError, Unbelievable):  # without the record it is compiled again
            write_record(path, {"image": base64.b64encode(image).decode()})
    return image


def _stored(path: Path) -> bytes | None:
    try:
        record = read_record(path)
        if record is None:
            return None
        text = record.get("image") if isinstance(record, dict) else None
        try:
            image = base64.b64decode(text, validate=True) if isinstance(text, str) else b""
        except ValueError:
            image = b""
        if not image.startswith(b"\x7fELF"):
            raise Unbelievable(NOT_AN_IMAGE())
    except Unbelievable as error:
        warn_ignored(path, str(error), HINT())
        return None
    return image


@cache
def source_of(source: str) -> str:
    """Return a source of the kernel folder with all that it includes, each file once."""
    lines: list[str] = []
    _append(source, lines, set())
    return "\n".join(lines)


def _append(name: str, lines: list[str], included: set[str]) -> None:
    if name in included:
        return
    included.add(name)
    lines.append(f'#line 1 "{name}"')
    for number, line in enumerate((KERNEL / name).read_text(encoding="utf-8").splitlines(), 1):
        found = _INCLUDE.match(line)
        if found:
            _append(found[1], lines, included)
            lines.append(f'#line {number + 1} "{name}"')
        else:
            lines.append("" if line == "#pragma once" else line)


@cache
def nvrtc_version() -> str:
    """Return the version of NVRTC; raise UsageError if there is none."""
    try:
        import_module("cuda.core")
        _, major, minor = import_module("cuda.bindings.nvrtc").nvrtcVersion()
    except Exception as error:  # a missing package, or a library that cannot be loaded
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise UsageError(NO_COMPILER(reason=reason, command=INSTALL)) from error
    return f"{major}.{minor}"


def _compiled(source: str, code: str, macros: tuple[str, ...], architecture: str, version: str) -> bytes:
    core: Any = import_module("cuda.core")
    # Without fma=False products and sums are contracted, and the bits differ from those of the CPU.
    options = core.ProgramOptions(
        name=source,
        arch=architecture,
        std=STANDARD,
        fma=False,
        define_macro=[tuple(macro.split("=", 1)) for macro in macros],
    )
    try:
        program = core.Program(code, "c++", options)
        try:
            return bytes(program.compile("cubin").code)
        finally:
            program.close()
    except Exception as error:
        raise UsageError(
            NOT_COMPILED(version=version, source=source, architecture=architecture, reason=str(error).strip())
        ) from error
