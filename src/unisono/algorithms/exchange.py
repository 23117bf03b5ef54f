"""All-to-all exchanges: in pairs, or in two hops, first inside the node and then between nodes (see nodes.py)."""

from itertools import accumulate

from unisono.algorithms.declaration import Steps, algorithm, one_per_rank
from unisono.algorithms.nodes import Node, Nodes, home_of, nodes_of
from unisono.collectives import all_to_all
from unisono.schedule import copy, recv, send
from unisono.schedule.varying import Table


@algorithm(all_to_all, chunks=one_per_rank)
def pairwise_all_to_all(rank: int, size: int) -> Steps:
    """In step d, exchange blocks with the ranks d to the right and d to the left (Thakur et al., 2005)."""
    inp, out = all_to_all.slots(size)
    yield copy(inp[rank], to=out[rank])
    for distance in range(1, size):
        right, left = (rank + distance) % size, (rank - distance) % size
        yield send(inp[right], dst=right), recv(out[left], src=left)


def served(index: int, members: int, nodes: Nodes) -> list[int]:
    """Return the destinations to which member ``index`` of a node of ``members`` ranks sends.

    Those that have the same position in their node; where a node is larger than this one, positions wrap around.
    """
    return [rank for ranks in nodes for rank in ranks[index::members]]


def shelf_size(size: int, node: Node) -> int:
    """Return the scratch slots that the busiest rank needs: one for each block that it forwards."""
    nodes = nodes_of(size, node)
    return max(members * len(served(0, members, nodes)) for members in {len(ranks) for ranks in nodes})


@algorithm(all_to_all, chunks=one_per_rank, scratch=shelf_size)
def hierarchical_all_to_all(rank: int, size: int, node: Node = 4) -> Steps:
    """Collect blocks with the same destination inside the node, then send them there as one bundle.

    (Two-level all-to-all, as in mixture-of-experts training: Rajbhandari et al., 2022.)
    """
    inp, out = all_to_all.slots(size)
    nodes = nodes_of(size, node)
    home = home_of(rank, nodes)
    ranks, members = nodes[home], len(nodes[home])
    me = ranks.index(rank)
    mine = served(me, members, nodes)
    shelf = [[out.stop + peer * len(mine) + position for position in range(len(mine))] for peer in range(members)]

    yield copy([inp[destination] for destination in mine], to=shelf[me])
    for distance in range(1, members):
        to, source = (me + distance) % members, (me - distance) % members
        yield (
            send([inp[destination] for destination in served(to, members, nodes)], dst=ranks[to]),
            recv(shelf[source], src=ranks[source]),
        )

    # The blocks for the destinations in a node are at consecutive positions of every row of the shelf.
    first = Table(accumulate((len(each[me::members]) for each in nodes), initial=0))

    def bundle(position: int) -> list[int]:
        return [row[0] + position for row in shelf]

    yield copy(bundle(first[home]), to=[out[peer] for peer in ranks])
    for distance in range(1, len(nodes)):
        target, source_node = (home + distance) % len(nodes), (home - distance) % len(nodes)
        source_ranks = nodes[source_node]
        yield (
            *(send(bundle(first[target] + at), dst=peer) for at, peer in enumerate(nodes[target][me::members])),
            recv([out[peer] for peer in source_ranks], src=source_ranks[me % len(source_ranks)]),
        )
