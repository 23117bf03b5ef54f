"""The collectives as data: the data that each rank holds before and after.

*Slots*: the numbered locations of a rank that hold chunks. Nearly every collective works in one row of slots, in
place: slot c is chunk c of the vector on every rank, and the rank's input and output are parts of that row.
Only all_to_all has two rows: an input, which is not changed, and an output.

*Block*: where the vector has a part for each rank (scatter, gather, all_gather, reduce_scatter, all_to_all) the
chunks come in as many equal blocks as there are ranks, and block r is the part of rank r.

A condition says which part of the row a rank holds, ``ALL`` of it, its ``OWN`` block, or ``NOTHING``: the
pre-condition before, the post-condition after. ``result`` says what must then be in a chunk.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum
from fractions import Fraction
from typing import NamedTuple

from unisono.errors import UsageError
from unisono.message import Template, listed
from unisono.schedule import Schedule

NO_COLLECTIVE = Template(
    "collectives.no_collective",
    "there is no collective {name}; expected one of {names}",
    "没有名为 {name} 的集合通信操作；应为 {names} 之一",
)
NO_COLLECTIVE_BUT_NEAR = Template(
    "collectives.no_collective_but_near",
    "there is no collective {name}; did you mean {near}?",
    "没有名为 {name} 的集合通信操作；是否想写 {near}？",
)
BAD_LAYOUT = Template("collectives.bad_layout", "{algorithm}: {problem}", "{algorithm}：{problem}")
NO_RANKS = Template("collectives.no_ranks", "{size} ranks; expected 1 or more", "rank 数为 {size}；应不小于 1")
BAD_CHUNKS = Template(
    "collectives.bad_chunks",
    "{chunks} chunks for {size} ranks; expected at least 1",
    "{size} 个 rank，{chunks} 块；应至少有 1 块",
)
BAD_BLOCKS = Template(
    "collectives.bad_blocks",
    "{chunks} chunks for {size} ranks; expected a multiple of {size}, as each rank has a block",
    "{size} 个 rank，{chunks} 块；块数应为 {size} 的倍数，因为每个 rank 各有一个块组",
)
TOO_FEW_SLOTS = Template(
    "collectives.too_few_slots",
    "{slots} slots; expected at least {needed} for {chunks} chunks",
    "只有 {slots} 个槽；{chunks} 块至少需要 {needed} 个槽",
)
ROOT_MISSING = Template(
    "collectives.root_missing", "no root; expected one", "没有指定根 rank；该集合通信操作需要根 rank"
)
NOT_ROOTED = Template(
    "collectives.not_rooted",
    "root {root}; expected none, as the collective has no root",
    "指定了根 rank {root}；该集合通信操作没有根 rank，不应指定",
)
BAD_ROOT = Template(
    "collectives.bad_root",
    "root={root} with {size} ranks; expected a rank from 0 to {last}",
    "{size} 个 rank 时 root={root}；应为 0 到 {last} 之间的 rank 编号",
)


class Words(NamedTuple):
    """The same sentence in English (``en``) and Chinese (``zh``)."""

    en: str
    zh: str


class Part(Enum):
    """Which part of the row a rank holds."""

    ALL = "all"
    OWN = "own block"
    NOTHING = "nothing"


class Result(Enum):
    """The content of a chunk after the collective."""

    OF_ROOT = "the root's chunk"
    OF_OWNER = "the chunk of the rank whose block it is in"
    REDUCED = "the chunks of all ranks, added"
    EXCHANGED = "block s of the output of rank d is block d of the input of rank s"


class Holding(NamedTuple):
    """A condition: the part held by the ``root``, and by the ``others``."""

    root: Part
    others: Part


class Value(NamedTuple):
    """The content of a slot: chunk ``origin`` of the inputs of ``ranks`` (a bit set), added up."""

    origin: int
    ranks: int


ALL, OWN, NOTHING = Part.ALL, Part.OWN, Part.NOTHING
EVERYONE_ALL, EVERYONE_OWN = Holding(ALL, ALL), Holding(OWN, OWN)
ROOT_ALL = Holding(ALL, NOTHING)


@dataclass(frozen=True, eq=False)  # compared by identity: there is one record of each
class Collective:
    """A record of everything that distinguishes a collective; no collective has its own code.

    - ``name`` is its name; ``summary`` and ``story`` describe it, in one sentence and as a comparison.
    - ``before`` and ``after`` are the parts of the row that the ranks hold before and after, and ``result`` is the
      content of a chunk after it.
    - ``bound`` is a pair (a, b): the busiest rank of p must send or receive at least a(p-1)/p + b of the vector. It
      is (2, 0) for all_reduce. nccl-tests multiplies algbw with the same number to get busbw.
    - ``rooted`` says whether it has a root (default: False).
    - ``blocked`` says whether the chunks come in blocks, one for each rank (default: False).
    - ``keeps_input`` says whether the input must be unchanged at the end; by default, its slots may be overwritten.
    - ``carries_data`` says whether data moves at all (default: True). In a barrier messages are empty, and a rank may
      be counted twice.
    """

    name: str
    before: Holding
    after: Holding
    result: Result
    summary: Words
    story: Words
    bound: tuple[int, int]
    rooted: bool = False
    blocked: bool = False
    keeps_input: bool = False
    carries_data: bool = True

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> str | tuple[object, ...]:
        return (find, (self.name,))  # there is one record of each: compare with `is`

    @property
    def in_place(self) -> bool:
        """Whether input and output share one row of slots."""
        return self.result is not Result.EXCHANGED

    @property
    def single_array(self) -> bool:
        """Whether a call takes one array as input and output: a rank holds all or nothing of the row."""
        return self.in_place and not self.blocked

    @property
    def shares_result(self) -> bool:
        """Whether every rank must end with the same numbers."""
        return self.in_place and self.after == EVERYONE_ALL and self.carries_data

    @property
    def reduces(self) -> bool:
        """Whether chunks of several ranks are added."""
        return self.result is Result.REDUCED

    def check_layout(self, schedule: Schedule) -> None:
        """Raise UsageError if ``schedule`` cannot be one of this collective."""
        size, chunks, root = schedule.size, schedule.chunks, schedule.root
        needed = self.slots(chunks)[-1].stop
        if size < 1:
            problem = NO_RANKS(size=size)
        elif chunks < 1 or (self.blocked and chunks % size):
            problem = (BAD_BLOCKS if self.blocked else BAD_CHUNKS)(chunks=chunks, size=size)
        elif schedule.slots < needed:
            problem = TOO_FEW_SLOTS(slots=schedule.slots, needed=needed, chunks=chunks)
        elif (root is not None) != self.rooted:
            problem = ROOT_MISSING() if self.rooted else NOT_ROOTED(root=root)
        elif root is not None and not 0 <= root < size:
            problem = BAD_ROOT(root=root, size=size, last=size - 1)
        else:
            return
        raise UsageError(BAD_LAYOUT(algorithm=f"{schedule.collective}/{schedule.algorithm}", problem=problem))

    def slots(self, chunks: int) -> tuple[range, ...]:
        """Return the rows of ``chunks`` slots: one where the collective works in place, else input and output.

        >>> inp, out = all_to_all.slots(3)
        >>> inp, out
        (range(0, 3), range(3, 6))
        """
        rows = 1 if self.in_place else 2
        return tuple(range(row * chunks, (row + 1) * chunks) for row in range(rows))

    def held_before(self, rank: int, size: int, chunks: int, root: int = 0) -> range:
        """Return the slots that the input of ``rank`` fills.

        ``size`` is the number of ranks, ``chunks`` that of chunks; ``root`` (default 0) counts if there is one.
        """
        return self._part(self.before, rank, size, chunks, root)

    def held_after(self, rank: int, size: int, chunks: int, root: int = 0) -> range:
        """Return the slots of ``rank`` that must hold the result; ``size``, ``chunks``, ``root``: see held_before."""
        if not self.in_place:
            return self.slots(chunks)[1]
        return self._part(self.after, rank, size, chunks, root)

    def _part(self, holding: Holding, rank: int, size: int, chunks: int, root: int) -> range:
        part = holding.root if rank == root else holding.others
        if part is ALL:
            return range(chunks)
        if part is NOTHING:
            return range(0)
        per_rank = chunks // size
        return range(rank * per_rank, (rank + 1) * per_rank)

    def goal(self, rank: int, size: int, chunks: int, root: int = 0) -> Iterator[tuple[int, Value]]:
        """Yield every slot of ``rank`` in the post-condition with the value that it must hold.

        ``size``, ``chunks`` and ``root`` are those of ``held_before``.
        """
        per_rank = max(1, chunks // size)
        everyone = (1 << size) - 1
        for slot in self.held_after(rank, size, chunks, root):
            if self.result is Result.OF_ROOT:
                yield slot, Value(slot, 1 << root)
            elif self.result is Result.OF_OWNER:
                yield slot, Value(slot, 1 << slot // per_rank)
            elif self.result is Result.REDUCED:
                yield slot, Value(slot, everyone)
            else:
                source, piece = divmod(slot - chunks, per_rank)
                yield slot, Value(rank * per_rank + piece, 1 << source)

    def least_bytes(self, size: int) -> Fraction:
        """Return the least that the busiest of ``size`` ranks must send or receive, as a fraction of the vector."""
        return self.bus_factor(size) if size > 1 else Fraction(0)

    def bus_factor(self, size: int) -> Fraction:
        """Return busbw / algbw on ``size`` ranks, as nccl-tests defines it.

        It is the least number of bytes, so that busbw is what a link carries.
        """
        per_peer, constant = self.bound
        return per_peer * Fraction(size - 1, size) + constant

    def least_rounds(self, size: int) -> int:
        """Return the lower bound on rounds of ``size`` ranks: in a round, the ranks that have data at most double."""
        return (size - 1).bit_length()


broadcast = Collective(
    "broadcast", before=ROOT_ALL, after=EVERYONE_ALL, result=Result.OF_ROOT, rooted=True, bound=(0, 1),
    summary=Words("Every rank gets the data of one rank.", "一个 rank 的数据发给所有 rank。"),
    story=Words(
        "One person has the picture; afterwards everyone has a copy of it.",
        "一个人手里有整幅画，最后每个人都有一份同样的画。",
    ),
)  # fmt: skip
scatter = Collective(
    "scatter", before=ROOT_ALL, after=EVERYONE_OWN, result=Result.OF_ROOT, rooted=True, blocked=True,
    bound=(1, 0),
    summary=Words(
        "One rank sends a different part of its data to each rank.",
        "一个 rank 把数据切成块，分给每个 rank 一块。",
    ),
    story=Words(
        "One person has the whole puzzle and deals it out; afterwards everyone holds a different piece.",
        "一个人拿着整副拼图，把它分发出去，最后每个人手里都有不同的一块。",
    ),
)  # fmt: skip
gather = Collective(
    "gather", before=EVERYONE_OWN, after=ROOT_ALL, result=Result.OF_OWNER, rooted=True, blocked=True,
    bound=(1, 0),
    summary=Words("One rank collects a part from every rank.", "一个 rank 从每个 rank 各收集一块数据。"),
    story=Words(
        "Everyone holds a piece of the puzzle; afterwards one person has the whole picture.",
        "每个人手里有一块拼图，最后由一个人拼出整幅画。",
    ),
)  # fmt: skip
reduce = Collective(
    "reduce", before=EVERYONE_ALL, after=ROOT_ALL, result=Result.REDUCED, rooted=True, bound=(0, 1),
    summary=Words("One rank gets the sum of all ranks' data.", "一个 rank 得到所有 rank 数据之和。"),
    story=Words(
        "Everyone holds a number; afterwards one person knows the sum.",
        "每个人手里有一个数，最后有一个人知道总和。",
    ),
)  # fmt: skip
all_gather = Collective(
    "all_gather", before=EVERYONE_OWN, after=EVERYONE_ALL, result=Result.OF_OWNER, blocked=True, bound=(1, 0),
    summary=Words("Every rank gets the parts of all ranks.", "每个 rank 都得到所有 rank 的块。"),
    story=Words(
        "Everyone holds a piece of the puzzle; afterwards everyone has the whole picture.",
        "每个人手里有一块拼图，最后每个人都有整幅画。",
    ),
)  # fmt: skip
reduce_scatter = Collective(
    "reduce_scatter", before=EVERYONE_ALL, after=EVERYONE_OWN, result=Result.REDUCED, blocked=True,
    keeps_input=True, bound=(1, 0),
    summary=Words(
        "Each rank gets one part of the sum of all ranks' data.", "对所有 rank 的数据求和，每个 rank 得到结果的一块。"
    ),
    story=Words(
        "Everyone holds a list of numbers; afterwards each person knows one line of the list of sums.",
        "每个人手里有一列数；逐项相加之后，每个人各知道其中一项的总和。",
    ),
)  # fmt: skip
all_reduce = Collective(
    "all_reduce", before=EVERYONE_ALL, after=EVERYONE_ALL, result=Result.REDUCED, bound=(2, 0),
    summary=Words("Every rank gets the sum of all ranks' data.", "每个 rank 都得到所有 rank 数据之和。"),
    story=Words(
        "Everyone holds a number; afterwards everyone knows the sum.",
        "每个人手里有一个数，最后每个人都知道总和。",
    ),
)  # fmt: skip
all_to_all = Collective(
    "all_to_all", before=EVERYONE_ALL, after=EVERYONE_ALL, result=Result.EXCHANGED, blocked=True,
    keeps_input=True, bound=(1, 0),
    summary=Words(
        "Every rank sends a different part of its data to every rank.",
        "每个 rank 给每个 rank 发一块不同的数据。",
    ),
    story=Words(
        "Everyone has written a letter to everyone; afterwards everyone has read their mail.",
        "每个人给每个人各写了一封信，最后每个人都收齐了寄给自己的信。",
    ),
)  # fmt: skip
barrier = Collective(
    "barrier", before=EVERYONE_ALL, after=EVERYONE_ALL, result=Result.REDUCED, bound=(0, 0), carries_data=False,
    summary=Words("No rank continues before all have arrived.", "所有 rank 都到达之后，才继续执行。"),
    story=Words(
        "Everyone waits at the gate; when the last one has come, all of them go through.",
        "大家在门口等，最后一个人到了，所有人才一起进门。",
    ),
)  # fmt: skip

COLLECTIVES = (
    broadcast, scatter, gather, reduce, all_gather, reduce_scatter, all_reduce, all_to_all, barrier,
)  # fmt: skip


def find(name: str) -> Collective:
    """Return the collective with the name ``name``; raise UsageError if there is none."""
    known = {collective.name: collective for collective in COLLECTIVES}
    if name in known:
        return known[name]
    near = get_close_matches(name, known, n=1)
    if near:
        raise UsageError(NO_COLLECTIVE_BUT_NEAR(name=repr(name), near=repr(near[0])))
    raise UsageError(NO_COLLECTIVE(name=repr(name), names=listed(known)))
