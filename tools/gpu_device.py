"""Run what needs a GPU on a machine that is borrowed for minutes: ``python3 tools/gpu_device.py STEP... --out DIR``.

The machine has torch, a compiler and no network; tools/gpu_carry.py has collected the rest. The engine is taken from
there, or built if it cannot be loaded. Each step is a command with a time limit; a step that is not over by then is
diagnosed (tools/gpu_watch.py) and ended, and the next one begins. ``A+B`` runs two steps at the same time: tests, but
never measurements. ``DIR/log.txt`` has all output, ``DIR/summary.json`` what became of each step, and the tools write
their results there as soon as they have them, so a run that is cut off has left what it had reached.
docs/gpu_runbook.md has the commands.

    python3 tools/gpu_device.py --list                       # the steps, with their commands and limits
    python3 tools/gpu_device.py --rehearse --out build/r     # all steps without a GPU, as far as that is possible
    python3 tools/gpu_device.py --take DIR                   # copy results into docs, and write its tables
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, NamedTuple

import gpu_watch

ROOT = Path(__file__).parent.parent
CARRY = ROOT / "build" / "gpu_carry"
BUILD = ROOT / "build" / "gpu_engine"
STORED = ROOT / "docs" / "measurements" / "h200"
PACKAGE = ROOT / "src" / "unisono"
RESULTS = ("collectives", "training", "programs", "codecs", "stress", "torch_suite")
TOGETHER = "+"  # between the names of steps that run at the same time
TOTAL_S = 570.0  # a command of the machine may take 600
LEAST_S = 15.0  # no step begins with less time left
SHOWN = 2500  # characters of the end of a step that are printed; log.txt has everything


class Step(NamedTuple):
    """A command, its limit, and the command that rehearses it without a GPU (empty: there is none)."""

    command: str
    limit_s: float
    rehearsal: str = ""


def tests(options: str) -> str:
    """Return the command of the tests of the torch backend."""
    return f"-m pytest -v -rfE --durations=8 -p no:cacheprovider tests/gpu/torch_on_gpu {options}"


def steps(folder: Path) -> dict[str, Step]:
    """Return the steps by name, in the order in which they matter; the results are stored in ``folder``."""
    file = {name: f"--json {folder / name}.json" for name in RESULTS}
    cpu, stress = "--device cpu", "tools/gpu_stress.py"
    return {
        "info": Step("-m unisono info", 60, "-m unisono info"),
        "kernels": Step("tools/gpu_kernels.py --limit 60", 75, "tools/gpu_kernels.py --list"),
        "host": Step(
            f"tools/measure_gpu.py --modes kernel --ranks 2,8,4 --parts bandwidth,all_reduce,host,collectives "
            f"--total 80 {file['collectives']}",
            100, f"tools/measure_gpu.py {cpu} --modes kernel --ranks 2 --parts bandwidth,host {file['collectives']}",
        ),
        "tests2": Step(tests("--gpu-ranks 2"), 170, tests("--gpu-ranks 2 -k collectives")),
        "tests4": Step(tests("--gpu-ranks 4"), 170),
        "tests8": Step(tests("--gpu-ranks 8"), 200),
        "training": Step(
            f"tools/measure_gpu_training.py {file['training']}", 260,
            f"tools/measure_gpu_training.py {cpu} -n 2 --cases DDP --contenders unisono {file['training']}",
        ),
        "programs": Step(
            f"tools/gpu_programs.py --ranks 8,2,4 --jobs 4 --total 280 --limit 90 {file['programs']}", 330,
            f"tools/gpu_programs.py {cpu} --ranks 2 --jobs 2 --modes stream --limit 100 "
            f"--programs 'ddp.py;train.py, ddp, bf16' {file['programs']}",
        ),
        "calls": Step(
            f"{stress} calls --modes kernel --limit 200 {file['stress']}", 260,
            f"{stress} calls {cpu} --modes kernel --count 4 -n 2 {file['stress']}",
        ),
        "kills": Step(
            f"{stress} kills -n 4 --modes kernel --limit 200 {file['stress']}", 250,
            f"{stress} kills {cpu} -n 3 --modes kernel --count 2 {file['stress']}",
        ),
        "occupancy": Step(
            f"{stress} occupancy --modes kernel {file['stress']}", 110,
            f"{stress} occupancy {cpu} -n 2 --modes kernel --count 5 {file['stress']}",
        ),
        "torch_suite": Step(
            f"tools/torch_suite.py --gpu --jobs 4 --timeout 60 {file['torch_suite']}", 250,
            f"tools/torch_suite.py --gpu --only 'test_all_reduce_sum_cuda' --timeout 220 {file['torch_suite']}",
        ),
        "codecs": Step(
            f"tools/measure_gpu_codecs.py {file['codecs']}", 90, "tools/measure_gpu_codecs.py --help"
        ),
        "sanitizer": Step("tools/gpu_test.py --steps sanitizer --output /dev/null", 420,
                          "tools/gpu_sanitized.py --device cpu"),
        "by_hand": Step(
            f"tools/measure_gpu.py --modes kernel --ranks 2,8,4 --parts by_hand,graph --total 90 "
            f"{file['collectives']}",
            110, "tools/measure_gpu.py --help",
        ),
        "gloo": Step(
            f"tools/measure_gpu.py --modes kernel --ranks 2,8 --parts all_reduce,gloo --total 70 "
            f"{file['collectives']}",
            85, f"tools/measure_gpu.py {cpu} --modes kernel --ranks 2 --parts all_reduce,gloo {file['collectives']}",
        ),
        "stream_host": Step(
            f"tools/measure_gpu.py --modes stream --ranks 2,8 --parts all_reduce,host,collectives --total 80 "
            f"{file['collectives']}",
            100, f"tools/measure_gpu.py {cpu} --modes stream --ranks 2 --parts host {file['collectives']}",
        ),
        "codec_tests": Step("-m pytest -q -rfE -p no:cacheprovider tests/gpu/test_codecs_on_gpu.py "
                            "tests/gpu/test_driver_abi.py", 90, "-m pytest -q tests/gpu/test_driver_abi.py"),
        "stream_tests": Step(tests("--gpu-mode stream --gpu-ranks 2"), 200),
        "stream_stress": Step(f"{stress} --modes stream --short --limit 60 {file['stress']}", 250),
        "one_per_rank": Step("tools/gpu_one_per_rank.py", 120, "tools/gpu_one_per_rank.py --help"),
    }  # fmt: skip


def environment() -> dict[str, str]:
    """Return the environment of the steps."""
    paths = [ROOT / "src", CARRY / "site", ROOT / "tools"]
    before = os.environ.get("PYTHONPATH")
    # Hundreds of processes import torch: its files are compiled once, whatever the shell exports.
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {
        **inherited, "PYTHONPATH": os.pathsep.join([*map(str, paths), *filter(None, [before])]),
        "PYTHONUNBUFFERED": "1", "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1",
        "TMPDIR": os.environ.get("TMPDIR", "/tmp"), "COLUMNS": "160",
    }  # fmt: skip


def engine_loads() -> bool:
    """Tell whether the engine that lies next to the Python files can be loaded."""
    command = [sys.executable, "-c", "import unisono._engine"]
    return subprocess.run(command, env=environment(), cwd=ROOT, capture_output=True).returncode == 0


def set_up(out: IO[bytes]) -> str:
    """Put the engine in its place, or build it; return how that went."""
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    carried, placed = CARRY / "engine" / f"_engine{suffix}", PACKAGE / f"_engine{suffix}"
    if carried.exists():
        shutil.copy(carried, placed)
    if engine_loads():
        return "the engine was carried"
    placed.unlink(missing_ok=True)
    site = CARRY / "site"
    build = [
        ["cmake", "-S", ".", "-B", str(BUILD), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
         f"-DPython_EXECUTABLE={sys.executable}", f"-Dnanobind_DIR={site / 'nanobind' / 'cmake'}"],
        ["cmake", "--build", str(BUILD), "--target", "_engine"],
    ]  # fmt: skip
    for command in build:
        subprocess.run(command, cwd=ROOT, stdout=out, stderr=subprocess.STDOUT, check=True)
    shutil.copy(BUILD / placed.name, placed)
    if not engine_loads():
        raise SystemExit("the engine that was built here cannot be loaded")
    return "the engine was built"


class Report:
    """What became of the steps, on the disk after each of them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.entries, self.lock = folder, {}, threading.Lock()
        folder.mkdir(parents=True, exist_ok=True)

    def add(self, name: str, **entry: object) -> None:
        """Enter the outcome of a step, and write everything."""
        with self.lock:
            self.entries[name] = entry
            (self.folder / "summary.json").write_text(json.dumps(self.entries, indent=1) + "\n")
        print(f"== {name}: " + ", ".join(f"{key} {value}" for key, value in entry.items()), flush=True)


