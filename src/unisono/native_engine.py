"""The native engine, as far as this installation has it, and what replaces the parts of the API that need it.

The engine is the compiled module ``unisono._engine``, for Linux. The wheel without it, for all other platforms,
offers everything that does not execute on real ranks. ``from unisono import _engine`` calls ``load``
(``unisono/__init__.py``), so every module that needs the engine raises EngineMissing when it is imported.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any, NoReturn

from unisono.errors import EngineMissing
from unisono.message import Template

MODULE = "unisono._engine"
PLATFORMS = {"darwin": "macOS", "win32": "Windows"}

NOT_INSTALLED = Template(
    "native_engine.not_installed",
    "{what} needs the native engine, which this installation lacks: wheels for Linux on x86-64 with glibc 2.34 or "
    "newer have it, and with a C++20 compiler `pip install .` in the source tree builds it",
    "{what}需要原生引擎，而当前安装中没有它：适用于 x86-64 Linux（glibc 2.34 或更新）的 wheel 带有引擎；"
    "有 C++20 编译器时，可在源码目录中用 `pip install .` 构建",
)
NOT_ON_PLATFORM = Template(
    "native_engine.not_on_platform",
    "{what} needs the native engine, which exists for Linux only: on {platform}, algorithms are proved, played, "
    "drawn and simulated, but not executed on real ranks",
    "{what}需要原生引擎，而引擎只支持 Linux：在 {platform} 上可以证明、逐步运行、绘制和模拟算法，"
    "但不能在真实的 rank 上执行",
)
EXECUTION = Template("native_engine.execution", "executing collectives", "执行集合通信")
CALL = Template("native_engine.call", "{name}", "{name} ")
BACKEND = Template(
    "native_engine.backend", 'the backend "unisono" of torch.distributed', "torch.distributed 的后端 unisono "
)


def is_installed() -> bool:
    """Return whether there is an engine, without loading it."""
    return find_spec(MODULE) is not None


def load(what: str | None = None) -> ModuleType:
    """Return the engine; raise EngineMissing if there is none, with ``what``, a message, as the subject."""
    try:
        return import_module(MODULE)
    except ModuleNotFoundError as error:
        if error.name != MODULE:
            raise
        raise missing(what) from None


def missing(what: str | None = None) -> EngineMissing:
    """Return the error about a missing engine, which ``what`` needs."""
    subject = EXECUTION() if what is None else what
    if sys.platform == "linux":
        return EngineMissing(NOT_INSTALLED(what=subject))
    return EngineMissing(NOT_ON_PLATFORM(what=subject, platform=PLATFORMS.get(sys.platform, sys.platform)))


# The names of the API that need the engine exist without it: annotations name the classes, and a file with an
# algorithm and a program that calls it can be drawn anywhere.
def connect(*_: Any, **__: Any) -> NoReturn:
    """Raise EngineMissing; with the engine, join the other ranks of this job."""
    raise missing(CALL(name="connect()"))


def spawn(*_: Any, **__: Any) -> NoReturn:
    """Raise EngineMissing; with the engine, start ranks that call a function."""
    raise missing(CALL(name="spawn()"))


def join(*_: Any, **__: Any) -> NoReturn:
    """Raise EngineMissing; with the engine, become a rank of a job that is running."""
    raise missing(CALL(name="join()"))


class _Absent:
    def __init__(self, *_: Any, **__: Any) -> None:
        raise missing(CALL(name=type(self).__name__))


class Communicator(_Absent):
    """Stands for the communicator in annotations."""


class Work(_Absent):
    """Stands for an asynchronous call in annotations."""


class GpuWork(_Absent):
    """Stands for an asynchronous call on CUDA tensors in annotations."""


STAND_INS = ("Communicator", "GpuWork", "Work", "connect", "join", "spawn")
