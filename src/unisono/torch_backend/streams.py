"""CUDA streams and events: all that the calls on GPU tensors need of them.

A *stream* is a queue of work on a GPU; work on different streams may overlap. An *event* marks a place in a stream,
for which another stream can wait without the host. It is an object of torch, or of the engine, which records those of
frequent calls. The *handle* of a stream is its address in the CUDA driver.

Nothing else in this package touches streams. So tests without a GPU replace this object by one that records what is
done, and assert the order.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch

from unisono import _engine
from unisono.torch_backend.private import current_raw_stream


class Streams:
    """The streams of this process."""

    def serves(self, tensor: Any) -> bool:
        """Return whether a tensor is on a device that has streams."""
        return bool(tensor.is_cuda)

    def device_of(self, tensor: Any) -> int:
        """Return the index of the tensor's device."""
        return int(tensor.get_device())

    def current_handle(self, device: int) -> int:
        """Return the handle of the caller's stream; the fastest way to it."""
        return int(current_raw_stream(device))

    def current(self, device: int | None) -> Any:
        """Return the caller's stream on a device; None: on the current one."""
        return torch.cuda.current_stream(device)

    def make(self, device: int, for_messages: bool = False) -> Any:
        """Return another stream; one that may wait for messages has a higher priority."""
        return torch.cuda.Stream(device, priority=-1 if for_messages else 0)

    def handle(self, stream: Any) -> int:
        """Return the handle of a stream."""
        return int(stream.cuda_stream)

    def on(self, stream: Any) -> AbstractContextManager[Any]:
        """Return a context in which torch's operators run on a stream."""
        context: AbstractContextManager[Any] = torch.cuda.stream(stream)
        return context

    def record(self, stream: Any) -> Any:
        """Return an event behind everything that is in a stream now."""
        event = torch.cuda.Event()
        event.record(stream)
        return event

    def wait(self, stream: Any, event: Any) -> None:
        """Have a stream wait for an event."""
        if isinstance(event, _engine.GpuEvent):
            event.wait(self.handle(stream))
        else:
            stream.wait_event(event)

    def wait_here(self, device: int, event: Any) -> None:
        """Have the caller's stream wait for an event."""
        if isinstance(event, _engine.GpuEvent):
            event.wait(self.current_handle(device))  # without the object of the stream, which takes longer to make
        else:
            self.wait(self.current(device), event)

    def follow(self, stream: Any, earlier: Any) -> None:
        """Have a stream wait for everything that is in another one now."""
        stream.wait_stream(earlier)

    def is_done(self, event: Any) -> bool:
        """Return whether everything before an event has run."""
        return event.passed() if isinstance(event, _engine.GpuEvent) else bool(event.query())

    def is_idle(self, stream: Any) -> bool:
        """Return whether everything in a stream has run."""
        return bool(stream.query())

    def synchronize(self, stream: Any) -> None:
        """Have the host wait for a stream."""
        stream.synchronize()

    def is_capturing(self) -> bool:
        """Return whether the caller's stream records a CUDA graph; events of a graph cannot be queried."""
        return bool(torch.cuda.is_current_stream_capturing())

    def keep(self, tensors: Sequence[Any], stream: Any) -> None:
        """Have the allocator reuse the memory of tensors only after what is in a stream now has run."""
        for tensor in tensors:
            tensor.record_stream(stream)

    def future(self, device: int, value: Any, stream: Any) -> torch.futures.Future[Any]:
        """Return a future that is complete for the host; on the GPU, code that uses its value waits for a stream."""
        future: torch.futures.Future[Any] = torch.futures.Future(devices=[torch.device("cuda", device)])
        with torch.cuda.stream(stream):
            future.set_result(value)
        return future
