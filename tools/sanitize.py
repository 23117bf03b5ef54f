"""Run the engine under the compiler's sanitizers: `make sanitize`.

The address and undefined-behaviour sanitizers check the programs of engine/tests, and the Python extension with its
tests. The thread sanitizer checks the programs; the ranks of `threads` are threads of one process, so it sees both
ends of every channel. Everything is built in build/asan and build/tsan; the installed engine is not changed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Sequence
from pathlib import Path

import nanobind

from native import PROGRAMS, ROOT, build, compiler, write_inputs

COMMON = "-O1 -g1 -fno-omit-frame-pointer"
ADDRESSES = f"{COMMON} -fsanitize=address,undefined -fno-sanitize-recover=all"
RACES = f"{COMMON} -fsanitize=thread"
FOR_PROGRAMS = {"UBSAN_OPTIONS": "print_stacktrace=1", "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1"}


def check(command: Sequence[str | Path], environment: dict[str, str]) -> None:
    """Run a command, show its output, and exit if it fails."""
    print("$", *(str(word).removeprefix(f"{ROOT}/") for word in command), flush=True)
    done = subprocess.run(command, env={**os.environ, **environment}, cwd=ROOT)
    if done.returncode:
        sys.exit(f"make sanitize: the command above ended with {done.returncode}")


def cmake() -> str:
    """Return the CMake of this environment, or that of the system."""
    own = Path(sys.executable).parent / "cmake"
    return str(own) if own.exists() else shutil.which("cmake") or sys.exit("make sanitize: there is no cmake")


def without_random_addresses() -> list[str]:
    """Return the prefix of a command that disables address randomisation, which the thread sanitizer may need."""
    words = ["setarch", os.uname().machine, "-R"]
    if shutil.which(words[0]) and subprocess.run([*words, "true"], capture_output=True).returncode == 0:
        return words
    return []


def run_programs(folder: Path, before: Sequence[str]) -> None:
    """Run all programs of engine/tests for a short time."""
    every, around = write_inputs(folder)
    arguments = {
        "latency": ["2", "20000"],
        "wakeups": ["2000"],
        "by_hand": [str(around), "0.02"],
        "checksums": [],
        "simulations": ["3000"],
        "threads": [str(every), "5"],
    }
    for name in PROGRAMS:
        check([*before, folder / name, *arguments[name]], FOR_PROGRAMS)


def library(name: str) -> str:
    """Return the path of a library of the compiler."""
    found = subprocess.run([compiler(), f"-print-file-name={name}"], capture_output=True, text=True, check=True)
    return found.stdout.strip()


def make_environment(folder: Path) -> Path:
    """Create an environment whose unisono uses the extension built in ``folder``; return its interpreter."""
    tree, home = folder / "tree", folder / "venv"
    shutil.rmtree(tree, ignore_errors=True)
    shutil.copytree(ROOT / "src", tree, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    (extension,) = folder.glob("_engine.*.so")
    shutil.copy(extension, tree / "unisono")
    venv.create(home, clear=True, symlinks=True)
    # The packages of this environment, but not its .pth files, which lead to the installed unisono.
    paths = sysconfig.get_paths(vars={"base": str(home), "platbase": str(home)})
    (Path(paths["purelib"]) / "sanitized.pth").write_text(f"{tree}\n{sysconfig.get_paths()['purelib']}\n")
    return home / "bin" / "python"


def run_python(folder: Path) -> None:
    """Run the tests of the engine, the communicator and the event loop of the simulator with the extension."""
    python = make_environment(folder)
    reports = folder / "reports"  # of any process, even if its exit code is never read
    shutil.rmtree(reports, ignore_errors=True)
    reports.mkdir()
    preload = {
        # The sanitizer must be the first library of the process, and needs the C++ library when it starts.
        "LD_PRELOAD": f"{library('libasan.so')} {library('libstdc++.so.6')}",
        # The interpreter does not free all of its memory at exit, which is not a leak of ours.
        "ASAN_OPTIONS": f"detect_leaks=0:halt_on_error=1:log_path={reports}/address",
        "UBSAN_OPTIONS": f"print_stacktrace=1:halt_on_error=1:log_path={reports}/undefined",
    }
    where = "import unisono._engine as e; assert 'asan' in e.__file__, e.__file__; print(e.__file__)"
    check([python, "-c", where], preload)
    tests = [
        "tests/engine",
        "tests/bootstrap",
        "tests/launch",
        "tests/comm",
        "tests/compiler",
        "tests/simulator/test_random_programs.py",
        "--ignore",
        "tests/engine/test_native.py",
    ]
    try:
        check([python, "-m", "pytest", "-p", "no:cacheprovider", *tests], preload)
    finally:
        found = sorted(reports.iterdir())
        for report in found:
            print(report.read_text()[:4000])
    if found:
        sys.exit(f"make sanitize: {len(found)} reports, see above and {reports}")


def main() -> None:
    """Build and run everything; exit with a message at the first finding."""
    asan, tsan = ROOT / "build" / "asan", ROOT / "build" / "tsan"
    print("building with the address and undefined-behaviour sanitizers; this takes minutes", flush=True)
    options = [f"-Dnanobind_DIR={nanobind.cmake_dir()}", f"-DPython_EXECUTABLE={sys.executable}"]
    build(asan, ADDRESSES, *options, cmake=cmake())
    run_programs(asan, [])
    run_python(asan)
    print("building with the thread sanitizer", flush=True)
    build(tsan, RACES, "-DUNISONO_BUILD_EXTENSION=OFF", cmake=cmake())
    run_programs(tsan, without_random_addresses())
    print("no findings")


if __name__ == "__main__":
    main()
