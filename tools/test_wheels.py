"""Install each wheel of dist/ in a bare environment and use it there: one line for each check.

    make wheels
    python tools/test_wheels.py cp311    # only the wheels of this tag

The environments have neither torch nor a compiler: only their own programs are on PATH. One more has torch, and
another one the oldest numpy that Unisono supports.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from build_wheels import DIST, ROOT
from interpreters import find_python

sys.path.insert(0, str(ROOT / "src"))
from unisono.native_engine import NOT_INSTALLED

PROGRAMS = Path(__file__).parent / "wheel_programs"
TORCH = "torch==2.13.0"
OLDEST_NUMPY = "numpy==1.26.4"
LIMIT_S = 300


class Failed(Exception):
    """A check has failed; the text is what was found."""


class Bare(NamedTuple):
    """A virtual environment with one wheel."""

    folder: Path

    def run(self, *words: str | Path, code: int = 0) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment; Failed if it ends with another exit code."""
        program = self.folder / "bin" / str(words[0])
        # Outside the source tree, which Python would prefer to the wheel.
        variables = {"PATH": str(self.folder / "bin"), "HOME": str(self.folder), "LANG": "C.UTF-8"}
        done = subprocess.run(
            [program, *words[1:]], cwd=self.folder, env=variables, capture_output=True, text=True, timeout=LIMIT_S
        )
        if done.returncode != code:
            raise Failed(f"{words} ended with {done.returncode}, not {code}\n{done.stdout}{done.stderr}")
        return done

    def prints(self, text: str, *words: str | Path, code: int = 0) -> None:
        """Run a program; Failed unless it prints ``text``."""
        done = self.run(*words, code=code)
        if text not in done.stdout + done.stderr:
            raise Failed(f"{words} did not print {text!r}\n{done.stdout}{done.stderr}")


def imports(bare: Bare) -> None:
    """The package and its engine are those of the wheel."""
    facts = json.loads(bare.run("unisono", "info", "--json").stdout)
    if not isinstance(facts["engine"], dict) or not facts["engine"]["optimised"]:
        raise Failed(str(facts["engine"]))
    where = bare.run("python", "-c", "import unisono; print(unisono.__file__)").stdout
    if str(bare.folder) not in where:
        raise Failed(where)


def demo(bare: Bare) -> None:
    """The demo runs all collectives on real ranks, and says that it left the training out."""
    done = bare.run("unisono", "demo")
    for text in ("every element is right", "skipped: torch is not installed"):
        if text not in done.stdout:
            raise Failed(f"the demo did not print {text!r}\n{done.stdout}")


def two_ranks(bare: Bare) -> None:
    """`unisono run` starts two ranks, which add their arrays."""
    bare.prints("rank 1 of 2: right", "unisono", "run", "-n", "2", PROGRAMS / "numpy_sum.py")


def torch_backend(bare: Bare) -> None:
    """torch.distributed finds the backend by its entry point, and two ranks add their tensors."""
    bare.prints("rank 1 of 2: right", "torchrun", "--standalone", "--nproc-per-node", "2", PROGRAMS / "torch_sum.py")


def without_engine(bare: Bare) -> None:
    """The verbs that execute nothing work; the others say what is missing, without a traceback."""
    bare.run("unisono", "show", "ring", "-n", "5", "--data")
    bare.run("unisono", "verify", "all", "-n", "1-4")
    bare.run("unisono", "draw", "--lesson", "1", "-o", "lesson.html", "--no-open")
    bare.run("unisono", "simulate", "ring", "-n", "8", "--network", "dgx-h100")
    bare.run("unisono", "plan", "--gpus", "16")
    bare.run("unisono", "explain")
    for verb in ("run", "bench", "tune"):
        done = bare.run("unisono", verb, code=3)
        if "needs the native engine" not in done.stderr or len(done.stderr.splitlines()) != 1:
            raise Failed(done.stderr)


def demo_without_engine(bare: Bare) -> None:
    """The demo plays and proves, and says what it left out."""
    bare.prints("left out: executing collectives needs the native engine", "unisono", "demo")


def check_sdist() -> None:
    """Check that the sdist has every file of the repository; each wheel has been built from it."""
    if lacking := missing_in(next(DIST.glob("*.tar.gz"))):
        raise Failed(f"it lacks {lacking}")


def missing_in(sdist: Path) -> list[str]:
    """Return the files that git has and an sdist lacks."""
    with tarfile.open(sdist) as archive:
        names = {member.name.partition("/")[2] for member in archive.getmembers()}
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return sorted(set(tracked.split("\0")) - names - {""})


