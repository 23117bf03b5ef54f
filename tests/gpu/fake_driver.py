"""A CUDA driver without a GPU: whole jobs run on it in real processes (``fake_driver/*.cpp``).

Device memory is shared memory of the host, a stream is a thread, a kernel is its build for the host. The library has
the name of CUDA's driver, so a process that has loaded it gets it from ``dlopen("libcuda.so.1")``.
"""

from __future__ import annotations

import ctypes
import fcntl
import functools
import hashlib
import itertools
import os
from pathlib import Path

import pytest

from native import ROOT, CannotBuild, compiler, run

SOURCES = Path(__file__).parent / "fake_driver"
FLAGS = ("-std=c++20", "-O1", "-g1", "-Wall", "-Wextra", "-Werror", "-fPIC", "-fvisibility=hidden", "-pthread")


@functools.cache
def library() -> Path:
    """Return the path of the fake driver, built if that has not happened yet; skip the test without a compiler."""
    try:
        found = compiler()
    except CannotBuild as error:
        pytest.skip(f"SKIPPED, NOT TESTED: the GPU jobs, on the fake driver: {error}")
    parts = sorted(SOURCES.iterdir())
    digest = hashlib.sha256(b"".join(part.read_bytes() for part in parts) + repr(FLAGS).encode()).hexdigest()[:16]
    folder = ROOT / "build" / "fake_driver"
    made = folder / f"libfakecuda-{digest}.so"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:  # several processes may run tests at the same time
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            for old in folder.glob("libfakecuda-*.so"):
                old.unlink()
            unfinished = made.with_suffix(".part")
            sources = [part for part in parts if part.suffix == ".cpp"]
            run([found, *FLAGS, "-shared", "-Wl,-soname,libcuda.so.1", "-o", unfinished, *sources, "-ldl"])
            unfinished.rename(made)
    return made


class DriverError(Exception):
    """A function of the driver has returned an error."""


class FakeDriver:
    """The functions of the driver in this process: ``driver.cuMemFree_v2(address)`` raises DriverError."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL(str(library()), mode=ctypes.RTLD_GLOBAL)

    def __getattr__(self, name: str):
        function = getattr(self.library, name)
        if name.startswith("fake_live") or name == "fake_misuses":
            return function

        def call(*arguments):
            error = function(*(ctypes.c_uint64(each) if isinstance(each, int) else each for each in arguments))
            if error:
                text = ctypes.c_char_p()
                self.library.cuGetErrorName(error, ctypes.byref(text))
                raise DriverError(f"{name}: {(text.value or b'?').decode()}")

        setattr(self, name, call)
        return call

    def imports_from(self, process: int) -> list[int]:
        """Return the addresses of the memory of another process that is open in this one."""
        function = self.library.fake_import_from
        function.restype = ctypes.c_uint64
        return list(itertools.takewhile(bool, (function(process, number) for number in itertools.count())))

    def live(self) -> dict[str, int]:
        """Return the number of things that exist in this process, by kind."""
        kinds = ("allocations", "imports", "host_allocations", "streams", "events", "modules")
        return {kind: getattr(self, f"fake_live_{kind}")() for kind in kinds}


def start(settings: str = "", device: int = 0) -> FakeDriver:
    """Make this process one with a GPU; the settings are those of ``Settings`` in ``fake_driver/driver.hpp``.

    Call it in a process of a test only, never in that of the tests: the process would keep its GPU.
    """
    os.environ["FAKECUDA"] = settings
    driver = FakeDriver()
    driver.cuInit(0)
    context = ctypes.c_void_p()
    driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
    driver.cuCtxSetCurrent(context)
    return driver
