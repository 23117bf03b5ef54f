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
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

from unisono.schedule import Schedule, Step
from unisono.verifier.proof import Proof, check_provable, prove

# What a proof depends on, beside the programs.
JUDGES = ("collectives.py", "schedule", "verifier")
WHOLE = ("steps", "levels", "rounds", "messages", "messages_per_rank", "least_rounds")
FRACTIONS = ("sent", "received", "sent_total", "largest_message", "least_bytes", "extra_memory")


def cache_directory() -> Path:
    """Return where proofs are kept; a user may delete it at any time."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "unisono" / "proofs"


def proof_of(schedule: Schedule, depth: int | None = 1, directory: Path | None = None) -> tuple[Proof, bool]:
    """Return the proof, and whether it was found in the cache; raise ScheduleError if there is none."""
    check_provable(schedule)
    directory = directory or cache_directory()
    found = _proof_in(load(directory / f"{content_digest(schedule, depth)}.json"), schedule, depth)
    if found is not None:
        return found, True
    # The key is taken from the very steps that are proved: a program that yields something else each time it is
    # run cannot leave its proof behind for another.
    watched = Watched(**vars(schedule))
    proof = prove(watched, depth)
    facts = {name: str(fact) if isinstance(fact, Fraction) else fact for name, fact in vars(proof).items()}
    store(directory / f"{digest_of(watched, depth)}.json", facts)
    return proof, False


def content_digest(schedule: Schedule, question: object) -> str:
    """Return a digest of all that an answer depends on: for a proof, the question is the depth of channels."""
    watched = Watched(**vars(schedule))
    for rank in range(schedule.size):
        for _ in watched.program(rank):
            pass
    return digest_of(watched, question)


@dataclass(frozen=True)
class Watched(Schedule):
    """The same schedule; it digests what its programs yield, in passing."""

    seen: dict[int, str] = field(default_factory=dict)

    def program(self, rank: int) -> Iterator[Step]:
        """Yield the steps of a rank."""
        digest = hashlib.sha256()
        for step in super().program(rank):
            digest.update("".join(["%s %s %s;" % op for op in step]).encode() + b"\n")
            yield step
        self.seen[rank] = digest.hexdigest()


def digest_of(schedule: Watched, question: object) -> str:
    """Return the digest of a schedule whose programs have been run."""
    digest = hashlib.sha256(_digest_of_judges())
    names = (schedule.collective, schedule.algorithm, schedule.label)
    digest.update(repr((*names, schedule.size, schedule.chunks, schedule.slots, schedule.root, question)).encode())
    digest.update(repr(sorted(schedule.seen.items())).encode())
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


def _proof_in(facts: dict[str, Any] | None, schedule: Schedule, depth: int | None) -> Proof | None:
    """Return a stored proof; a damaged one, or one about something else counts as none."""
    if facts is None:
        return None
    try:
        facts.update({name: Fraction(facts[name]) for name in FRACTIONS})
        proof = Proof(**facts)
        about = (proof.algorithm, proof.size, proof.depth, proof.chunks)
        whole = all(type(fact) is int for name, fact in facts.items() if name in WHOLE)
    except Exception:  # whatever is in there, it is not a proof
        return None
    return proof if whole and about == (schedule.label, schedule.size, depth, schedule.chunks) else None


def load(path: Path) -> dict[str, Any] | None:
    """Return what was stored; None if there is nothing, or nothing that makes sense."""
    try:
        facts = json.loads(path.read_text())
    except Exception:  # whatever is in there, it is none of our files
        return None
    return facts if isinstance(facts, dict) else None


def store(path: Path, facts: dict[str, Any]) -> None:
    """Write facts so that a reader never sees half of them; not being able to is no error."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, suffix=".part", delete=False) as part:
            json.dump(facts, part)
        os.replace(part.name, path)
    except OSError:
        pass
