"""The communicator: the calls people make, how ranks meet, and which algorithm does the work."""

from unisono.comm.communicator import Communicator
from unisono.comm.joining import connect
from unisono.comm.local_ranks import spawn
from unisono.comm.work import Work

__all__ = ["Communicator", "Work", "connect", "spawn"]
