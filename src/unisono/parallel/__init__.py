"""Strategies for training on many ranks: data, tensor, sequence and expert parallelism, and ZeRO.

Every strategy takes a *group*: a ``unisono.Communicator``, or any process group of torch.distributed (NCCL on a
cluster of GPUs, Gloo, MPI, or Unisono's backend). The code of the strategies is the same for all of them, and is
written to show which collective runs where, on which tensor.
"""

from unisono.parallel.attention import ParallelAttention
from unisono.parallel.batchnorm import SyncBatchNorm
from unisono.parallel.call_log import Entry, Log, record
from unisono.parallel.ddp import DataParallel
from unisono.parallel.full_state import full_state_dict, load_full_state_dict
from unisono.parallel.functions import (
    all_gather_then_reduce_scatter,
    all_gather_then_split,
    all_reduce_then_nothing,
    nothing_then_all_reduce,
    reduce_scatter_then_all_gather,
    split_then_all_gather,
)
from unisono.parallel.grad_scaler import ShardedGradScaler
from unisono.parallel.group import Group, group_of
from unisono.parallel.mesh import Mesh, mesh
from unisono.parallel.moe import Mixed, MixtureOfExperts, is_expert
from unisono.parallel.overlap import Overlap, measure_overlap, replay
from unisono.parallel.random_numbers import SplitDropout, own_random_numbers
from unisono.parallel.sequence import SequenceLayerNorm
from unisono.parallel.split import Split
from unisono.parallel.tensor import ColumnLinear, RowLinear
from unisono.parallel.transformer import ParallelBlock, ParallelMLP, ParallelTransformer
from unisono.parallel.vocabulary import VocabularyEmbedding, vocabulary_cross_entropy
from unisono.parallel.zero import Zero

__all__ = [
    "ColumnLinear",
    "DataParallel",
    "Entry",
    "Group",
    "Log",
    "Mesh",
    "Mixed",
    "MixtureOfExperts",
    "Overlap",
    "ParallelAttention",
    "ParallelBlock",
    "ParallelMLP",
    "ParallelTransformer",
    "RowLinear",
    "SequenceLayerNorm",
    "ShardedGradScaler",
    "Split",
    "SplitDropout",
    "SyncBatchNorm",
    "VocabularyEmbedding",
    "Zero",
    "all_gather_then_reduce_scatter",
    "all_gather_then_split",
    "all_reduce_then_nothing",
    "full_state_dict",
    "group_of",
    "is_expert",
    "load_full_state_dict",
    "measure_overlap",
    "mesh",
    "nothing_then_all_reduce",
    "own_random_numbers",
    "record",
    "reduce_scatter_then_all_gather",
    "replay",
    "split_then_all_gather",
    "vocabulary_cross_entropy",
]
