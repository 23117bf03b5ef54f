"""Train with other libraries on Unisono's backend, and write docs/interop.md: ``make interop``.

The libraries are installed into a separate environment, .interop, which is created once (1.3 GB). Every program of
tools/interop_programs trains a small network on two ranks, on Gloo and on Unisono: both must report the same losses.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
PROGRAMS = ROOT / "tools" / "interop_programs"
PAGE = ROOT / "docs" / "interop.md"
LIMIT_S = 300
RANKS = 2

# Each list is one call of pip. torch comes first and alone: together with other packages pip may choose a variant
# with gigabytes of GPU libraries. Later calls are constrained to keep it.
TORCH = "torch==2.13.0"
REQUIREMENTS: list[list[str]] = [
    [TORCH],
    ["numpy", "setuptools", "wheel", "ninja"],
    ["lightning"],
    ["transformers", "accelerate"],
    ["--no-build-isolation", "deepspeed"],  # it is built from source, and its build imports torch
]
PACKAGES = ["torch", "deepspeed", "lightning", "accelerate", "transformers"]


@dataclass
class Case:
    """A program, and how its backend is selected."""

    package: str
    what: str
    how: str
    words: list[str]


CASES = [
    *(
        Case("deepspeed", f"ZeRO-{stage}", '`deepspeed.init_distributed(dist_backend="unisono")`',
             ["deepspeed_zero.py", "option", str(stage)])
        for stage in (1, 2, 3)
    ),
    Case("deepspeed", "ZeRO-3", '`init_process_group("unisono")` before `deepspeed.init_distributed()`',
         ["deepspeed_zero.py", "group", "3"]),
    Case("lightning", "Trainer with DDP", '`DDPStrategy(process_group_backend="unisono")`', ["lightning_ddp.py"]),
    Case("accelerate", "custom training loop", '`init_process_group("unisono")` before `Accelerator(cpu=True)`',
         ["accelerate_loop.py", "group"]),
    Case("accelerate", "custom training loop", '`InitProcessGroupKwargs(backend="unisono")`',
         ["accelerate_loop.py", "option"]),
    Case("transformers", "Trainer, a tiny GPT-2", '`init_process_group("unisono")` before `TrainingArguments()`',
         ["transformers_trainer.py", "group"]),
    Case("transformers", "Trainer, a tiny GPT-2", '`TrainingArguments(ddp_backend="unisono")`',
         ["transformers_trainer.py", "option"]),
]  # fmt: skip


# ---- the environment ---------------------------------------------------------------------------------------------


def install(home: Path) -> dict[str, str]:
    """Create the environment unless it exists; return the packages that cannot be installed, with the reason."""
    stamp = home / "installed.json"
    asked = json.dumps(REQUIREMENTS)
    if stamp.exists() and (found := json.loads(stamp.read_text()))["asked"] == asked:
        problems: dict[str, str] = found["problems"]
    else:
        subprocess.run([sys.executable, "-m", "venv", str(home / "env")], check=True)
        constraints = home / "constraints.txt"
        constraints.write_text(f"{TORCH}\n")
        problems = {}
        for packages in REQUIREMENTS:
            print("installing", *packages, flush=True)
            problem = pip(home, "-c", str(constraints), *packages)
            problems.update({package: problem for package in packages if problem})
        if TORCH in problems:
            sys.exit(f"make interop: {problems[TORCH]}")
        stamp.write_text(json.dumps({"asked": asked, "problems": problems}))
    # Unisono itself: Python files are used in place, and the engine is built from the current sources.
    if problem := pip(home, "--no-deps", "--editable", str(ROOT)):
        sys.exit(f"make interop: {problem}")
    return problems


def pip(home: Path, *words: str) -> str:
    """Install packages; return the last error line of pip if that fails."""
    command = [str(python(home)), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *words]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    errors = [line for line in done.stderr.splitlines() if line.strip() and "WARNING" not in line]
    return "" if done.returncode == 0 else errors[-1] if errors else f"pip ended with {done.returncode}"


def python(home: Path) -> Path:
    """Return the interpreter of the environment."""
    return home / "env" / "bin" / "python"


def versions(home: Path) -> dict[str, str]:
    """Return the versions of the installed packages."""
    library = next((home / "env" / "lib").glob("python3*")) / "site-packages"
    packages = importlib.metadata.distributions(path=[str(library)])
    return {package.metadata["Name"].lower(): package.version for package in packages}


# ---- the trainings -----------------------------------------------------------------------------------------------


@dataclass
class Training:
    """The losses of a training, or the error that ended it."""

    losses: list[float] | None = None
    error: str = ""


def train(home: Path, case: Case, backend: str) -> Training:
    """Run a program on two ranks."""
    program, *words = case.words
    torchrun = [str(python(home)), "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={RANKS}"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    environment["PATH"] = f"{python(home).parent}{os.pathsep}{environment['PATH']}"  # DeepSpeed looks for ninja
    try:
        done = subprocess.run(
            [*torchrun, program, backend, *words], cwd=PROGRAMS, env=environment, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=LIMIT_S,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Training(error=f"not finished after {LIMIT_S} s")
    report = re.search(r"REPORT (\{.*\})", done.stdout)
    if done.returncode or report is None:
        return Training(error=reason(done.stdout + done.stderr) or f"ended with {done.returncode}")
    found = json.loads(report[1])
    if found["backend"] != backend:
        return Training(error=f"trained on {found['backend']} instead")
    return Training(found["losses"])


def reason(output: str) -> str:
    """Return the line that states the error: the first exception that ends a traceback, or a signal."""
    for pattern in (
        r"^(?:\[rank\d\]: )?((?!.*ChildFailedError)[\w.]*(?:Error|Exception): .*)$",
        r"(Signal \d+ \(\w+\))",
    ):
        if found := re.search(pattern, output, re.MULTILINE):
            return found[1]
    return ""


def verdict(ours: Training, gloo: Training) -> str:
    """Return one sentence that says whether the program works on Unisono."""
    if ours.losses is None and gloo.losses is None:
        return f"works on neither; on Gloo: `{gloo.error}`"
    if ours.losses is None:
        return f"no: `{ours.error}`"
    if gloo.losses is None:
        return f"works; Gloo does not: `{gloo.error}`"
    if ours.losses == gloo.losses:
        return f"works; {len(ours.losses)} losses, bit-identical to Gloo's"
    apart = max(abs(one - other) / abs(other) for one, other in zip(ours.losses, gloo.losses, strict=True))
    return (
        f"works; losses within {apart:.0e} of Gloo's"
        if apart < 1e-5
        else f"no: losses differ from Gloo's by {apart:.0e}"
    )


# ---- the page ----------------------------------------------------------------------------------------------------


def page(rows: list[tuple[Case, str]], found: dict[str, str]) -> str:
    """Return docs/interop.md."""
    named = ", ".join(f"{package} {found[package]}" for package in PACKAGES if package in found)
    lines = [
        "# DeepSpeed, Lightning, Accelerate and transformers on Unisono",
        "",
        "<!-- Generated by `make interop` (tools/interop.py): edit the generator, not this file. -->",
        "",
        f"Each program trained a small network on {RANKS} ranks on the CPU, once on Gloo and once on Unisono, and",
        f"reported the loss of every step. Versions: {named}.",
        "",
        "| library | program | how the backend is selected | result |",
        "| --- | --- | --- | --- |",
        *(
            f"| {case.package} {found.get(case.package, '')} | {case.what} | {case.how} | {says} |"
            for case, says in rows
        ),
        "",
        "`make interop` repeats all of these runs. To repeat one of them, run this command in tools/interop_programs",
        "with the Python of .interop/env:",
        f"`python -m torch.distributed.run --standalone --nproc-per-node={RANKS} lightning_ddp.py unisono`.",
        "",
    ]
    return "\n".join(lines)


def main() -> int:
    """Install the libraries, train, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--folder", type=Path, default=ROOT / ".interop", help="folder of the environment (default: .interop)"
    )
    args = parser.parse_args()
    args.folder.mkdir(exist_ok=True)
    problems = install(args.folder)
    rows = []
    for case in CASES:
        if case.package in problems:
            says = f"cannot be installed here: `{problems[case.package]}`"
        else:
            says = verdict(train(args.folder, case, "unisono"), train(args.folder, case, "gloo"))
        rows.append((case, says))
        print(f"{case.package}, {case.what}, {case.how}: {says}", flush=True)
    PAGE.write_text(page(rows, versions(args.folder)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
