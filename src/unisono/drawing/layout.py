"""Finds the pairs of ranks that communicate, and the layout that shows them best.

*Layout*: the positions of the ranks on the stage. ``ring``: a circle; ``line``: a row; ``tree``: the root on top;
``grid``: rows and columns; ``nodes``: a box around the ranks of each node. The page opens with the best one, and the
reader may choose another.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from math import isqrt
from typing import Any

import numpy as np

from unisono.algorithms.hierarchical import columns_of
from unisono.algorithms.nodes import Nodes, nodes_of
from unisono.drawing.step_capture import Column
from unisono.errors import UsageError
from unisono.schedule import Schedule

RANKS_IN_A_NODE = 4  # for algorithms without nodes


def pattern(schedule: Schedule, messages: Mapping[str, Column], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the best layout, and the data that each layout needs.

    ``options`` are those of the algorithm, with their defaults; ``node`` and ``rows`` determine the positions.
    """
    size, root = schedule.size, schedule.root or 0
    peers = _peers(size, messages)
    nodes, knows_nodes = _nodes(size, options)
    columns, knows_columns = _columns(size, options)
    parents, order = _tree(peers, root)
    edges = sum(map(len, peers)) // 2
    is_tree = edges == size - 1 and len(order) == size
    is_line = is_tree and max(map(len, peers)) <= 2
    if knows_nodes:
        best = "nodes"
    elif knows_columns:
        best = "grid"
    elif is_line and size > 2:
        best = "line"
    elif is_tree and size > 2:
        best = "tree"
    else:
        best = "ring"
    return {
        "best": best,
        "parents": parents,
        "line": _along(peers, root) if is_line else list(range(size)),
        "nodes": [list(ranks) for ranks in nodes],
        "columns": columns,
    }


def pairs_of(size: int, messages: Mapping[str, Column]) -> list[list[int]]:
    """Return every pair of ranks that communicate, once."""
    return [[rank, peer] for rank, near in enumerate(_peers(size, messages)) for peer in near if rank < peer]


def _peers(size: int, messages: Mapping[str, Column]) -> list[list[int]]:
    """Return the neighbours of each rank: the ranks that it sends to or receives from."""
    src, dst = messages["src"].astype(np.int64), messages["dst"].astype(np.int64)
    known = dst >= 0
    pairs = np.unique(np.minimum(src, dst)[known] * size + np.maximum(src, dst)[known])
    peers: list[list[int]] = [[] for _ in range(size)]
    for pair in pairs.tolist():
        low, high = divmod(pair, size)
        peers[low].append(high)
        peers[high].append(low)
    return peers


def _tree(peers: list[list[int]], root: int) -> tuple[list[int], list[int]]:
    """Return the parent of each rank on the shortest path from the root (-1: none), and the ranks reached."""
    parents = [-1] * len(peers)
    reached = [root]
    queue = deque(reached)
    seen = {root}
    while queue:
        rank = queue.popleft()
        for peer in sorted(peers[rank], key=lambda peer: (peer - root) % len(peers)):
            if peer not in seen:
                seen.add(peer)
                parents[peer] = rank
                reached.append(peer)
                queue.append(peer)
    return parents, reached


def _along(peers: list[list[int]], root: int) -> list[int]:
    """Return the ranks of a line from one end to the other, starting at the root if it is an end."""
    ends = [rank for rank, near in enumerate(peers) if len(near) < 2]
    rank, before = (root if root in ends else ends[0]), -1
    order = [rank]
    while following := [peer for peer in peers[rank] if peer != before]:
        before, rank = rank, following[0]
        order.append(rank)
    return order


def _nodes(size: int, options: Mapping[str, Any]) -> tuple[Nodes, bool]:
    if "node" in options:
        try:
            return nodes_of(size, options["node"]), True
        except UsageError:  # a user's option of that name may mean something else
            pass
    return nodes_of(size, RANKS_IN_A_NODE), False


def _columns(size: int, options: Mapping[str, Any]) -> tuple[int, bool]:
    if "rows" in options:
        try:
            return columns_of(size, options["rows"]), True
        except UsageError:
            pass
    return max(1, isqrt(size - 1) + 1), False
