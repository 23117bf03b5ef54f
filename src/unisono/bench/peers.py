"""Finds the installed peers, and turns names such as ``gloo`` or ``openmpi:ucx`` into contenders."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from pathlib import Path

from unisono.bench import messages
from unisono.bench.contender import Contender
from unisono.bench.contender_ranks import ContenderRanks
from unisono.bench.local_ranks import LocalRanks, memory_ranks, torch_ranks, unisono_ranks
from unisono.bench.mpi_ranks import Installation, MpiRanks
from unisono.bench.settings import FLAVOURS, Flavour
from unisono.errors import UsageError
from unisono.message import listed

FOLDER = ".peers"  # `make peers` builds them here
NAMES = ("gloo", "mpi", *FLAVOURS, "memcpy", "torch", "unisono")
ON_GPUS = ("unisono", "gloo", "torch", "memcpy")
NO_VARIABLES: Mapping[str, str] = {}
PROBE_TIMEOUT_S = 60


def check_device(names: str, device: str) -> None:
    """Raise UsageError if a contender of a list of names cannot be measured on a device."""
    for name in split_names(names):
        if device != "cpu" and name.partition(":")[0] not in ON_GPUS:
            raise UsageError(messages.NOT_ON_GPUS(name=name, device=device, known=listed(ON_GPUS)))


def split_names(text: str) -> list[str]:
    """Return the names in a list that is separated by commas."""
    return [name for name in (part.strip() for part in text.split(",")) if name]


def make_contenders(
    names: str,
    size: int,
    folder: Path | None,
    *,
    answer_timeout_s: float,
    variables: Mapping[str, str] = NO_VARIABLES,
) -> list[Contender]:
    """Return the contenders of a list of names; a peer without a setting stands for all of its settings.

    ``variables`` are added to the environment of their ranks.
    """
    contenders: dict[str, Contender] = {}
    for name in split_names(names):
        for contender in _contenders_of(name, size, folder or nearest_folder(), answer_timeout_s):
            contender.variables = variables
            contenders.setdefault(contender.name, contender)
    return list(contenders.values())


def nearest_folder() -> Path | None:
    """Return the folder of peers in the working directory, or in the nearest folder above it that has one."""
    here = Path.cwd()
    return next((parent / FOLDER for parent in (here, *here.parents) if (parent / FOLDER).is_dir()), None)


def _contenders_of(name: str, size: int, folder: Path | None, answer_timeout_s: float) -> Sequence[ContenderRanks]:
    peer, _, setting = name.partition(":")
    if peer not in NAMES:
        near = get_close_matches(peer, NAMES, n=1)
        if near:
            raise UsageError(messages.MEANT_CONTENDER(name=name, peer=peer, near=near[0]))
        raise UsageError(messages.NO_CONTENDER(name=name, peer=peer, known=listed(NAMES)))
    if peer == "unisono":  # its settings are algorithms
        return [unisono_ranks(size, answer_timeout_s=answer_timeout_s, algorithm=setting or None)]
    if peer in ("gloo", "memcpy", "torch"):
        if setting:
            raise UsageError(messages.NO_SETTINGS(name=name, peer=peer))
        if peer == "torch":
            if importlib.util.find_spec("torch") is None:
                raise UsageError(messages.NO_TORCH())
            return [torch_ranks(size, answer_timeout_s=answer_timeout_s)]
        if peer == "memcpy":
            return [memory_ranks(size, answer_timeout_s=answer_timeout_s)]
        return [LocalRanks("gloo", size, _python_for_gloo(folder), "gloo", answer_timeout_s=answer_timeout_s)]
    installation = _installed_mpi() if peer == "mpi" else _built_peer(peer, folder)
    chosen = [each for each in installation.flavour.settings if setting in ("", each.name)]
    if not chosen:
        known = listed(f"{peer}:{each.name}" for each in installation.flavour.settings)
        raise UsageError(messages.NO_SETTING(name=name, known=known))
    return [
        MpiRanks(f"{peer}:{each.name}", size, installation, each, answer_timeout_s=answer_timeout_s)
        for each in chosen
    ]


def _python_for_gloo(folder: Path | None) -> str:
    """Return this interpreter if it has torch, which contains Gloo; otherwise that of the peer."""
    if importlib.util.find_spec("torch") is not None:
        return sys.executable
    python = folder / "gloo" / "bin" / "python" if folder else None
    if python is None or not python.exists():
        raise UsageError(messages.NO_GLOO(folder=FOLDER))
    return str(python)


def _built_peer(name: str, folder: Path | None) -> Installation:
    """Return a peer that `make peers` has built."""
    home = folder / name / "bin" if folder else None
    if home is None or not (home / "mpiexec").exists():
        raise UsageError(messages.NO_PEER(name=name, folder=FOLDER))
    return Installation(FLAVOURS[name], str(home / "mpiexec"), str(home / "python"))


def _installed_mpi() -> Installation:
    """Return the MPI of this environment or of the system: the first launcher, and an interpreter with mpi4py."""
    folders = [str(Path(sys.executable).parent), *os.environ.get("PATH", "").split(os.pathsep)]
    launchers = (shutil.which(name, path=os.pathsep.join(folders)) for name in ("mpiexec", "mpirun"))
    mpiexec = next(filter(None, launchers), None)
    if mpiexec is None:
        raise UsageError(messages.NO_MPIEXEC())
    pythons = [sys.executable, *(str(Path(folder) / "python3") for folder in folders if folder)]
    for python in dict.fromkeys(pythons):
        if os.access(python, os.X_OK) and _output_of(python, "-c", "import numpy, mpi4py; print('yes')") == "yes\n":
            return Installation(_flavour_of(mpiexec), mpiexec, python)
    raise UsageError(messages.NO_MPI4PY(mpiexec=mpiexec))


def _flavour_of(mpiexec: str) -> Flavour:
    printed = _output_of(mpiexec, "--version")
    for flavour in (FLAVOURS["openmpi"], FLAVOURS["impi"], FLAVOURS["mpich"]):  # Intel's launcher is a HYDRA too
        if any(sign in printed for sign in flavour.signs):
            return flavour
    raise UsageError(messages.UNKNOWN_MPI(mpiexec=mpiexec, printed=printed[:80]))


@cache
def _output_of(*command: str) -> str:
    """Return what a command prints; nothing if it cannot be run or does not end in time."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PROBE_TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout + done.stderr
