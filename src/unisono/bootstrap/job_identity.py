"""What distinguishes the ranks of one job from those of another with the same name.

Where RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT are set by hand, nothing names the job for certain: two jobs with
the same port look alike. Ranks of one job usually have the same command, folder, session and environment but for
their rank. So **looks** are evidence, not proof: ranks of one job may come from two terminals.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Mapping

OF_ONE_RANK = ("_", "SHLVL", "OLDPWD", "CUDA_VISIBLE_DEVICES")  # and what has RANK in its name


def own_looks(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the looks of this process; values are digests, so that nothing of an environment is told."""
    found = {
        "the command": "\0".join(sys.orig_argv),
        "the folder": os.getcwd(),
        "the session (terminal)": str(os.getsid(0)),
    }
    for name, value in environ.items():
        if name not in OF_ONE_RANK and "RANK" not in name:
            found[f"the variable {name}"] = value
    return {name: hashlib.sha256(os.fsencode(value)).hexdigest()[:16] for name, value in found.items()}


def differences(one: Mapping[str, str], other: Mapping[str, str]) -> str:
    """Return in words what differs, at most three things."""
    names = sorted(name for name in {*one, *other} if one.get(name) != other.get(name))
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
