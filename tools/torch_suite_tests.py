"""PyTorch's own tests of process groups, made to run on any backend.

They ship with torch (``torch.testing._internal.distributed.distributed_test``) and use the name of the backend to
decide what to skip: on an unknown backend they skip nearly everything. So they are loaded under the name of Gloo, the
backend that we compare with, and then start the requested backend.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import unittest
from collections.abc import Callable
from typing import Any

from torch_suite_hosts import Place, stay
from unisono.launch.unix_process_group import die_with_parent

RANKS = 4
MORE_RANKS = 8  # for the tests that are skipped with fewer
TOO_FEW = "Skipped due to small world size."  # the message of torch
PLAYED = "gloo"  # the name under which the tests are loaded

# These check in the middle of the test whether the backend is Gloo, and do nothing useful otherwise.
ASK_FOR_GLOO = "accumulate_gradients"

# The error of torch's function on every backend except Gloo. The method of the group can still be tested.
REFUSAL = "monitored_barrier is only implemented for GLOO backend"
REFUSED = (
    "`torch.distributed.monitored_barrier` refuses every backend but Gloo by its name. With that check taken out the "
    "test passes: the group's own method, `group.monitored_barrier()`, does what the test expects."
)

# The text of unittest for an error of the expected class with another message. The test is run again without
# comparing messages: if it passes, the classes of all errors are the expected ones.
OTHER_WORDS = '" does not match "'
WORDS_LEFT_OUT = "also when texts are not compared: "

# torch runs all-to-all of CPU tensors on MPI only. Other backends support it too, so it is run on all of them.
MPI_ONLY = "Only MPI supports"


def load(backend: str, limit_s: float, place: Place = stay) -> type:
    """Import the tests (seconds) and return the test case: its processes are forked and start ``backend``.

    ``place`` moves a rank to its host.
    """
    os.environ["BACKEND"], os.environ["WORLD_SIZE"] = PLAYED, str(RANKS)
    os.environ["INIT_METHOD"] = "file://"  # the tests create the file
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # four ranks share the cores
    common = importlib.import_module("torch.testing._internal.common_distributed")
    tests: Any = importlib.import_module("torch.testing._internal.distributed.distributed_test")
    os.environ["BACKEND"] = tests.BACKEND = backend
    if backend == "unisono":
        importlib.import_module("unisono.torch_backend.process_group")  # once, rather than in every rank
    common.TIMEOUT_DEFAULT = limit_s  # torch's runner then shows where each rank is, and ends them
    common.TIMEOUT_OVERRIDE = {}

    if backend not in tests.PROFILING_SUPPORTED_BACKENDS:
        _compare_profiles(tests, backend)

    class Suite(tests.TestDistBackend, tests.DistributedTest._DistTestBase):
        def setUp(self) -> None:
            super().setUp()
            tests.INIT_METHOD = os.environ["INIT_METHOD"]
            # A fork has already imported torch: one second per test instead of five.
            self._start_processes(multiprocessing.get_context("fork").Process)

        @classmethod
        def _run(cls, rank: int, *args: Any, **kwargs: Any) -> None:
            die_with_parent(multiprocessing.parent_process().pid)
            place(rank, int(os.environ["WORLD_SIZE"]))
            super()._run(rank, *args, **kwargs)

        def run_test(self, test_name: str, parent_pipe: Any) -> None:
            if ASK_FOR_GLOO in test_name:
                tests.BACKEND = PLAYED
            super().run_test(test_name, parent_pipe)

        def _check_return_codes(self, test: Any, elapsed_time: float) -> None:
            super()._check_return_codes(test, elapsed_time)
            # torch checks rank 0 only; here no rank may crash.
            codes = [process.exitcode for process in self.processes]
            if test not in self.skip_return_code_checks and any(code < 0 for code in codes):
                raise RuntimeError(
                    f"a rank was killed by a signal; exit codes of ranks 0 to {len(codes) - 1}: {codes}"
                )

    for name in dir(Suite):
        test = getattr(Suite, name)
        if name.startswith("test_") and MPI_ONLY in getattr(test, "__unittest_skip_why__", ""):
            test.__unittest_skip__ = False
    return Suite


def _compare_profiles(tests: Any, backend: str) -> None:
    """Let the tests check the profiler events of a backend that is not on their lists."""
    tests.PROFILING_SUPPORTED_BACKENDS.append(backend)
    tests.SEND_RECV_PROFILING_SUPPORTED_BACKENDS.append(backend)
    find = tests.get_profiling_event

    def found(*args: Any, **kwargs: Any) -> list[Any]:
        events = find(*args, **kwargs)
        for event in events:
            event.is_async = True  # only a process group in C++ can set this mark: it is not compared
        return events

    tests.get_profiling_event = found


def run(suite: Callable[[str], unittest.TestCase], name: str) -> dict:
    """Run a test in this process and the ranks that it forks; return its outcome."""
    outcome = _run_once(suite, name)
    if outcome.get("why") == TOO_FEW:
        os.environ["WORLD_SIZE"] = str(MORE_RANKS)
        outcome = _run_once(suite, name)
    if REFUSAL in outcome.get("why", ""):
        import torch.distributed.distributed_c10d as torchs

        torchs.get_backend = lambda group=None: PLAYED
        outcome = _run_once(suite, name)
        return {"outcome": "refused", "why": REFUSED} if outcome["outcome"] == "passed" else outcome
    if outcome["outcome"] == "failed" and OTHER_WORDS in outcome["why"]:
        unittest.TestCase.assertRaisesRegex = _assert_raises
        again = _run_once(suite, name)
        if again["outcome"] == "passed":
            return {"outcome": "worded", "why": outcome["why"]}
        return {**again, "why": f"{WORDS_LEFT_OUT}{again.get('why', '')}"}
    return outcome


def _assert_raises(self: Any, kind: Any, words: Any, *args: Any, **kwargs: Any) -> Any:
    return self.assertRaises(kind, *args, **kwargs)  # noqa: PT027 (torch's tests are for unittest)


def _run_once(suite: Callable[[str], unittest.TestCase], name: str) -> dict:
    result = unittest.TestResult()
    suite(name).run(result)
    if result.skipped:
        return {"outcome": "skipped", "why": result.skipped[0][1]}
    problems = result.failures + result.errors
    if problems:
        return {"outcome": "failed", "why": problems[0][1]}
    if result.unexpectedSuccesses:
        return {"outcome": "failed", "why": "expected to fail, but passed"}
    return {"outcome": "passed"}
