"""The link of the survivors of a broken communicator (docs/adr/0071).

They agree on its members in the shared memory of the broken communicator, and meet in new memory.
"""

from __future__ import annotations

from unisono.bootstrap import messages
from unisono.bootstrap.membership import Link
from unisono.errors import CommError, Excluded, UsageError

MOST_RANKS = 4096  # most_survivors in engine/include/unisono/memory.hpp


def link_of_survivors(link: Link, timeout_s: float) -> Link:
    """Return the link of the ranks that are left of ``link``, with new numbers in the old order.

    A rank that does not answer for ``timeout_s`` seconds is excluded. ``link`` stays open.
    """
    known = list(range(link.size))  # the ranks in `link` of the members of `broken`
    broken = link
    while True:
        made, members = _agree(broken, timeout_s)
        known = [known[member] for member in members]
        if broken is not link:
            broken.close()
        try:
            made.endpoint.meet(timeout_s)
        except Excluded:
            made.close()
            raise
        except CommError:  # a member was lost after the agreement
            broken = made
        except BaseException:
            made.close()
            raise
        else:
            made.parent_ranks = known
            return made


def check_can_shrink(link: Link) -> None:
    """Raise UsageError if the ranks of ``link`` cannot agree on the survivors."""
    link.check_open("shrink")
    if link.hosts.count > 1 or link.resources.courier is not None:
        raise UsageError(messages.SHRINK_ON_SEVERAL_HOSTS(hosts=link.hosts.count))
    if link.size > MOST_RANKS:
        raise UsageError(messages.SHRINK_TOO_LARGE(size=link.size, most=MOST_RANKS))


def _agree(link: Link, timeout_s: float) -> tuple[Link, list[int]]:
    """Return the next link, and its members as ranks of ``link``."""
    assert link.resources.first is not None
    members, offset = link.endpoint.agree_on_survivors(link.resources.first, timeout_s)
    if link.rank not in members:
        link.endpoint.raise_if_broken()
    made = Link(
        link.resources, offset, members.index(link.rank), [link.processes[each] for each in members], link.config,
        link.endpoint.timeout_s, link.trace, [link.job_ranks[each] for each in members], link.hosts.of(members),
        first_ranks=[link.first_ranks[each] for each in members],
    )  # fmt: skip
    return made, members
