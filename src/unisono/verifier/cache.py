"""Remember proofs, by the content of the programs.

The key is a digest of every step of every rank, of the collective and its pre- and post-condition's code, and of the
verifier itself: change any of them and the proof is made anew. Making the programs is what remains to be done when
a proof is found; playing them is saved.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

from unisono.schedule import Schedule
from unisono.verifier.proof import Proof, prove

# What a proof depends on, beside the programs.
JUDGES = ("collectives.py", "schedule", "verifier")
FRACTIONS = ("sent", "received", "sent_total", "largest_message", "least_bytes", "extra_memory")


def cache_directory() -> Path:
    """Return where proofs are kept; a user may delete it at any time."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "unisono" / "proofs"


def proof_of(schedule: Schedule, depth: int | None = 1, directory: Path | None = None) -> tuple[Proof, bool]:
    """Return the proof, and whether it was found in the cache; raise ScheduleError if there is none."""
    directory = directory or cache_directory()
    path = directory / f"{content_digest(schedule, depth)}.json"
    found = _load(path)
    if found is not None:
        return found, True
    proof = prove(schedule, depth)
    _store(path, proof)
    return proof, False


def content_digest(schedule: Schedule, depth: int | None) -> str:
    """Return a digest of all that the proof depends on."""
    digest = hashlib.sha256(_digest_of_judges())
    digest.update(
        repr((schedule.label, schedule.size, schedule.chunks, schedule.slots, schedule.root, depth)).encode()
    )
    for rank in range(schedule.size):
        lines = ["".join(["%s %s %s;" % op for op in step]) for step in schedule.program(rank)]
        digest.update("\n".join(lines).encode() + b"\n\n")
    return digest.hexdigest()


@cache  # the package does not change while it runs
def _digest_of_judges() -> bytes:
    package = Path(__file__).parent.parent
    digest = hashlib.sha256()
    for judge in JUDGES:
        for path in _python_files(package / judge):
            digest.update(path.read_bytes())
    return digest.digest()


def _python_files(path: Path) -> Iterator[Path]:
    yield from [path] if path.is_file() else sorted(path.glob("*.py"))


def _load(path: Path) -> Proof | None:
    """Return a stored proof; a damaged or missing file counts as none."""
    try:
        facts: dict[str, Any] = json.loads(path.read_text())
        facts.update({name: Fraction(facts[name]) for name in FRACTIONS})
        return Proof(**facts)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def _store(path: Path, proof: Proof) -> None:
    """Write the proof so that a reader never sees half of it; not being able to is no error."""
    facts = {name: str(fact) if isinstance(fact, Fraction) else fact for name, fact in vars(proof).items()}
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, suffix=".part", delete=False) as part:
            json.dump(facts, part)
        os.replace(part.name, path)
    except OSError:
        pass
