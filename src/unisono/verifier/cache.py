"""Proves a schedule, or finds its proof in a cache that is keyed by the content of the programs.

The programs are run once (schedule/frozen.py). The key of a proof is a digest of every step of every rank, of the
code of the collectives with their pre- and post-conditions, and of the verifier itself: if any of them changes, the
proof is made again. A cached proof saves executing the programs on symbols.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

from unisono.cache_files import Unbelievable, Untrusted, read_record, user_cache, warn_ignored, write_record
from unisono.schedule import FrozenSchedule, Schedule, freeze
from unisono.schedule.schedule import DECLARED, Depth
from unisono.verifier import messages
from unisono.verifier.proof import Proof, check_provable, chunk_part, depth_of, prove
from unisono.verifier.proved import SEAL, ProvedSchedule

# The code that a proof depends on, beside the programs.
PROOF_DEPENDENCIES = ("collectives", "notation", "schedule", "verifier")
WHOLE = ("steps", "levels", "rounds", "messages", "messages_per_rank", "least_rounds")
FRACTIONS = ("sent", "received", "sent_total", "largest_message", "least_bytes", "extra_memory")
HINT = "delete it, or make it yours alone (chmod go-w)"


def cache_directory() -> Path:
    """Return the directory of cached proofs; a user may delete it at any time."""
    return user_cache() / "proofs"


def proved(
    schedule: Schedule, depth: Depth = DECLARED, directory: Path | None = None, warns: bool = True
) -> ProvedSchedule:
    """Run the programs once and prove them, or find their proof; raise ScheduleError if they are wrong.

    ``warns``: warn about a cache that other users can write to; it is not used.
    """
    check_provable(schedule)
    depth = depth_of(schedule, depth)
    directory = directory or cache_directory()
    frozen = freeze(schedule)
    digest = content_digest(frozen, depth)
    cached = _proof_in(load(directory, digest, warns), frozen, depth)
    if cached is not None:
        return ProvedSchedule(frozen, cached, digest, cached=True, seal=SEAL)
    proof = prove(frozen, depth)
    facts = {name: str(fact) if isinstance(fact, Fraction) else fact for name, fact in vars(proof).items()}
    store(directory, digest, facts)
    return ProvedSchedule(frozen, proof, digest, cached=False, seal=SEAL)


def proof_of(schedule: Schedule, depth: Depth = DECLARED, directory: Path | None = None) -> tuple[Proof, bool]:
    """Return the proof, and whether it came from the cache; raise ScheduleError if the program is wrong."""
    result = proved(schedule, depth, directory)
    return result.proof, result.cached


def content_digest(schedule: FrozenSchedule, claim: object) -> str:
    """Return a digest of everything that a claim depends on; the claim of a proof is the channel depth."""
    digest = hashlib.sha256(_digest_of_dependencies())
    names = (schedule.collective, schedule.algorithm, schedule.label)
    digest.update(repr((*names, schedule.size, schedule.chunks, schedule.slots, schedule.root, claim)).encode())
    digest.update(schedule.digest)
    return digest.hexdigest()


@cache  # the package does not change while it runs
def _digest_of_dependencies() -> bytes:
    package = Path(__file__).parent.parent
    digest = hashlib.sha256()
    for module in PROOF_DEPENDENCIES:
        for path in _code_files(package / module):
            digest.update(path.read_bytes())
    return digest.digest()


def _code_files(path: Path) -> Iterator[Path]:
    """Return the files of a module or package: its source or, if it was installed without, its bytecode."""
    for ending in (".py", ".pyc"):
        found = sorted(path.glob(f"*{ending}")) if path.is_dir() else [path.with_suffix(ending)]
        if found and all(file.is_file() for file in found):
            return iter(found)
    raise FileNotFoundError(messages.NO_CODE(module=path.name))


def _proof_in(facts: dict[str, Any] | None, schedule: FrozenSchedule, depth: int | None) -> Proof | None:
    """Return a stored proof; None for a damaged one, or for one of another schedule.

    The facts that the compiler takes from a proof are compared with the steps.
    """
    if facts is None:
        return None
    try:
        facts.update({name: Fraction(facts[name]) for name in FRACTIONS})
        proof = Proof(**facts)
        about = (proof.algorithm, proof.size, proof.depth, proof.chunks)
        whole = all(type(fact) is int for name, fact in facts.items() if name in WHOLE)
    except Exception:  # the content is not a proof
        return None
    if not whole or about != (schedule.label, schedule.size, depth, schedule.chunks):
        return None
    return proof if type(proof.equal_blocks_only) is bool and _counted(proof) == _counts(schedule) else None


def _counted(proof: Proof) -> tuple[int, Fraction, Fraction]:
    return proof.messages, proof.largest_message, proof.sent


def _counts(schedule: FrozenSchedule) -> tuple[int, Fraction, Fraction]:
    """Return the counts that a proof must have: messages, the largest message, and the most that a rank sends."""
    part = chunk_part(schedule)
    return schedule.sent_messages, schedule.largest_message * part, max(schedule.sent_chunks) * part


def load(directory: Path, digest: str, warns: bool = True) -> dict[str, Any] | None:
    """Return the facts stored under a digest; None if there are none that can be trusted."""
    path = directory / f"{digest}.json"
    try:
        record = read_record(path)
    except Untrusted as error:
        if warns:
            warn_ignored(directory, str(error), HINT)
        return None
    except Unbelievable:
        return None
    if not isinstance(record, dict) or record.pop("digest", None) != digest:
        return None  # damaged, or moved here from another place
    return record


def store(directory: Path, digest: str, facts: dict[str, Any]) -> None:
    """Store facts; it is no error if that is impossible."""
    with suppress(OSError, Unbelievable):
        write_record(directory / f"{digest}.json", {"digest": digest, **facts})
