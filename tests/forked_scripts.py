"""Runs scripts in processes that are forked from this one, which has imported torch: without 3 s of imports per rank.

The launchers are not involved: a script that depends on one is started by it.
"""

from __future__ import annotations

import os
import runpy
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch.distributed as dist

from torch_ranks import run_ranks

OF_RANKS = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


class Finished(NamedTuple):
    """The result of one process of a script, like that of ``subprocess.run``."""

    returncode: int
    stdout: str
    stderr: str


def run_script(script: str | Path, *words: str, size: int | None = None, backend: str = "unisono") -> list[Finished]:
    """Run a script on ranks with the variables that torchrun sets or, without a size, as a single process."""
    return run_ranks(_play, size or 1, str(script), words, size is None, backend, backend=backend, init=False)


def _play(script: str, words: Sequence[str], alone: bool, backend: str) -> Finished:
    if backend == "gloo":  # it may hang or abort the process here, after the last output
        dist.destroy_process_group = lambda: None
    for name in OF_RANKS if alone else ():
        del os.environ[name]
    sys.argv, sys.path[0] = [script, *words], str(Path(script).parent)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        sys.stdout.flush()
        sys.stderr.flush()
        # Those of pytest may not write to the descriptors.
        sys.stdout, sys.stderr = (os.fdopen(number, "w", closefd=False) for number in (1, 2))
        os.dup2(out.fileno(), 1)
        os.dup2(errors.fileno(), 2)
        code = _exit_code(script)
        sys.stdout.flush()
        sys.stderr.flush()
        for file in (out, errors):
            file.seek(0)
        return Finished(code, out.read().decode(), errors.read().decode())


def _exit_code(script: str) -> int:
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as ending:
        if isinstance(ending.code, str):
            print(ending.code, file=sys.stderr)
        return ending.code if isinstance(ending.code, int) else int(ending.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0
