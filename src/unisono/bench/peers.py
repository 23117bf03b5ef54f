"""Finds the peers that are installed here, and turns names such as ``gloo`` or ``openmpi:ucx`` into contenders."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from difflib import get_close_matches
from functools import cache
from pathlib import Path

from unisono.bench.contender import Contender
from unisono.bench.local_ranks import LocalRanks, memory_ranks, torch_ranks, unisono_ranks
from unisono.bench.mpi_ranks import Installation, MpiRanks
from unisono.bench.settings import FLAVOURS, Flavour
from unisono.errors import UsageError

FOLDER = ".peers"  # where `make peers` puts them
NAMES = ("gloo", "mpi", *FLAVOURS, "memcpy", "torch", "unisono")
PROBE_TIMEOUT_S = 60


def make_contenders(names: str, size: int, folder: Path | None, *, answer_timeout_s: float) -> list[Contender]:
    """Read names with commas between them; a peer without a setting stands for all of its settings."""
    found: dict[str, Contender] = {}
    for name in filter(None, (part.strip() for part in names.split(","))):
        for contender in _of(name, size, folder or nearest_folder(), answer_timeout_s):
            found.setdefault(contender.name, contender)
    return list(found.values())


def nearest_folder() -> Path | None:
    """Return the folder of peers here or above."""
    here = Path.cwd()
    return next((place / FOLDER for place in (here, *here.parents) if (place / FOLDER).is_dir()), None)


def _of(name: str, size: int, folder: Path | None, answer_timeout_s: float) -> list[Contender]:
    peer, _, chosen = name.partition(":")
    if peer not in NAMES:
        near = get_close_matches(peer, NAMES, n=1)
        hint = f"did you mean {near[0]}?" if near else f"expected some of {', '.join(NAMES)}"
        raise UsageError(f"--against {name}: there is no contender {peer!r}; {hint}")
    if peer in ("gloo", "memcpy", "torch", "unisono"):
        if chosen:
            raise UsageError(f"--against {name}: {peer} has no settings to choose from")
        if peer == "unisono":
            return [unisono_ranks(size, answer_timeout_s=answer_timeout_s)]
        if peer == "torch":
            if importlib.util.find_spec("torch") is None:
                raise UsageError("--against torch: there is no torch here; expected torch==2.13.0 beside unisono")
            return [torch_ranks(size, answer_timeout_s=answer_timeout_s)]
        if peer == "memcpy":
            return [memory_ranks(size, answer_timeout_s=answer_timeout_s)]
        return [LocalRanks("gloo", size, _python_for_gloo(folder), "gloo", answer_timeout_s=answer_timeout_s)]
    installation = _installed_mpi() if peer == "mpi" else _peer_of_ours(peer, folder)
    settings = [setting for setting in installation.flavour.settings if chosen in ("", setting.name)]
    if not settings:
        known = ", ".join(f"{peer}:{setting.name}" for setting in installation.flavour.settings)
        raise UsageError(f"--against {name}: there is no such setting; expected one of {known}")
    return [
        MpiRanks(f"{peer}:{setting.name}", size, installation, setting, answer_timeout_s=answer_timeout_s)
        for setting in settings
    ]


def _python_for_gloo(folder: Path | None) -> str:
    """Return our own interpreter if it has torch, else that of the peer."""
    if importlib.util.find_spec("torch") is not None:
        return sys.executable
    python = folder / "gloo" / "bin" / "python" if folder else None
    if python is None or not python.exists():
        raise UsageError("--against gloo: there is no torch here, and no .peers/gloo; `make peers` makes it")
    return str(python)


def _peer_of_ours(name: str, folder: Path | None) -> Installation:
    home = folder / name / "bin" if folder else None
    if home is None or not (home / "mpiexec").exists():
        raise UsageError(f"--against {name}: there is no {FOLDER}/{name}; `make peers` makes it")
    return Installation(FLAVOURS[name], str(home / "mpiexec"), str(home / "python"))


def _installed_mpi() -> Installation:
    """Return the MPI of this environment or of the system: the first launcher, and an interpreter with mpi4py."""
    places = [str(Path(sys.executable).parent), *os.environ.get("PATH", "").split(os.pathsep)]
    launchers = (shutil.which(name, path=os.pathsep.join(places)) for name in ("mpiexec", "mpirun"))
    mpiexec = next(filter(None, launchers), None)
    if mpiexec is None:
        raise UsageError(
            "--against mpi: there is no mpiexec here or on the PATH; expected Open MPI, MPICH or Intel MPI"
        )
    pythons = [sys.executable, *(str(Path(place) / "python3") for place in places if place)]
    for python in dict.fromkeys(pythons):
        if os.access(python, os.X_OK) and _prints(python, "-c", "import numpy, mpi4py; print('yes')") == "yes\n":
            return Installation(_flavour_of(mpiexec), mpiexec, python)
    raise UsageError(f"--against mpi: there is {mpiexec}, but no python3 on the PATH that has mpi4py and numpy")


def _flavour_of(mpiexec: str) -> Flavour:
    printed = _prints(mpiexec, "--version")
    for flavour in (FLAVOURS["openmpi"], FLAVOURS["impi"], FLAVOURS["mpich"]):  # Intel's launcher is a HYDRA too
        if any(sign in printed for sign in flavour.signs):
            return flavour
    raise UsageError(
        f"--against mpi: {mpiexec} is neither Open MPI nor MPICH nor Intel MPI, but says {printed[:80]!r}"
    )


@cache
def _prints(*command: str) -> str:
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PROBE_TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout + done.stderr
