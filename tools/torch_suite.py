"""Run PyTorch's own tests of process groups on a backend: `make torch-suite` compares Unisono with Gloo.

Each test runs in processes that are forked from this one (it has imported torch), in a separate session and
directory: at the end of the test, or of its time, its remaining processes are killed and its directory is removed.
"""

from __future__ import annotations

import argparse
import ctypes
import fnmatch
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
import unittest
from collections.abc import Callable, Sequence
from multiprocessing import connection
from pathlib import Path

import torch_suite_files
import torch_suite_hosts
import torch_suite_page
import torch_suite_tests
from test_hosts import what_is_missing
from unisono.launch import mps
from unisono.launch.mps import mps_variables
from unisono.launch.unix_process_group import die_with_parent

BACKENDS = ("unisono", "gloo")
GRACE_S = 15  # torch's runner needs some time to report where the ranks of a test hang
LOG_LINES = 60
RANK_SAYS_WHY = "and exception:"  # torch's words before the traceback of a rank
PR_SET_CHILD_SUBREAPER = 36

Suite = Callable[[str], unittest.TestCase]  # creates a test from its name; a class of tests is such a function


class Running:
    """A test that is running."""

    def __init__(self, suite: Suite, name: str, limit_s: float) -> None:
        self.name = name
        self.directory = Path(tempfile.mkdtemp(prefix="torch-suite-"))
        self.began = time.monotonic()
        self.deadline = self.began + limit_s
        parent = os.getpid()
        self.process = os.fork()
        if self.process == 0:
            _be_the_test(suite, name, self.directory, parent)
        self.over = os.pidfd_open(self.process)  # readable when the process has ended

    def end(self) -> dict:
        """Kill the remaining processes of the test and remove its directory; return its outcome."""
        os.close(self.over)
        _kill_session(self.process)
        try:
            outcome = json.loads((self.directory / "outcome.json").read_text())
        except (OSError, ValueError):
            slow = time.monotonic() >= self.deadline
            outcome = {"outcome": "failed", "why": "time limit" if slow else "the process of the test died"}
        if outcome["outcome"] == "failed" and RANK_SAYS_WHY not in outcome["why"]:
            log = (self.directory / "log").read_text(errors="replace")
            outcome["log"] = "\n".join(log.splitlines()[-LOG_LINES:])
        outcome["used"] = (self.directory / torch_suite_files.USED).exists()
        shutil.rmtree(self.directory, ignore_errors=True)
        return {**outcome, "seconds": round(time.monotonic() - self.began, 1)}


def _be_the_test(suite: Suite, name: str, directory: Path, parent: int) -> None:
    """Run a test, write its outcome into the directory, and exit."""
    try:
        os.setsid()
        die_with_parent(parent)
        log = os.open(directory / "log", os.O_WRONLY | os.O_CREAT)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.environ["TMPDIR"] = tempfile.tempdir = str(directory)
        outcome = torch_suite_tests.run(suite, name)
        (directory / "outcome.json").write_text(json.dumps(outcome))
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(0)


def _kill_session(leader: int) -> None:
    """Kill all processes of a test and wait for them. Orphans are children of this process (see main)."""
    while True:
        try:
            os.killpg(leader, signal.SIGKILL)
            os.waitpid(-leader, 0)
        except (ProcessLookupError, ChildProcessError):
            return


def run(suite: Suite, names: list[str], jobs: int, limit_s: float) -> dict[str, dict]:
    """Run the tests, ``jobs`` at a time; return the outcome of each."""
    waiting, running, found = list(reversed(names)), {}, {}
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                test = Running(suite, waiting.pop(), limit_s + GRACE_S)
                running[test.over] = test
            timeout = min(test.deadline for test in running.values()) - time.monotonic()
            over = set(connection.wait(list(running), max(0.0, timeout)))
            late = {key for key, test in running.items() if time.monotonic() >= test.deadline}
            for key in over | late:
                test = running.pop(key)
                found[test.name] = outcome = test.end()
                print(f"{len(found):4d}/{len(names)} {outcome['outcome']:7} {outcome['seconds']:6.1f} s  {test.name}")
                if outcome["outcome"] == "failed":
                    print(outcome["why"].rstrip(), outcome.get("log", ""), sep="\n")
                sys.stdout.flush()
    finally:
        for test in running.values():
            test.end()
    return {name: found[name] for name in names}


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatch(name, pattern) for pattern in patterns)


