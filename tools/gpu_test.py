"""Test everything that needs a GPU: ``make gpu-test``, which runs ``python tools/gpu_test.py``.

It runs the tests in tests/gpu, the short stress test, and a short job under compute-sanitizer, each with a time
limit, and writes their output, with the machine, the commands and the date, to docs/gpu_test_output.txt.

    python tools/gpu_test.py --steps tests,sanitizer      # some of them
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, NamedTuple

import gpu_jobs

ROOT = Path(__file__).parent.parent
OUTPUT = ROOT / "docs" / "gpu_test_output.txt"
SANITIZER = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
# torch asks the driver for functions that it may not have, which the sanitizer would report.
SANITIZE = [SANITIZER, "--target-processes", "all", "--report-api-errors", "no", "--error-exitcode", "9"]
SHOWN = 60  # the last lines of the output of a step that are kept


class Step(NamedTuple):
    """A command of the test."""

    name: str
    command: list[str]
    limit_s: float
    required: bool = True  # whether its failure is one of the whole test
    note: str = ""


def steps(python: str) -> dict[str, list[Step]]:
    """Return the steps, by the name under which they are selected."""
    sanitized = [python, "tools/gpu_sanitized.py"]
    return {
        "machine": [Step("machine", ["nvidia-smi"], 30), Step("unisono info", [python, "-m", "unisono", "info"], 60)],
        "tests": [
            # Not those of fake GPUs in many processes at once: a GPU is one machine.
            Step("tests/gpu", [python, "-m", "pytest", "-q", "-rs", "tests/gpu"], 400),
        ],
        "stress": [Step("stress, short", [python, "tools/gpu_stress.py", "--short"], 240)],
        "sanitizer": [
            Step("memcheck, one rank", [*SANITIZE, "--tool", "memcheck", *sanitized, "-n", "1"], 120),
            Step("memcheck, two ranks, stream mode", [*SANITIZE, "--tool", "memcheck", *sanitized], 180),
            Step("racecheck, two ranks, stream mode", [*SANITIZE, "--tool", "racecheck", *sanitized], 180),
            Step(
                "memcheck, two ranks, kernel mode under MPS", [*SANITIZE, "--tool", "memcheck", *sanitized, "--mps"],
                60, required=False,
                note="not required: where the sanitizer runs one kernel at a time, kernels that wait for each other "
                "time out",
            ),
        ],
    }  # fmt: skip


def run(step: Step, out: IO[str]) -> bool:
    """Run a step, write its output, and return whether it passed."""
    words = " ".join(Path(word).name if word.startswith("/") else word for word in step.command)
    print(f"== {step.name}: {words}", flush=True)
    began = time.monotonic()
    try:
        done = subprocess.run(
            step.command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", timeout=step.limit_s,
        )  # fmt: skip
        said, passed, ended = done.stdout, done.returncode == 0, f"code {done.returncode}"
    except subprocess.TimeoutExpired as error:
        said = (
            (error.stdout or b"").decode(errors="replace") if isinstance(error.stdout, bytes) else error.stdout or ""
        )
        passed, ended = False, f"killed after {step.limit_s:.0f} s"
    except OSError as error:
        said, passed, ended = "", False, str(error)
    verdict = "passed" if passed else "FAILED" if step.required else "did not pass"
    lines = said.replace(str(ROOT), ".").splitlines()
    left_out = f"({len(lines) - SHOWN} lines before)\n" if len(lines) > SHOWN else ""
    summary = f"{verdict} ({ended}, {time.monotonic() - began:.0f} s)"
    note = f"({step.note})\n" if step.note else ""
    out.write(f"== {step.name}: {summary}\n$ {words}\n{note}{left_out}" + "\n".join(lines[-SHOWN:]) + "\n\n")
    out.flush()
    print("\n".join(lines[-15:]) + f"\n-- {summary}", flush=True)
    return passed or not step.required


def main() -> int:
    """Run the steps; return 1 if one has failed."""
    known = steps(sys.executable)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", default=",".join(known), help=f"some of {', '.join(known)}")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="file of the output (default: in docs)")
    args = parser.parse_args()
    for name in args.steps.split(","):
        if name not in known:
            parser.error(f"--steps: there is no step {name!r}; expected some of {', '.join(known)}")
    about = gpu_jobs.machine("cuda")
    if not about["gpus"]:
        print("There is no NVIDIA GPU (nvidia-smi lists none): this needs one.", file=sys.stderr)
        return 2
    failed = []
    with args.output.open("w", encoding="utf-8") as out:
        out.write("The output of `make gpu-test` (tools/gpu_test.py).\n\n")
        for name in ("date", "commit", "gpus", "cores", "unisono", "torch", "cuda", "python"):
            value = about[name]
            out.write(f"{name}: {'; '.join(value) if isinstance(value, list) else value}\n")
        out.write("\n")
        for name in args.steps.split(","):
            failed += [step.name for step in known[name] if not run(step, out)]
        out.write(f"failed: {', '.join(failed) or 'nothing'}\n")
    print(f"failed: {', '.join(failed) or 'nothing'}; all output: {args.output}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
