"""The Unisono program of each algorithm of the libraries that were measured, and the algorithms that have none.

*Copied*: the bytes that an implementation copies in memory besides its messages, as a multiple of the vector: from
the send buffer to a working buffer at the beginning, packing, and reordering at the end. They are counted in
libbine's source and from what Open MPI's algorithms do; Fujitsu MPI is assumed to do the same. Temporary buffers are
counted in the same way, but not for Fujitsu MPI: what its C library keeps is not known.

libbine's algorithms exchange the same messages as recursive doubling and halving with partners at other distances.
They are mapped to those programs, and to a program of their own only where the messages differ (block by block).
"""

from __future__ import annotations

from dataclasses import dataclass

import unisono
from grading import library_programs as library
from unisono.algorithms.declaration import Algorithm

PIECES = 8  # into which messages are cut that a rank sends at once


@dataclass(frozen=True)
class Implementation:
    """A program, and what a library does besides."""

    program: Algorithm | str
    copied: float = 0.0
    at_once: bool = False  # long messages that a rank sends at once take turns
    sent: float = 0.0  # the length of a temporary buffer from which a rank sends, as a multiple of the vector
    received: float = 0.0  # and of one into which it only receives
    blocks: int = 0  # the number of temporary buffers for one received block

    @property
    def algorithm(self) -> Algorithm:
        """The program."""
        return unisono.find(self.program) if isinstance(self.program, str) else self.program


def _of(
    program: Algorithm | str, copied: float = 0.0, at_once: bool = False,
    sent: float = 0.0, received: float = 0.0, blocks: int = 0,
) -> Implementation:  # fmt: skip
    return Implementation(program, copied, at_once, sent, received, blocks)


