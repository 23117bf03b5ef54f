"""Point-to-point calls: send and recv between two ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist

from unisono.errors import CommError, UsageError
from unisono.torch_backend import tensor_messages as messages
from unisono.torch_backend.cuda_calls import Direction
from unisono.torch_backend.dispatch import GroupDispatcher
from unisono.torch_backend.other_devices import dispatch_by_device
from unisono.torch_backend.profiling import in_profile
from unisono.torch_backend.tensors import (
    KNOWN,
    Finish,
    Tensor,
    check,
    contiguous_input,
    contiguous_output,
    moved_as,
)
from unisono.torch_backend.work import PendingWork


class PointToPoint:
    """The part of a process group that sends and receives single messages."""

    _dispatcher: GroupDispatcher

    @dispatch_by_device
    def send(self, tensors: Any, dst: int, tag: int = 0) -> dist.Work:
        """Send a tensor to a rank."""
        tensor = contiguous_input(check(tensors[0], "send"))
        dispatcher = self._dispatcher
        if dispatcher.streams.serves(tensor):
            return self._transfer("send", tensor, Direction(True, dst, tag), None, [])
        with in_profile("send", [tensor]):
            work = dispatcher.comm.send(_bytes_of(tensor), dst, tag=tag, async_op=True, timeout=dispatcher.timeout_s)
        return self._pending("send", work, None, [])

    @dispatch_by_device
    def recv(self, tensors: Any, src: int | None, tag: int = 0) -> dist.Work:
        """Receive a tensor from a rank."""
        memory, finish = contiguous_output(check(tensors[0], "recv"), keep=False)
        dispatcher = self._dispatcher
        if dispatcher.streams.serves(memory):
            if src is None:
                raise UsageError(messages.ANY_SOURCE_ON_GPU(device=memory.device))
            return self._transfer("recv", memory, Direction(False, src, tag), finish, list(tensors))
        with in_profile("recv" if src is not None else "recvAnySource", [memory]):
            work = dispatcher.comm.recv(_bytes_of(memory), src, tag=tag, async_op=True, timeout=dispatcher.timeout_s)
        return self._pending("recv", work, finish, tensors)

    def recv_anysource(self, tensors: Any, tag: int = 0) -> dist.Work:
        """Receive a tensor from any rank."""
        return self.recv(tensors, None, tag)

    def _transfer(
        self, name: str, tensor: Tensor, direction: Direction, finish: Finish | None, result: list[Tensor]
    ) -> dist.Work:
        """Send or receive a tensor on a GPU."""
        dispatcher = self._dispatcher
        dispatcher.check_open(name)
        dtype, each = moved_as(tensor)
        calls, count = dispatcher.cuda_calls(), tensor.numel() * each
        try:
            with in_profile(name, [tensor]):
                work = calls.transfer(name, direction, tensor, dtype, count, finish, result, dispatcher.timeout_s)
        except CommError:
            dispatcher.has_raised = True
            raise
        return dispatcher.track(work)

    def _pending(self, name: str, work: Any, finish: Finish | None, result: Sequence[Tensor]) -> dist.Work:
        return self._dispatcher.track(PendingWork(work, result, finish, (self._dispatcher, name), ""))


def _bytes_of(tensor: Tensor) -> Tensor:
    """Return the tensor, or its bytes where the engine lacks its type."""
    tensor = tensor.detach()
    name, _ = moved_as(tensor)
    return tensor if name == KNOWN.get(tensor.dtype) else tensor.view(-1).view(torch.uint8)
