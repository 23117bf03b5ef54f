"""Build the programs of engine/tests with CMake or, where it is missing, with the compiler alone."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from dump_program import cases_of, write_cases
from unisono.algorithms import BUILT_IN, find

ROOT = Path(__file__).parent.parent
PROGRAMS = {
    "latency": ["latency", "ranks"],
    "wakeups": ["wakeups", "ranks"],
    "by_hand": ["by_hand", "cases", "ranks"],
    "checksums": ["checksums"],
    "simulations": ["simulations"],
    "threads": [
        "threads",
        "scenarios_calls",
        "scenarios_endings",
        "scenarios_event_log",
        "scenarios_far",
        "scenarios_transfers",
        "scenarios_ucx",
        "cases",
        "fake_network",
        "hosts",
        "ranks",
    ],
}


class CannotBuild(Exception):
    """A build tool is missing, or the build failed."""


def compiler() -> str:
    """Return the C++ compiler."""
    for name in (os.environ.get("CXX"), "c++", "g++", "clang++"):
        if name and shutil.which(name):
            return name
    raise CannotBuild("no C++ compiler; install one, or name it in CXX")


def run(command: Sequence[str | Path]) -> None:
    """Run a command; raise CannotBuild with its output if it fails."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT)
    if done.returncode:
        raise CannotBuild(f"{' '.join(map(str, command))}\n{done.stdout}")


def build(folder: Path, flags: str = "", *options: str, cmake: str | None = None, cxx: str | None = None) -> None:
    """Build the programs in a folder, with the compiler `cxx`; only what has changed is built again."""
    folder.mkdir(parents=True, exist_ok=True)
    chosen = cmake or shutil.which("cmake")
    if chosen is None:
        build_without_cmake(folder, flags.split())
        return
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    run([
        chosen, "-S", ROOT, "-B", folder, *generator, "-DUNISONO_BUILD_TESTS=ON", *options,
        f"-DCMAKE_CXX_COMPILER={cxx or compiler()}", f"-DCMAKE_CXX_FLAGS={flags}",
        # This build type is not stripped, and here it has only the given flags.
        "-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=",
    ])  # fmt: skip
    run([chosen, "--build", folder, "--parallel", str(len(os.sched_getaffinity(0)))])


def built_library(builds: Path = ROOT / "build") -> Path | None:
    """Return the library of the installed engine, with which the programs can be linked, if it is up to date."""
    found = list(builds.glob("cp*/libunisono_engine.a"))  # scikit-build names the folder after the wheel
    sources = [path for folder in ("include", "src") for path in (ROOT / "engine" / folder).rglob("*.[ch]pp")]
    newest = max(path.stat().st_mtime for path in sources)
    return next((library for library in found if library.stat().st_mtime > newest), None)


def build_with(library: Path, folder: Path, flags: str) -> None:
    """Build the programs with an engine that is built already; each is compiled at once, as in a unity build."""
    folder.mkdir(parents=True, exist_ok=True)
    tests = ROOT / "engine" / "tests"
    newest = max(path.stat().st_mtime for path in [library, *tests.iterdir()])
    common = [compiler(), "-std=c++20", *flags.split(), f"-I{ROOT / 'engine' / 'include'}", f"-I{tests}"]

    def build_one(name: str) -> None:
        program, source = folder / name, folder / f"{name}.cpp"
        if program.exists() and program.stat().st_mtime > newest:
            return
        source.write_text("".join(f'#include "{tests / part}.cpp"\n' for part in PROGRAMS[name]))
        run([*common, "-o", program, source, library, "-pthread", "-ldl"])

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        list(pool.map(build_one, sorted(PROGRAMS, key=lambda name: -len(PROGRAMS[name]))))


def build_without_cmake(folder: Path, flags: Sequence[str]) -> None:
    """Build the programs with the compiler alone, with the baseline loops only."""
    sources = sorted((ROOT / "engine" / "src").rglob("*.cpp"))
    newest = max(path.stat().st_mtime for path in (ROOT / "engine").rglob("*.[ch]pp"))
    common = [compiler(), "-std=c++20", "-O2", "-pthread", f"-I{ROOT / 'engine' / 'include'}", *flags]
    library = folder / "engine.o"
    if not library.exists() or library.stat().st_mtime < newest:
        run([*common, "-DUNISONO_VARIANT=baseline", "-r", "-nostdlib", "-o", library, *sources])
    for name, parts in PROGRAMS.items():
        program = folder / name
        if not program.exists() or program.stat().st_mtime < newest:
            run([*common, "-o", program, *(ROOT / "engine" / "tests" / f"{part}.cpp" for part in parts), library])


def write_inputs(folder: Path) -> tuple[Path, Path]:
    """Write the cases for `threads` (every algorithm, a few ranks, one pass and several) and for `by_hand`."""
    every, around = folder / "every_algorithm.cases", folder / "around.cases"
    cases = cases_of(list(BUILT_IN), [2, 3, 5], [7, 3000], staging_bytes=16 * 1024)
    with_data = [algorithm for algorithm in BUILT_IN if algorithm.collective.carries_data]
    for codec in ("bf16", "fp8_e4m3"):
        cases += cases_of(with_data, [3, 5], [7, 3000], staging_bytes=16 * 1024, codec=codec)
    write_cases(every, cases)
    counts = [2, 256, 16 * 1024, 256 * 1024, 4 * 1024 * 1024]
    write_cases(around, cases_of([find("all_reduce/ring")], [2, 4], counts), with_data=False)
    return every, around