# Open MPI 4.1 (names that end in _ompi) and libbine (_over) on MareNostrum 5 and Leonardo.
OPEN_MPI: dict[str, dict[str, Implementation]] = {
    "ALLREDUCE": {
        "recursive_doubling_ompi": _of("all_reduce/recursive_doubling", 1, sent=1),
        "recursive_doubling_over": _of("all_reduce/recursive_doubling", 1, sent=1),
        "bine_lat_over": _of("all_reduce/recursive_doubling", 1, sent=1),
        "rabenseifner_ompi": _of("all_reduce/rabenseifner", 1, received=1),
        "bine_bdw_remap_over": _of("all_reduce/rabenseifner", 1, received=1),
        "bine_bdw_static_over": _of("all_reduce/rabenseifner", 1, received=1),
        "ring_ompi": _of("all_reduce/ring", 1, blocks=2),
        "ring_over": _of("all_reduce/ring", 1, blocks=2),
        "rabenseifner_over": _of("all_reduce/rabenseifner", 1, received=1),
    },
    "ALLGATHER": {
        "recursive_doubling_ompi": _of("all_gather/recursive_doubling"),
        "recursive_doubling_over": _of("all_gather/recursive_doubling"),
        "bine_send_remap_over": _of("all_gather/recursive_doubling"),
        "bine_2_blocks_over": _of("all_gather/recursive_doubling"),
        "bine_permute_remap_over": _of("all_gather/recursive_doubling", 1),
        "bine_block_by_block_over": _of(library.swing_blocks_all_gather),
        "bine_block_by_block_over_any_even": _of(library.swing_blocks_all_gather),
        "sparbit_over": _of(library.sparbit_all_gather),
        "neighbor_ompi": _of("all_gather/neighbour_exchange"),
        "ring_ompi": _of("all_gather/ring"),
        "ring_over": _of("all_gather/ring"),
        "k_bruck_over": _of("all_gather/bruck", 2, sent=1),
    },
    "REDUCE_SCATTER": {
        "recursive_halving_ompi": _of("reduce_scatter/recursive_halving", 1, sent=1, received=1),
        "recursive_halving_over": _of("reduce_scatter/recursive_halving", 1, sent=1, received=1),
        "recursive_distance_doubling_over": _of("reduce_scatter/recursive_halving", 1, sent=1, received=1),
        "bine_permute_remap_over": _of("reduce_scatter/recursive_halving", 1, sent=1, received=1),
        "bine_send_remap_over": _of("reduce_scatter/recursive_halving", 1, sent=1, received=1),
        "bine_block_by_block_over": _of(library.swing_blocks_reduce_scatter, 1, sent=1, received=1),
        "bine_block_by_block_any_even": _of(library.swing_blocks_reduce_scatter, 1, sent=1, received=1),
        "ring_ompi": _of("reduce_scatter/ring", 1, sent=1, blocks=2),
        "ring_over": _of("reduce_scatter/ring", 1, sent=1, blocks=2),
    },
    "ALLTOALL": {
        "linear_ompi": _of("all_to_all/naive"),
        "linear_sync_ompi": _of("all_to_all/naive"),
        "pairwise_ompi": _of("all_to_all/pairwise"),
        "modified_bruck_ompi": _of("all_to_all/bruck", 7, sent=1),
    },
    "BCAST": {
        "binomial_ompi": _of(library.binomial_at_once_broadcast, at_once=True),
        "bine_lat_over": _of(library.binomial_at_once_broadcast, at_once=True),
        "bine_lat_reversed_over": _of(library.binomial_at_once_broadcast, at_once=True),
        "bine_lat_i_new_over": _of(library.binomial_at_once_broadcast, at_once=True),
        "bine_lat_new_over": _of("broadcast/tree"),
        "binary_ompi": _of(library.binary_broadcast, at_once=True),
        "split_binary_ompi": _of(library.split_binary_broadcast, at_once=True),
        "knomial_ompi": _of(library.knomial_broadcast, at_once=True),
        "scatter_allgather_ompi": _of(library.scatter_doubling_broadcast),
        "scatter_allgather_over": _of(library.scatter_doubling_broadcast),
        "bine_bdw_remap_over": _of(library.scatter_doubling_broadcast),
        "scatter_allgather_ring_ompi": _of("broadcast/scatter_all_gather"),
    },
    "SCATTER": {
        "linear_nb_ompi": _of(library.linear_at_once_scatter),
        "linear_ompi": _of("scatter/naive"),
        "binomial_ompi": _of("scatter/tree", sent=0.5),
        "bine_over": _of("scatter/tree", sent=0.5),
    },
    "GATHER": {
        "linear_ompi": _of("gather/naive"),
        "binomial_ompi": _of("gather/tree", sent=0.5),
        "bine_over": _of("gather/tree", sent=0.5),
    },
    "REDUCE": {
        "linear_ompi": _of("reduce/naive", received=1),
        "binomial_ompi": _of("reduce/tree", 1, sent=1, received=1),
        "bine_lat_over": _of("reduce/tree", 1, sent=1, received=1),
        "binary_ompi": _of(library.binary_reduce, 1, sent=1, received=1),
        "rabenseifner_ompi": _of(library.halving_gather_reduce, 1, sent=1, received=1),
        "bine_bdw_over": _of(library.halving_gather_reduce, 1, sent=1, received=1),
    },
}

# Cray MPICH 8.1 (names that end in _mpich) and libbine on LUMI.
CRAY_MPICH: dict[str, dict[str, Implementation]] = {
    collective: {name: made for name, made in implementations.items() if "_over" in name or "any_even" in name}
    for collective, implementations in OPEN_MPI.items()
}
CRAY_MPICH["ALLREDUCE"]["recursive_doubling_mpich"] = _of("all_reduce/recursive_doubling", 1)
CRAY_MPICH["ALLGATHER"] |= {
    "recursive_doubling_mpich": _of("all_gather/recursive_doubling"),
    "brucks_mpich": _of("all_gather/bruck", 1),
    "ring_mpich": _of("all_gather/ring"),
}
CRAY_MPICH["REDUCE_SCATTER"]["recursive_halving_mpich"] = _of("reduce_scatter/recursive_halving", 1)

