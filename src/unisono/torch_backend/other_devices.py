"""Tensors on other devices: in a group such as "cpu:unisono,cuda:nccl" the other backend gets them.

torch makes no further backend once it has a group that is written in Python. So the group has torch make the others,
with the arguments that torch was given: they are, and fail as, those that torch makes for "cpu:gloo,cuda:nccl".
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, TypeVar

import torch
import torch.distributed as dist

from unisono.errors import UnisonoError, UsageError
from unisono.torch_backend import fast_path, messages, private
from unisono.torch_backend.lists import CHECKS
from unisono.torch_backend.options import Options
from unisono.torch_backend.registration import DEVICES, NAME
from unisono.torch_backend.torch_errors import as_torch_error

Method = TypeVar("Method", bound=Callable[..., Any])
# The names that torch's own groups have for the arguments of their methods, and ours. A root stands where other calls
# have their options.
SPELLINGS = {
    "tensor": "tensors", "root": "opts", "output_tensors": "outs", "output_tensor": "outs",
    "input_tensors": "sources", "input_tensor": "sources", "outputs": "outs", "inputs": "sources",
    "output": "out", "input": "source", "output_lists": "out_lists", "input_list": "sources",
    "output_split_sizes": "out_splits", "input_split_sizes": "splits", "dstRank": "dst", "srcRank": "src",
}  # fmt: skip
FAST: Mapping[str, Callable[..., Any]] = {
    "broadcast": fast_path.broadcast,
    "_allgather_base": fast_path.all_gather_into,
    "allgather": fast_path.all_gather,
    "reduce": fast_path.reduce,
    "_reduce_scatter_base": fast_path.reduce_scatter,
    "alltoall_base": fast_path.all_to_all,
}
CUSTOM = dist.ProcessGroup.BackendType.CUSTOM


def first_tensor(given: Any) -> torch.Tensor | None:
    """Return the first tensor of a tensor, a list, a list of lists, or of several of these."""
    if isinstance(given, torch.Tensor):
        return given
    if isinstance(given, list | tuple):
        for part in given:
            found = first_tensor(part)
            if found is not None:
                return found
    return None


def dispatch_by_device(method: Method) -> Method:
    """Have a method of the group call the same method of the backend of its tensors' device.

    Errors of ours that leave the method are errors of torch's, too. Calls that can take the fast path do.
    """
    check, fast = CHECKS.get(method.__name__), FAST.get(method.__name__)

    @functools.wraps(method)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        if fast is not None and not kwargs:
            work = fast(self, *args)
            if work is not None:
                return work
        if kwargs:
            kwargs = {SPELLINGS.get(name, name): value for name, value in kwargs.items()}
        tensor = first_tensor(args) if args else first_tensor(list(kwargs.values()))
        try:
            other = None if tensor is None else self.other_backend_of(tensor)
            if other is not None:
                return getattr(other, method.__name__)(*args, **kwargs)
            if check is not None:
                check(self, *args, **kwargs)
            return method(self, *args, **kwargs)
        except UnisonoError as error:
            as_torch_error(error)
            raise

    return wrapper  # type: ignore[return-value]


@dataclass
class Others:
    """The backends of the other devices of a group."""

    backends: dict[str, Any] = field(default_factory=dict)  # by device type
    names: dict[str, str] = field(default_factory=dict)
    own: tuple[str, ...] = DEVICES  # the types of devices whose tensors this backend gets
    bound_device: torch.device | None = None  # init_process_group's device_id

    def register(self, group: dist.ProcessGroup) -> None:
        """Tell torch which devices the group serves, and give its C++ the backends that it may ask for."""
        if self.bound_device is not None:
            group.bound_device_id = self.bound_device
        for device in self.own:
            group._register_backend(torch.device(device), CUSTOM)
        for device, backend in self.backends.items():
            kind = dist.Backend.backend_type_map.get(self.names[device], CUSTOM)
            # torch has one backend of each kind in a group, and ours, which C++ does not see, is of the kind CUSTOM.
            seen = () if kind == CUSTOM else (backend,)
            group._register_backend(torch.device(device), kind, *seen)

    def shutdown(self) -> None:
        """Shut all of them down."""
        for backend in self.backends.values():
            backend.shutdown()


def make_others(frame: FrameType | None, options: Any) -> Others:
    """Make the backends of the other devices of a group; fail if there is one that torch cannot make.

    ``frame`` is the one that asks for our group. torch tells a backend nothing about the others, so this looks at the
    arguments of torch's function that makes groups; a caller that is another function wants no other backend.
    """
    if frame is None or not private.makes_groups(frame):
        return Others()
    arguments = frame.f_locals
    named: Mapping[str, str] = arguments["backend_config"].get_device_backend_map()
    for device, name in named.items():
        if name == NAME and device not in DEVICES:
            raise UsageError(messages.OTHER_DEVICE_TYPE(backend=repr(str(arguments["backend"])), device=device))
    names = {device: str(name) for device, name in named.items() if name != NAME}
    made = {device.type for device in arguments["pg"]._device_types}  # by torch: those that are named before ours
    own = tuple(device for device, name in named.items() if name == NAME)
    found = Others({}, names, own, arguments["device_id"])
    for device, name in names.items():
        group = arguments["pg"]
        if device not in made:
            given = options.others.get(device) if isinstance(options, Options) else options
            group = private.make_group(arguments, f"{device}:{name}", given)
        found.backends[device] = group._get_backend(torch.device(device))
    return found
