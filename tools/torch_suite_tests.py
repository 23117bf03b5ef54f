"""PyTorch's own tests of process groups, made to run on any backend.

They come with torch (``torch.testing._internal.distributed.distributed_test``) and decide by the name of the backend
what to leave out: a name that they do not know is given hardly anything. So they are loaded under the name of Gloo,
which is what we compare with; the backend that they start is the one that was asked for.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import unittest
from collections.abc import Callable
from typing import Any

from unisono.launch.unix_process_group import die_with_parent

RANKS = 4
MORE_RANKS = 8  # for the tests that want to be left out with fewer
TOO_FEW = "Skipped due to small world size."  # torch's words
PLAYED = "gloo"  # the name under which the tests are loaded

# These ask in the middle of the test whether the backend is Gloo, and do nothing useful if it is not.
ASK_FOR_GLOO = "accumulate_gradients"

# What torch's function for this says to every backend but Gloo. The group's own method can be tested all the same.
REFUSAL = "monitored_barrier is only implemented for GLOO backend"
REFUSED = (
    "`torch.distributed.monitored_barrier` refuses every backend but Gloo by its name. With that check taken out the "
    "test passes: the group's own method, `group.monitored_barrier()`, does what the test expects."
)

# What unittest says of an error of the expected class with another text. The test is run again, and the texts are not
# compared: if it passes, the classes of all errors are the expected ones.
OTHER_WORDS = '" does not match "'
WORDS_LEFT_OUT = "also when texts are not compared: "

# torch runs all-to-all of CPU tensors on MPI only. Others can do it as well: it is run on all of them.
MPI_ONLY = "Only MPI supports"


def load(backend: str, limit_s: float) -> type:
    """Import the tests (seconds) and return the test case: its processes are forked and start ``backend``."""
    os.environ["BACKEND"], os.environ["WORLD_SIZE"] = PLAYED, str(RANKS)
    os.environ["INIT_METHOD"] = "file://"  # the tests make the file
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # four ranks share what cores there are
    common = importlib.import_module("torch.testing._internal.common_distributed")
    tests: Any = importlib.import_module("torch.testing._internal.distributed.distributed_test")
    os.environ["BACKEND"] = tests.BACKEND = backend
    if backend == "unisono":
        importlib.import_module("unisono.torch_backend.process_group")  # once, rather than in every rank
    common.TIMEOUT_DEFAULT = limit_s  # then torch's runner shows where each rank was, and ends them
    common.TIMEOUT_OVERRIDE = {}

    if backend not in tests.PROFILING_SUPPORTED_BACKENDS:
        _compare_profiles(tests, backend)

    class Suite(tests.TestDistBackend, tests.DistributedTest._DistTestBase):
        def setUp(self) -> None:
            super().setUp()
            tests.INIT_METHOD = os.environ["INIT_METHOD"]
            # A fork has torch already: a second for a test, and not five.
            self._start_processes(multiprocessing.get_context("fork").Process)

        @classmethod
        def _run(cls, *args: Any, **kwargs: Any) -> None:
            die_with_parent(multiprocessing.parent_process().pid)
            super()._run(*args, **kwargs)

        def run_test(self, test_name: str, parent_pipe: Any) -> None:
            if ASK_FOR_GLOO in test_name:
                tests.BACKEND = PLAYED
            super().run_test(test_name, parent_pipe)

        def _check_return_codes(self, test: Any, elapsed_time: float) -> None:
            super()._check_return_codes(test, elapsed_time)
            # torch looks at rank 0 only; here nobody may crash.
            codes = [process.exitcode for process in self.processes]
            if test not in self.skip_return_code_checks and any(code < 0 for code in codes):
                raise RuntimeError(f"a rank died of a signal; exit codes of ranks 0 to {len(codes) - 1}: {codes}")

    for name in dir(Suite):
        test = getattr(Suite, name)
        if name.startswith("test_") and MPI_ONLY in getattr(test, "__unittest_skip_why__", ""):
            test.__unittest_skip__ = False
    return Suite


def _compare_profiles(tests: Any, backend: str) -> None:
    """Have the tests look for the events of a backend that is not on their lists, as they do for those that are."""
    tests.PROFILING_SUPPORTED_BACKENDS.append(backend)
    tests.SEND_RECV_PROFILING_SUPPORTED_BACKENDS.append(backend)
    find = tests.get_profiling_event

    def found(*args: Any, **kwargs: Any) -> list[Any]:
        events = find(*args, **kwargs)
        for event in events:
            event.is_async = True  # only a process group in C++ can mark its events so: this is not compared
        return events

    tests.get_profiling_event = found


def run(suite: Callable[[str], unittest.TestCase], name: str) -> dict:
    """Run a test in this process and the ranks that it forks; return how it went."""
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
        return {"outcome": "failed", "why": "expected to fail, and did not"}
    return {"outcome": "passed"}
