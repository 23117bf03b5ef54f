"""The flight record: the last calls of each group, in the format that torch's flight recorder writes.

torch's recorder is written in C++ and takes no entries from a process group in Python. So this keeps a record that
``torchfrtrace`` reads: ``write_flight_record(folder)`` on each rank, then ``torchfrtrace folder``. As with Gloo,
TORCH_FR_BUFFER_SIZE says how many calls of a group are kept; unless it is set, none are.
"""

from __future__ import annotations

import os
import pickle
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch.distributed as dist

from unisono.torch_backend.cuda_work import CudaWork
from unisono.torch_backend.dispatch import GroupDispatcher
from unisono.torch_backend.tensor_call import CallOptions, TensorCall
from unisono.torch_backend.tensors import Tensor
from unisono.torch_backend.work import PendingWork

VERSION = "2.10"  # of torch's format
SIZES = ("TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE")  # torch's names; the second is an older one
PREFIX = "unisono_rank_"  # of file names; the rank follows
TORCHFRTRACE_KNOWS = "gloo"  # it refuses the name of a backend that it does not know
FRAMES = 24
# torch's names of calls where they differ from those of its functions.
NAMES = {"all_gather_into_tensor": "_all_gather_base", "reduce_scatter_tensor": "_reduce_scatter_base"}
TYPES = {
    "float32": "Float", "float64": "Double", "float16": "Half", "bfloat16": "BFloat16", "int8": "Char",
    "uint8": "Byte", "int16": "Short", "int32": "Int", "int64": "Long", "bool": "Bool", "complex64": "ComplexFloat",
    "complex128": "ComplexDouble",
}  # fmt: skip


def kept_calls(environment: Mapping[str, str]) -> int:
    """Return the number of calls of a group that the user wants on record."""
    found = next((environment[name] for name in SIZES if name in environment), "0")
    return max(0, int(found)) if found.strip().lstrip("-").isdigit() else 0


class Entry:
    """A call on the record."""

    def __init__(self, number: int, call: TensorCall, timeout_s: float) -> None:
        self.number, self.timeout_s = number, timeout_s
        self.name = NAMES.get(call.name, call.name)
        self.sizes = [list(tensor.shape) for tensor in (call.source, call.out)]
        self.dtypes = [_type_of(tensor) for tensor in (call.source, call.out)]
        self.thread = threading.current_thread()
        self.created_ns = time.time_ns()
        self.frames = _frames()
        self.work: Any = None  # of a call that runs in the background
        self.is_over = False

    def state(self) -> str:
        """Return the state of the call in torch's words."""
        if self.work is not None and self.work.done():
            self.is_over = True
        return "completed" if self.is_over else "scheduled"

    def as_torch(self, group: Any) -> dict[str, Any]:
        """Return the entry as torch writes it."""
        return {
            "frames": self.frames,
            "record_id": self.number - 1,
            "pg_id": 0,
            "process_group": (group.getGroupName(), group.getGroupDesc()),
            "thread_name": self.thread.name,
            "thread_id": str(self.thread.native_id),
            "collective_seq_id": self.number,
            "p2p_seq_id": 0,
            "op_id": self.number,
            "profiling_name": f"{TORCHFRTRACE_KNOWS}:{self.name}",
            "time_created_ns": self.created_ns,
            "input_sizes": (tuple(self.sizes[0]),),
            "input_dtypes": [self.dtypes[0]],
            "output_sizes": (tuple(self.sizes[1]),),
            "output_dtypes": [self.dtypes[1]],
            "state": self.state(),
            "time_discovered_started_ns": None,
            "time_discovered_completed_ns": None,
            "retired": self.is_over,
            "timeout_ms": round(self.timeout_s * 1000),
            "is_p2p": False,
        }


class RecordingDispatcher(GroupDispatcher):
    """Makes the calls of a group, and keeps the last of them on record."""

    records_calls = True

    def __init__(self, *args: Any, kept: int) -> None:
        super().__init__(*args)
        self.entries: deque[Entry] = deque(maxlen=kept)
        self.recorded = 0

    def call(self, call: TensorCall, options: CallOptions) -> dist.Work:
        """Make a call; it is on the record before it begins."""
        self.recorded += 1
        entry = Entry(self.recorded, call, self.timeout_s if options.limit_s is None else options.limit_s)
        self.entries.append(entry)
        work = super().call(call, options)
        if isinstance(work, CudaWork):
            entry.work = work.over()
        elif isinstance(work, PendingWork):
            entry.work = work.pending  # and not the work, which keeps the user's tensors
        else:
            entry.is_over = True
        return work


def record_of(groups: Sequence[Any]) -> dict[str, Any]:
    """Return the record of groups as torch's recorder would have it."""
    entries, config, status = [], {}, {}
    for group in groups:
        found = group._dispatcher
        if not isinstance(found, RecordingDispatcher):
            continue
        name = group.getGroupName()
        mine = [entry.as_torch(group) for entry in list(found.entries)]
        entries += mine
        over = [entry["collective_seq_id"] for entry in mine if entry["state"] == "completed"]
        config[name] = {"name": name, "desc": group.getGroupDesc(), "ranks": str(_ranks_of(group))}
        status[name] = {
            "last_enqueued_collective": found.recorded,
            "last_started_collective": -1,
            "last_completed_collective": max(over, default=-1),
        }
    entries.sort(key=lambda entry: entry["time_created_ns"])
    for number, entry in enumerate(entries):
        entry["record_id"] = number
    return {"version": VERSION, "pg_config": config, "pg_status": status, "entries": entries}


def write_record(record: Mapping[str, Any], folder: str | os.PathLike[str], rank: int) -> Path:
    """Write a record where ``torchfrtrace`` looks for it; return the path."""
    path = Path(folder) / f"{PREFIX}{rank}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pickle.dumps(dict(record)))
    return path


def _ranks_of(group: Any) -> list[int]:
    try:
        return list(dist.get_process_group_ranks(group))
    except (KeyError, ValueError, RuntimeError):  # a group that torch does not know
        return list(range(group.getSize()))


def _type_of(tensor: Tensor) -> str:
    name = str(tensor.dtype).removeprefix("torch.")
    return TYPES.get(name, name)


def _frames() -> list[dict[str, Any]]:
    """Return the frames of the user's program that make the call, the innermost function first."""
    found: list[dict[str, Any]] = []
    frame = sys._getframe(1)
    while frame is not None and len(found) < FRAMES:
        if not str(frame.f_globals.get("__name__", "")).startswith("unisono.torch_backend"):
            code = frame.f_code
            found.append({"name": code.co_name, "filename": code.co_filename, "line": frame.f_lineno})
        frame = frame.f_back  # type: ignore[assignment]
    return found
