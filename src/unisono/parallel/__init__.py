"""Training on many ranks, written to be read: which collective runs where, and on which tensor.

Everything here takes a *group*: a ``unisono.Communicator``, or any process group of torch.distributed (NCCL on a
cluster of GPUs, Gloo, MPI, or Unisono's own backend). The code of the strategies is the same.
"""

from unisono.parallel.batchnorm import SyncBatchNorm
from unisono.parallel.ddp import DataParallel
from unisono.parallel.group import Group, group_of
from unisono.parallel.mesh import Mesh, mesh
from unisono.parallel.recording import Entry, Log, record
from unisono.parallel.zero import Zero

__all__ = ["DataParallel", "Entry", "Group", "Log", "Mesh", "SyncBatchNorm", "Zero", "group_of", "mesh", "record"]