def check_abi() -> None:
    """Check that the wheel for many versions of Python uses nothing but the stable ABI."""
    for wheel in DIST.glob("*-abi3-*.whl"):
        command = [sys.executable, "-m", "abi3audit", "--strict", wheel]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise Failed(done.stdout + done.stderr)


def check_glibc() -> None:
    """Check that the wheels run on the systems that the error of the wheel without the engine promises."""
    found = {tuple(re.findall(r"manylinux_(\d+)_(\d+)_x86_64", wheel.name)[0]) for wheel in DIST.glob("*linux*.whl")}
    promised = re.findall(r"glibc (\d+)\.(\d+)", NOT_INSTALLED.english)
    if found - set(promised):
        raise Failed(f"the error promises glibc {promised}, the wheels need {found}")


NATIVE: tuple[Callable[[Bare], None], ...] = (imports, two_ranks, demo)
# The tag of a wheel, the version of Python, what else is installed, and the checks.
PLAN: tuple[tuple[str, str, tuple[str, ...], tuple[Callable[[Bare], None], ...]], ...] = (
    ("cp311-cp311", "3.11", (), NATIVE),
    ("cp311-cp311", "3.11", (OLDEST_NUMPY,), (imports, two_ranks)),
    ("cp311-cp311", "3.11", (TORCH, "numpy"), (torch_backend,)),
    ("cp312-abi3", "3.12", (), NATIVE),
    ("cp312-abi3", "3.13", (), NATIVE),
    ("py3-none", "3.11", (), (without_engine, demo_without_engine)),
    ("py3-none", "3.13", (), (without_engine,)),
)


class Tally:
    """The checks so far."""

    failed = 0
    skipped = 0

    def check(self, subject: str, what: str, function: Callable[[], None]) -> None:
        """Perform a check, and print a line about it."""
        began = time.monotonic()
        try:
            function()
        except (Failed, subprocess.TimeoutExpired) as error:
            self.failed += 1
            print(f"FAILED   {subject}: {what}\n{error}", flush=True)
            return
        print(f"ok       {subject}: {what} ({time.monotonic() - began:.1f} s)", flush=True)

    def skip(self, subject: str, reason: str) -> None:
        """Print a line about checks that are not made."""
        self.skipped += 1
        print(f"SKIPPED  {subject}: {reason}", flush=True)


def main(tags: Sequence[str]) -> int:
    """Test every wheel, or those whose tags begin with one of these; return 1 if a check fails."""
    tally = Tally()
    tally.check("sdist", "it has every file of the repository", check_sdist)
    tally.check("cp312-abi3", "it uses nothing but the stable ABI", check_abi)
    tally.check("wheels", "the glibc that they need is the one that the error of the others states", check_glibc)
    for tag, version, packages, checks in [each for each in PLAN if each[0].startswith(tuple(tags or ("",)))]:
        subject = " ".join([tag, "on", f"Python {version}", *(f"with {each}" for each in packages)])
        wheels = list(DIST.glob(f"*-{tag}-*.whl"))
        python = find_python(version)
        if not wheels or python is None:
            tally.skip(subject, "there is no such wheel" if not wheels else f"there is no python{version} on PATH")
            continue
        with_wheel(tally, subject, wheels[0], python, packages, checks)
    print(f"{tally.failed} failed, {tally.skipped} skipped")
    return 1 if tally.failed else 0


def with_wheel(
    tally: Tally, subject: str, wheel: Path, python: str, packages: tuple[str, ...],
    checks: tuple[Callable[[Bare], None], ...],
) -> None:  # fmt: skip
    """Make an environment with a wheel, make the checks in it, and remove it."""
    with tempfile.TemporaryDirectory() as folder:
        bare = Bare(Path(folder))
        tally.check(subject, "pip installs it without a compiler", lambda: install(bare, python, wheel, packages))
        if (bare.folder / "bin" / "unisono").exists():
            for check in checks:
                tally.check(subject, (check.__doc__ or "").rstrip("."), lambda check=check: check(bare))


def install(bare: Bare, python: str, wheel: Path, packages: tuple[str, ...]) -> None:
    """Create the environment; everything is installed from wheels."""
    subprocess.run([python, "-m", "venv", bare.folder], check=True)
    words = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:"]
    command = [bare.folder / "bin" / "python", *words, wheel, *packages]
    # With the settings of the user's pip, such as an index; PATH has no compiler.
    variables = {**os.environ, "PATH": str(bare.folder / "bin")}
    done = subprocess.run(command, env=variables, capture_output=True, text=True)
    if done.returncode:
        raise Failed(done.stdout + done.stderr)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
