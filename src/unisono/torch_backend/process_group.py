"""The process group that ``init_process_group("unisono")`` creates.

Its methods have torch's names. Where torch has an older and a newer name for the same method, both exist.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
import weakref
from datetime import timedelta
from pathlib import Path
from types import FrameType
from typing import Any

import torch.distributed as dist

from unisono.comm.communicator import Communicator
from unisono.errors import UnisonoError
from unisono.torch_backend import (
    barriers,
    cuda_calls,
    cuda_fast_path,
    cuda_work,
    dispatch,
    fast_path,
    flight,
    future_threads,
    futures,
    introspection,
    lists,
    movement_ops,
    other_devices,
    point_to_point,
    profiling,
    reduction_ops,
    several,
    side_lane,
    sparse,
    streams,
    tensor_call,
    tensors,
    torch_errors,
    watchdog,
    work,
)
from unisono.torch_backend.dynamo import hide_from_dynamo
from unisono.torch_backend.functional import register_kernels
from unisono.torch_backend.options import Options, own_options
from unisono.torch_backend.registration import DEVICES
from unisono.torch_backend.store_rendezvous import meet_through_store
from unisono.torch_backend.torch_errors import raises_torch_errors


class UnisonoProcessGroup(
    introspection.GroupFacts,
    reduction_ops.ReductionOps,
    movement_ops.MovementOps,
    point_to_point.PointToPoint,
    dist.ProcessGroup,
):
    """A group of ranks, as torch.distributed knows it, on a communicator.

    ``init_process_group("unisono")`` and ``new_group`` make it: ``comm`` is the communicator, ``store`` torch's
    store, ``timeout`` that of the calls, ``options`` those of the group, and ``others`` the backends for other
    devices (default: none). The methods that torch calls are those of ``torch.distributed.ProcessGroup``, with its
    parameters.
    """

    def __init__(
        self, comm: Communicator, store: Any, timeout: timedelta, options: Options,
        others: other_devices.Others | None = None,
    ) -> None:  # fmt: skip
        dist.ProcessGroup.__init__(self, comm.rank, comm.size)
        for other in list(_open_groups):  # one of the same rank and size has compiled most programs already
            if (other.getRank(), other.getSize()) == (comm.rank, comm.size):
                comm.share_programs(other.communicator)
                break
        kept = flight.kept_calls(os.environ)
        settings = (comm, timeout.total_seconds(), options.algorithms)
        self._dispatcher = (
            flight.RecordingDispatcher(*settings, kept=kept) if kept else dispatch.GroupDispatcher(*settings)
        )
        self._store = store
        self._options = options
        self._facts = {device: introspection.BackendFacts(options, device) for device in DEVICES}
        self._description = "undefined"
        self._others = others or other_devices.Others()
        self._barriers = 0
        register_kernels()
        self.set_timeout(timeout)
        self._set_default_backend(dist.ProcessGroup.BackendType.CUSTOM)
        self._others.register(self)
        _open_groups.add(self)

    @property
    def communicator(self) -> Communicator:
        """The communicator of the group's ranks, for calls that torch does not have, such as those with a codec.

        Its calls and those of the group have one order, which must be the same on every rank.
        """
        return self._dispatcher.comm

    @classmethod
    def from_store(cls, backend_options: Any, options: Any, frame: FrameType | None = None) -> UnisonoProcessGroup:
        """Meet the other ranks through torch's store and return the group.

        ``backend_options`` is torch's description of the group, and ``options`` its ``pg_options``. ``frame`` is the
        frame of torch's function that makes the group, from which the backends for other devices are made (default:
        there are none). UsageError and CommError are raised as errors of torch's classes, too.
        """
        others = other_devices.Others()
        try:
            for group in list(_open_groups):
                # In a forked child the store is the parent's too; after destroy_process_group() it may start anew.
                group.communicator.check_process()
            others = other_devices.make_others(frame, options)
            world = dist.group.WORLD
            default = world._options if isinstance(world, cls) else None
            own = own_options(options, shared=bool(others.names), default=default)
            rank, size = backend_options.group_rank, backend_options.group_size
            store, timeout = backend_options.store, backend_options.timeout
            members = backend_options.global_ranks_in_group  # empty for the default group
            offers = [group.communicator.courier_for(members) for group in list(_open_groups) if members]
            usable = [offer for offer in offers if offer is not None]
            comm = meet_through_store(store, rank, size, timeout.total_seconds(), own, usable)
            if members:
                comm.name_ranks(members)
            return cls(comm, store, timeout, own, others)
        except UnisonoError as error:
            torch_errors.as_torch_error(error, torch_errors.AT_THE_START)
            others.shutdown()
            raise

    @raises_torch_errors
    def monitored_barrier(self, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
        """Wait for all ranks; the error on rank 0 names the missing ones."""
        self._dispatcher.check_open("monitored_barrier")
        self._barriers += 1
        # Here a negative timeout means that of the group; zero means no time at all.
        limited = timeout is not None and timeout >= work.NO_LIMIT
        seconds = timeout.total_seconds() if timeout is not None and limited else self._dispatcher.timeout_s
        comm = self._dispatcher.comm
        # The store may have served another group before: its barriers have other names.
        name = f"{comm.token}/{self._barriers}"
        barriers.monitored_barrier(self._store, comm.rank, comm.size, name, seconds, wait_all_ranks)

    def _start_coalescing(self, device: Any) -> None:
        self._dispatcher.coalescing = []

    @raises_torch_errors
    def _end_coalescing(self, device: Any) -> dist.Work:
        works, self._dispatcher.coalescing = self._dispatcher.coalescing or [], None
        return self._dispatcher.together(works, []) if works else tensor_call.FINISHED

    @raises_torch_errors
    def split_group(
        self, new_ranks: list[int], timeout: timedelta | None = None, opts: Any = None, group_name: str | None = None,
        group_desc: str | None = None, device_types: Any = None,
    ) -> UnisonoProcessGroup | None:  # fmt: skip
        """Make a group of some of our ranks. All of them must call this, each with the group that it belongs to."""
        comm, rank = self._dispatcher.comm, self.getRank()
        mine = rank in new_ranks
        part = comm.split(min(new_ranks) if mine else None, new_ranks.index(rank) if mine else 0)
        if part is None:
            return None
        store = dist.PrefixStore(f"{group_name or 'split'}/", self._store)
        limit = timeout if timeout is not None else timedelta(seconds=self._dispatcher.timeout_s)
        served = other_devices.Others(own=self._others.own, bound_device=getattr(self, "bound_device_id", None))
        options = opts if isinstance(opts, Options) else self._options
        group = UnisonoProcessGroup(part, store, limit, options, served)
        group.setGroupName(group_name or "")
        group.setGroupDesc(group_desc or "undefined")
        return group

    @raises_torch_errors
    def shutdown(self) -> None:
        """Finish what was started, and leave."""
        _open_groups.discard(self)
        self._dispatcher.close()
        self._others.shutdown()
        self._others = other_devices.Others()

    @raises_torch_errors
    def abort(self) -> None:
        """Abort all calls, on all ranks."""
        self._dispatcher.abort("the process group was aborted")
        for backend in self._others.backends.values():
            backend.abort()
        self._others = other_devices.Others()


def flight_record() -> dict[str, Any]:
    """Return the last calls of all groups of this process (see flight.py)."""
    return flight.record_of([group for group in list(_open_groups) if not group._dispatcher.closed])


def write_flight_record(folder: str | os.PathLike[str]) -> Path:
    """Write the last calls of all groups of this process to a file in ``folder``, for ``torchfrtrace``.

    Every rank writes one file; its path is returned.
    """
    return flight.write_record(flight_record(), folder, dist.get_rank())


LEAVE_S = 2.0  # for callbacks
WAKE_S = 0.05

_open_groups: weakref.WeakSet[UnisonoProcessGroup] = weakref.WeakSet()


@atexit.register
def _leave_all() -> None:
    # A process that exits with running calls will not finish them: abort them, so that the other ranks do not wait.
    ends = time.monotonic() + LEAVE_S
    while any(group._dispatcher.is_busy_on_gpu() for group in list(_open_groups)) and time.monotonic() < ends:
        time.sleep(WAKE_S)  # the calls of a GPU end by themselves, unless a rank is missing
    unfinished = [
        group
        for group in list(_open_groups)
        if not group._dispatcher.closed and group._dispatcher.has_unfinished_calls()
    ]
    for group in unfinished:
        group.abort()
    future_threads.finish_jobs(LEAVE_S)
    if unfinished and threading.active_count() > 1:
        time.sleep(WAKE_S)  # threads that waited in those calls leave the engine before the interpreter ends


def _leave_in_child() -> None:
    for group in list(_open_groups):
        group._dispatcher.leave_in_child()


os.register_at_fork(
    after_in_child=_leave_in_child
)  # after the hook of bootstrap/membership.py, which is imported before


hide_from_dynamo(
    barriers, cuda_calls, cuda_fast_path, cuda_work, dispatch, fast_path, flight, future_threads, futures,
    introspection, lists, movement_ops, other_devices, point_to_point, profiling, reduction_ops, several, side_lane,
    sparse, streams, tensor_call, tensors, torch_errors, watchdog, work,
    sys.modules[__name__],
)  # fmt: skip