# Fujitsu MPI 4.0 (an Open MPI) on Fugaku, and libbine on top of it (names that contain MPI).
FUJITSU_MPI: dict[str, dict[str, Implementation]] = {
    "ALLREDUCE": {
        "default-recursive_doubling": _of("all_reduce/recursive_doubling", 1),
        "default-ring": _of("all_reduce/ring", 1),
    },
    "ALLGATHER": {
        "default-recursive-doubling": _of("all_gather/recursive_doubling"),
        "default-bruck": _of("all_gather/bruck", 1),
        "default-neighbor": _of("all_gather/neighbour_exchange"),
        "default-ring": _of("all_gather/ring"),
        "BINE-VEC_DOUBLING_CONT_PERMUTE-MPI-0-1": _of("all_gather/recursive_doubling", 1),
        "BINE-VEC_DOUBLING_CONT_SEND-MPI-0-1": _of("all_gather/recursive_doubling"),
    },
    "REDUCE_SCATTER": {
        "default-recursive-halving": _of("reduce_scatter/recursive_halving", 1),
        "default-ring": _of("reduce_scatter/ring", 1),
        "BINE-VEC_HALVING_CONT_PERMUTE-MPI-0-1": _of("reduce_scatter/recursive_halving", 2),
    },
    "ALLTOALL": {
        "default-pairwise": _of("all_to_all/pairwise"),
        "default-linear": _of("all_to_all/naive"),
        "default-linear-sync": _of("all_to_all/naive"),
        "default-modified-bruck": _of("all_to_all/bruck", 5),
        "BRUCK-LOG-MPI-0-1": _of("all_to_all/bruck", 5),
    },
    "BCAST": {
        "default-binomial": _of("broadcast/tree"),
        "default-binary-tree": _of(library.binary_broadcast),
        "default-split-binary-tree": _of(library.split_binary_broadcast),
    },
    "SCATTER": {
        "default-basic-linear": _of("scatter/naive"),
        "default-binomial": _of("scatter/tree"),
        "BINE-BINOMIAL_TREE_CONT_PERMUTE-MPI-0-1": _of("scatter/tree"),
    },
    "GATHER": {
        "default-basic-linear": _of("gather/naive"),
        "default-binomial": _of("gather/tree"),
        "BINE-BINOMIAL_TREE_CONT_PERMUTE-MPI-0-1": _of("gather/tree"),
    },
    "REDUCE": {
        "default-binomial": _of("reduce/tree"),
        "default-binary": _of(library.binary_reduce),
        "default-linear": _of("reduce/naive"),
        "BINE-REDUCE_SCATTER_GATHER-MPI-0-1": _of(library.halving_gather_reduce, 1),
    },
}

# Reasons for which rows have no program, by a part of their name.
NO_PROGRAM = {
    "chain": "a chain with segments of unknown size",
    "pipeline": "a chain with segments of unknown size",
    "crp": "Tofu-specific, with several ports",
    "doublespread": "Tofu-specific, with several ports",
    "use-bcast": "a broadcast of the library's choice",
    "basic-linear": "falls back to the library's default on 2x2x2 nodes (the same times)",
    "LOG": "libbine's logarithmic all-to-all",
    "UTOFU": "uTofu instead of MPI: another software stack, and up to six ports with one program each",
    "segmented": "libbine's segmented all-reduce: its segments depend on the size, Unisono's on the engine",
    "dtype": "sends derived datatypes, which the library packs and unpacks",
    "any_even": "libbine's variant for sizes that are not powers of two",
    "synch": "Open MPI's synchronised gather: messages of two kinds",
    "in_order": "a binary tree that keeps the order of ranks",
    "trix": "Tofu hardware offload or several ports",
    "trinary": "several ports with one tree each",
    "bintree": "several ports with one tree each",
    "3dtorus": "Tofu-specific, with several ports",
    "blacc": "Tofu-specific, with several ports",
    "gtbc": "gather and broadcast with Tofu-specific parts",
    "rdbc": "reduce and broadcast with Tofu-specific parts",
    "nonoverlapping": "reduce and broadcast of the library's choice",
    "non-overlapping": "reduce and scatter of the library's choice",
}