def run_step(name: str, words: str, limit_s: float, folder: Path, report: Report) -> bool:
    """Run a step; return whether it passed."""
    command, began = [sys.executable, *shlex.split(words)], time.monotonic()
    print(f"== {name}: {words} (at most {limit_s:.0f} s)", flush=True)
    with tempfile.TemporaryFile(buffering=0) as out:
        code = gpu_watch.run(command, limit_s, out, environment(), ROOT)
        out.seek(0)
        text = out.read()
    with report.lock, (folder / "log.txt").open("ab") as log:
        log.write(f"\n======== {name}: {words}\n".encode() + text)
    said = text.decode(errors="replace")
    print(said[-SHOWN:] if code == 0 else said[-3 * SHOWN :], flush=True)
    report.add(name, code="none: at its limit" if code is None else code, s=round(time.monotonic() - began, 1))
    return code == 0


def main() -> int:
    """Run the steps; return 1 if one of them failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("steps", nargs="*", help="names of steps, as --list shows them; A+B at the same time")
    parser.add_argument("--out", type=Path, help="folder of the output and the results")
    parser.add_argument("--total", type=float, default=TOTAL_S, metavar="S", help=f"seconds in all ({TOTAL_S:.0f})")
    parser.add_argument("--list", action="store_true", help="list the steps")
    parser.add_argument("--rehearse", action="store_true", help="run the steps without a GPU, as far as possible")
    parser.add_argument("--take", type=Path, metavar="FOLDER", help="copy results into docs and write its tables")
    args = parser.parse_args()
    known = steps((args.out or Path("OUT")).absolute())
    if args.list:
        for name, step in known.items():
            print(f"{name:14}{step.limit_s:4.0f} s  python3 {step.command}")
        return 0
    if args.take:
        return take(args.take)
    if args.out is None:
        parser.error("--out: expected the folder of the output")
    for name in (name for group in args.steps for name in group.split(TOGETHER)):
        if name not in known:
            parser.error(f"there is no step {name!r}; expected some of {', '.join(known)}")
    return run_steps(args, known)


def run_steps(args: argparse.Namespace, known: dict[str, Step]) -> int:
    """Set up, and run the steps that the arguments name."""
    ends_s, folder = time.monotonic() + args.total, args.out.absolute()
    report, passed = Report(folder), True
    if not args.rehearse:
        for name in RESULTS:  # the tools update what was stored before
            if (STORED / f"{name}.json").exists():
                shutil.copy(STORED / f"{name}.json", folder)
        began = time.monotonic()
        with (folder / "log.txt").open("ab", buffering=0) as out:
            report.add("setup", how=set_up(out), s=round(time.monotonic() - began, 1))

    def run(name: str) -> bool:
        step = known[name]
        words = step.rehearsal if args.rehearse else step.command
        limit_s = min(step.limit_s, ends_s - time.monotonic() - 2 * gpu_watch.INTERRUPTED_S)
        if not words:
            report.add(name, code="no rehearsal")
            return True
        if limit_s < LEAST_S:
            report.add(name, code="no time left")
            return False
        return run_step(name, words, limit_s, folder, report)

    for group in args.steps or known:
        names = group.split(TOGETHER)
        with ThreadPoolExecutor(len(names)) as pool:
            passed &= all(list(pool.map(run, names)))
    print(json.dumps(report.entries), flush=True)
    return 0 if passed else 1


def take(folder: Path) -> int:
    """Copy the results of a run into docs, and write the tables from them."""
    for name in RESULTS:
        if (folder / f"{name}.json").exists():
            shutil.copyfile(folder / f"{name}.json", STORED / f"{name}.json")
            print(f"took {name}.json")
    return subprocess.run([sys.executable, "tools/measure_gpu.py", "--write-docs"], cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main())
