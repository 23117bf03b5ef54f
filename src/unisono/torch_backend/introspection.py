"""The facts about a group that torch asks for. C++ uses camelCase; both spellings are the same method."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import torch

from unisono.errors import UsageError
from unisono.torch_backend import messages
from unisono.torch_backend.dispatch import GroupDispatcher
from unisono.torch_backend.options import Options
from unisono.torch_backend.other_devices import Others
from unisono.torch_backend.registration import DEVICES, NAME
from unisono.torch_backend.torch_errors import raises_torch_errors


class BackendFacts:
    """The facts about a backend that torch's Python code asks for."""

    supports_coalescing = False
    supports_shrinking = False
    supports_time_estimate = False

    def __init__(self, options: Options, device: str) -> None:
        self.options = replace(options)  # the user may pass one object to several groups
        self.supports_splitting = device == "cuda"  # dist.split_group is for GPUs; the group's method is for all

    def eager_connect_single_device(self, device: Any) -> None:
        """Do nothing: the GPUs are connected by the first call."""

    def perform_nocolor_split(self, device: Any) -> None:
        """Do nothing: ranks that are not in a new group need not take part."""

    def supports_tensor_alloc(self, device: Any) -> bool:
        """Return whether it allocates tensors."""
        return False

    def name(self) -> str:
        """Return the name of the backend."""
        return NAME

    def _set_sequence_number_for_group(self) -> None:
        pass


class GroupFacts:
    """The part of a process group that answers questions."""

    _dispatcher: GroupDispatcher
    _store: Any
    _description: str
    _facts: dict[str, BackendFacts]  # by device type
    _others: Others

    def getBackendName(self) -> str:  # noqa: N802
        """Return the name of the backend."""
        return NAME

    name = _get_backend_name = getBackendName

    def getSize(self) -> int:  # noqa: N802
        """Return the number of ranks."""
        return self._dispatcher.comm.size

    def getRank(self) -> int:  # noqa: N802
        """Return the rank of this process."""
        return self._dispatcher.comm.rank

    def getGroupName(self) -> str:  # noqa: N802
        """Return the name that torch gave the group."""
        return self._dispatcher.name

    def setGroupName(self, name: str) -> None:  # noqa: N802
        """Set the name of the group to ``name``."""
        self._dispatcher.name = name

    def getGroupDesc(self) -> str:  # noqa: N802
        """Return torch's description of the group."""
        return self._description

    def setGroupDesc(self, description: str) -> None:  # noqa: N802
        """Set the description of the group to ``description``."""
        self._description = description

    _set_group_name, _set_group_desc = setGroupName, setGroupDesc
    group_name = property(getGroupName)
    group_desc = property(getGroupDesc)

    @property
    def options(self) -> Options:
        """Return the options of the group, with its timeout."""
        return self._facts["cpu"].options

    def get_group_store(self) -> Any:
        """Return the store of the group."""
        return self._store

    def _get_sequence_number_for_group(self) -> int:
        return self._dispatcher.calls

    def _set_sequence_number_for_group(self) -> None:
        pass  # it counts from 0 on every rank

    def set_timeout(self, timeout: timedelta) -> None:
        """Set the timeout of calls."""
        self._dispatcher.set_timeout(timeout.total_seconds())
        for facts in self._facts.values():
            facts.options._timeout = timeout

    _set_default_timeout = set_timeout

    @raises_torch_errors
    def _get_backend(self, device: Any) -> Any:
        device = torch.device(device)
        other = self._other_backend(device)
        return self._facts[device.type] if other is None else other

    def other_backend_of(self, tensor: torch.Tensor) -> Any:
        """Return the other backend that gets ``tensor``, or None if it is ours; raise UsageError if there is none."""
        if not self._others.backends and (tensor.is_cpu or tensor.is_cuda):
            return None
        return self._other_backend(tensor.device)

    @raises_torch_errors
    def _other_backend(self, device: torch.device) -> Any:
        found = self._others.backends.get(device.type)
        if found is None and device.type not in DEVICES:
            raise UsageError(messages.NO_BACKEND_FOR_DEVICE(device=device, kind=device.type))
        return found
