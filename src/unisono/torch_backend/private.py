"""Every part of torch that this backend uses and that torch does not promise to keep.

torch has no public interface for some of what a process group needs. Such names are used here, or are listed here as
attributes of torch's objects that other modules use. They are looked up when the backend is first used: if this torch
lacks one, a single error names all that are missing and the versions that were tested.
"""

from __future__ import annotations

import functools
import importlib
import warnings
from collections.abc import Iterable, Mapping
from types import FrameType
from typing import Any

import torch
import torch.distributed as dist

from unisono.errors import UsageError
from unisono.message import listed
from unisono.torch_backend import messages

TESTED = ("2.11", "2.13")  # versions of torch

# By name, the purpose: so that the error says what would not work.
NAMES = {
    "torch._C._autograd._profiler_enabled": "calls in profiles",
    "torch._C._profiler._RecordFunctionFast": "calls in profiles",
    "torch._C._dynamo.eval_frame.set_code_exec_strategy": "torch.compile",
    "torch._C._dynamo.eval_frame._FrameExecStrategy": "torch.compile",
    "torch._C._dynamo.eval_frame._FrameAction": "torch.compile",
    "torch._C._distributed_c10d._register_work": "functional collectives",
    "torch._C._distributed_c10d._resolve_process_group": "functional collectives",
    "torch._C._distributed_c10d._unregister_process_group": "backends of other devices",
    "torch.distributed.distributed_c10d._new_process_group_helper": "backends of other devices",
    "torch.distributed.distributed_c10d._world": "backends of other devices",
    "torch.distributed.ProcessGroup._register_backend": "devices of a group",
    "torch.distributed.ProcessGroup._set_default_backend": "devices of a group",
    "torch.distributed.ProcessGroup._device_types": "devices of a group",
    "torch.distributed.ProcessGroup._get_backend": "devices of a group",
    "torch.futures.Future._set_unwrap_func": "errors in futures",
    "torch.Tensor._nnz": "sparse tensors",
}
WITH_CUDA = {"torch._C._cuda_getCurrentRawStream": "CUDA tensors"}  # what a torch without CUDA lacks
MAKES_GROUPS = ("torch.distributed.distributed_c10d", "_new_process_group_helper")
# Its local variables that are read (see other_devices.py).
VARIABLES = (
    "backend", "backend_config", "device_id", "global_ranks_in_group", "group_desc", "group_name", "group_rank",
    "group_size", "pg", "store", "timeout",
)  # fmt: skip
# Methods of a group that torch calls under private names. A group that is written in Python overrides them: if torch
# renames one, it no longer calls ours.
METHODS = (
    "_allgather_base", "_end_coalescing", "_get_backend", "_get_sequence_number_for_group", "_reduce_scatter_base",
    "_set_group_desc", "_set_group_name", "_set_sequence_number_for_group", "_start_coalescing",
)  # fmt: skip
# What only some of the tested versions have.
OPTIONAL = {"torch._C._distributed_c10d._get_comm_profiling_name": "names of calls in profiles, dist.record_comm"}


def look_up(name: str) -> Any:
    """Return what has a dotted name; raise AttributeError if there is nothing."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        return functools.reduce(getattr, parts[length:], found)
    raise AttributeError(name)


def missing(names: Iterable[str]) -> list[str]:
    """Return those of the names that this torch does not have."""
    absent = []
    for name in names:
        try:
            look_up(name)
        except AttributeError:
            absent.append(name)
    return absent


def check(names: Mapping[str, str], variables: Iterable[str], methods: Iterable[str], version: str) -> None:
    """Raise an error that names all parts of torch that are missing; warn of a version that was not tested."""
    absent = [f"{name} ({names[name]})" for name in missing(names)]
    absent += missing(f"torch.distributed.ProcessGroup.{name}" for name in methods)
    if not absent:
        code = look_up(f"{MAKES_GROUPS[0]}.{MAKES_GROUPS[1]}").__code__
        if code.co_name == MAKES_GROUPS[1]:  # and not a function that replaces it
            absent = [f"the variable {name} of {code.co_name}" for name in variables if name not in code.co_varnames]
    tested = " and ".join(TESTED)
    if absent:
        raise UsageError(messages.PARTS_MISSING(version=version, parts=listed(absent), tested=tested))
    if not version.startswith(tuple(f"{known}." for known in TESTED)):
        warnings.warn(
            messages.UNTESTED_VERSION(tested=tested, version=version),
            stacklevel=2,
        )


def makes_groups(frame: FrameType) -> bool:
    """Tell whether a frame is one of the function of torch that makes groups."""
    return (frame.f_globals.get("__name__"), frame.f_code.co_name) == MAKES_GROUPS


def make_group(arguments: Mapping[str, Any], backend: str, options: Any) -> Any:
    """Have torch make a group of another backend with the arguments that it was given for ours.

    ``arguments`` are the variables of torch's function. The group is not entered in torch's lists: it is a part of
    ours.
    """
    c10d = importlib.import_module("torch.distributed.distributed_c10d")
    group, _ = c10d._new_process_group_helper(
        arguments["group_size"], arguments["group_rank"], arguments["global_ranks_in_group"], dist.Backend(backend),
        arguments["store"], arguments["group_name"], backend_options=options, timeout=arguments["timeout"],
        device_id=arguments["device_id"], group_desc=arguments["group_desc"],
    )  # fmt: skip
    world = c10d._world
    for entries in (world.pg_map, world.pg_names, world.pg_backend_config, world.pg_to_tag):
        entries.pop(group, None)
    for groups in world.tags_to_pg.values():
        if group in groups:
            groups.remove(group)
    look_up("torch._C._distributed_c10d._unregister_process_group")(arguments["group_name"])
    return group


HAS_CUDA = torch.backends.cuda.is_built()
check({**NAMES, **WITH_CUDA} if HAS_CUDA else NAMES, VARIABLES, METHODS, torch.__version__)

profiler_enabled = look_up("torch._C._autograd._profiler_enabled")
RecordFunctionFast = look_up("torch._C._profiler._RecordFunctionFast")
eval_frame = look_up("torch._C._dynamo.eval_frame")
# Neither a function itself nor what it calls, which may be wrapped by it or be in other parts of Unisono.
SKIP_CODE = eval_frame._FrameExecStrategy(eval_frame._FrameAction.SKIP, eval_frame._FrameAction.SKIP)
current_raw_stream: Any = look_up("torch._C._cuda_getCurrentRawStream") if HAS_CUDA else None
register_work = look_up("torch._C._distributed_c10d._register_work")
resolve_process_group = look_up("torch._C._distributed_c10d._resolve_process_group")
comm_profiling_name = str if missing(OPTIONAL) else look_up("torch._C._distributed_c10d._get_comm_profiling_name")
