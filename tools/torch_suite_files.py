"""Load files of PyTorch's ``test/distributed`` for any backend, from a folder that the user gives.

PyTorch's sources contain them; the wheel does not. Their tests name Gloo almost everywhere. The files are loaded
unchanged, and wherever torch would create a Gloo group, a group of the requested backend is created.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import multiprocessing
import os
import sys
import tempfile
import traceback
import unittest
from collections.abc import Iterable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

from torch_suite_hosts import Place, stay
from unisono.launch.unix_process_group import die_with_parent

FILES = (
    "test_backends.py", "test_c10d_common.py", "test_c10d_functional_native.py", "test_c10d_gloo.py",
    "test_c10d_logger.py", "test_c10d_object_collectives.py", "test_c10d_pypg.py", "test_c10d_spawn_gloo.py",
    "test_collective_utils.py",
)  # fmt: skip
PLAYED = "gloo"
USED = "used"  # a test that has created a group of the backend leaves this file in its folder

Case = tuple[type[unittest.TestCase], str]  # a test case, and the name of a test in it


def load(folder: Path, patterns: Iterable[str], backend: str, limit_s: float, place: Place = stay) -> dict[str, Case]:
    """Import the test files that match; return their tests by name, ``file::Class.test``.

    ``place`` moves a rank to its host.
    """
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # the ranks of a test share a few cores
    common = importlib.import_module("torch.testing._internal.common_distributed")
    common.TIMEOUT_DEFAULT, common.TIMEOUT_OVERRIDE = limit_s, {}
    _fork_ranks(common.MultiProcessTestCase, place)
    _replace_gloo(backend)
    sys.path.insert(0, str(folder))
    files = sorted({path for pattern in patterns for path in folder.glob(pattern)})
    return {name: case for path in files for name, case in _tests_of(folder, path)}


def _tests_of(folder: Path, path: Path) -> Iterator[tuple[str, Case]]:
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit):
        traceback.print_exc()  # a file may need packages that are not installed
        return
    for kind in vars(module).values():
        if inspect.isclass(kind) and issubclass(kind, unittest.TestCase) and kind.__module__ == path.stem:
            for test in unittest.TestLoader().getTestCaseNames(kind):
                yield f"{path.relative_to(folder)}::{kind.__name__}.{test}", (kind, test)


def _fork_ranks(tests: Any, place: Place) -> None:
    """Fork the ranks of a test from a process that has imported torch, and let them end with it."""
    run = tests._run.__func__

    def run_and_end(cls: Any, rank: int, test: str, *args: Any, **kwargs: Any) -> None:
        die_with_parent(multiprocessing.parent_process().pid)
        place(rank, int(cls(test).world_size))
        run(cls, rank, test, *args, **kwargs)

    tests._run = classmethod(run_and_end)
    fork = multiprocessing.get_context("fork")
    tests._spawn_processes = lambda self: self._start_processes(fork.Process)
    importlib.import_module("torch.multiprocessing").get_context = lambda method=None: fork


def _replace_gloo(backend: str) -> None:
    """Let torch create a group of the backend where a test requests Gloo, and leave a note of it."""
    dist: Any = importlib.import_module("torch.distributed")
    torchs: Any = importlib.import_module("torch.distributed.distributed_c10d")
    make, gloo = torchs._new_process_group_helper, dist.ProcessGroupGloo

    def make_played(size: int, rank: int, ranks: Any, name: Any, *args: Any, **kwargs: Any) -> Any:
        if PLAYED in str(name) or str(name) == "undefined":
            _note()
            name = torchs.Backend(str(name).replace(PLAYED, backend))
        return make(size, rank, ranks, name, *args, **kwargs)

    def make_directly(store: Any, rank: int, size: int, options: Any = None, timeout: timedelta | None = None) -> Any:
        _note()
        if backend == PLAYED:
            return gloo(store, rank, size, options) if options is not None else gloo(store, rank, size, timeout)
        options_of_group = torchs._DistributedBackendOptions()
        options_of_group.store, options_of_group.group_rank, options_of_group.group_size = store, rank, size
        options_of_group.timeout = timeout if options is None else options._timeout
        group = torchs.Backend._plugins[backend.upper()].creator_fn(options_of_group, None)
        group._set_group_name(getattr(options, "group_name", ""))
        return group

    for name in dir(gloo):
        if not name.startswith("__"):
            setattr(make_directly, name, getattr(gloo, name))
    dist.ProcessGroupGloo = make_directly  # torch itself uses the class under another name
    torchs._new_process_group_helper = make_played
    torchs.Backend.default_device_backend_map["cpu"] = backend
    if backend != PLAYED:
        importlib.import_module(f"{backend}.torch_backend.process_group")  # once, rather than in every rank


def _note() -> None:
    Path(tempfile.gettempdir(), USED).touch()