def _load(args: argparse.Namespace, place: torch_suite_hosts.Place) -> tuple[Suite, list[str]]:
    if args.gpu:
        import torch_suite_gpu  # it changes torch

        torch_suite_gpu.limit(args.timeout)
        names = unittest.TestLoader().getTestCaseNames(torch_suite_gpu.Suite)
        return torch_suite_gpu.Suite, [name for name in names if _matches(name, torch_suite_gpu.PATTERNS)]
    if args.tests is None:
        suite = torch_suite_tests.load(args.backend, args.timeout, place)
        return suite, list(unittest.TestLoader().getTestCaseNames(suite))
    files = args.files or torch_suite_files.FILES
    cases = torch_suite_files.load(args.tests.resolve(), files, args.backend, args.timeout, place)

    def make(name: str) -> unittest.TestCase:
        kind, test = cases[name]
        return kind(test)

    return make, list(cases)


def main() -> int:
    """Run tests, or write the page; the exit status is 1 if a test failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", choices=BACKENDS, default=BACKENDS[0])
    parser.add_argument(
        "--only", metavar="PATTERN", action="append", help="tests whose names match, such as *all_reduce*"
    )
    parser.add_argument("--tests", type=Path, metavar="FOLDER", help="run the files of PyTorch's test/distributed")
    parser.add_argument(
        "--files", metavar="PATTERN", action="append", help="with --tests: files, such as test_c10d_*.py"
    )
    parser.add_argument("--gpu", action="store_true", help="run the tests of NCCL, with all ranks on one GPU")
    parser.add_argument("--list", action="store_true", help="list the tests; run nothing")
    parser.add_argument("--jobs", type=int, default=1, help="tests at a time (each has four ranks)")
    parser.add_argument("--timeout", type=float, default=120, help="seconds for a test")
    parser.add_argument(
        "--hosts", type=int, default=1, metavar="N", help="place the ranks of each test on N test hosts (needs root)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the outcome of each test")
    parser.add_argument(
        "--page", action="store_true", help="write docs/torch_suite.md from the stored results; run nothing"
    )
    args = parser.parse_args()
    if args.page:
        return torch_suite_page.write()
    if args.hosts > 1 and (missing := what_is_missing()) is not None:
        parser.error(f"--hosts {args.hosts}: no test hosts: {missing}")
    with torch_suite_hosts.on_hosts(args.hosts) as place:
        return _run_selected(parser, args, place)


def _run_selected(parser: argparse.ArgumentParser, args: argparse.Namespace, place: torch_suite_hosts.Place) -> int:
    """Run the selected tests; the exit status is 1 if one of them failed."""
    # Orphans become children of this process, so that no process survives its test.
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    patterns = args.only or ["*"]
    suite, names = _load(args, place)
    names = [name for name in names if _matches(name, patterns)]
    if not names:
        parser.error(
            f"--only {' '.join(patterns)}: no test has such a name; expected a name such as test_all_reduce_sum"
        )
    if args.list:
        print("\n".join(names))
        return 0
    with mps_variables(wanted=args.gpu and mps.DRIVER.exists()) as variables:
        os.environ.update(variables)
        found = run(suite, names, args.jobs, args.timeout)
    if args.gpu:
        import torch_suite_gpu

        torch_suite_gpu.without_other_gpus(found)
    counts = torch_suite_page.counts(found)
    if args.tests is not None:
        counts[torch_suite_page.WORDED] = sum(test["outcome"] == torch_suite_page.WORDED for test in found.values())
    print(f"{args.backend}: " + ", ".join(f"{number} {outcome}" for outcome, number in counts.items()))
    if args.json is not None:
        import torch

        for outcome in found.values():
            outcome.pop("log", None)
            if "why" in outcome:
                outcome["why"] = torch_suite_page.last_words(outcome["why"])
        about = {"torch": torch.__version__} | ({"hosts": args.hosts} if args.hosts > 1 else {})
        text = json.dumps({**about, "tests": found}, indent=1) + "\n"
        args.json.write_text(text if args.tests is None else text.replace(str(args.tests.resolve()), "."))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
