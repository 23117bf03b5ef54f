"""The handles of calls on GPU tensors.

Such a call is in a stream when it returns. To wait for it means that the caller's stream waits; the host goes on.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any, NamedTuple, Protocol

import torch
import torch.distributed as dist

from unisono.errors import CollectiveTimeout, CommError
from unisono.message import Message
from unisono.torch_backend import messages
from unisono.torch_backend.streams import Streams
from unisono.torch_backend.tensors import Finish, Tensor
from unisono.torch_backend.torch_errors import as_torch_error
from unisono.torch_backend.work import NO_LIMIT

POLL_S = 50e-6  # how often the host looks, where it waits with a timeout


class Owner(Protocol):
    """The object that makes the calls of a group on GPU tensors."""

    streams: Streams

    def check(self) -> None:
        """Raise the error of the group, if it has one."""

    def name_of(self, call: str) -> Message:
        """Return the name of a call with that of its group."""


class Held:
    """Tensors that work in another stream uses; their memory must not be reused before that.

    Once the caller's stream waits for that work, they are released: what the caller does next with the memory comes
    later. If the program does not wait, or another stream does, the allocator is told about the stream.
    """

    __slots__ = ("caller", "stream", "streams", "tensors")

    def __init__(self, streams: Streams, tensors: list[Tensor], stream: Any, caller: int) -> None:
        self.streams, self.tensors, self.stream = streams, tensors, stream
        self.caller = caller  # the handle of the caller's stream

    def release(self, waiting: int) -> None:
        """Release the tensors: the stream with the handle ``waiting`` waits."""
        if waiting == self.caller:
            self.tensors = []
        else:
            self.leave()

    def leave(self) -> None:
        """Release the tensors, though no stream that may reuse their memory waits."""
        tensors, self.tensors = self.tensors, []
        if tensors:
            self.streams.keep(tensors, self.stream)

    def __del__(self) -> None:
        self.leave()


class Over(NamedTuple):
    """Tells whether a call is over."""

    streams: Streams
    event: Any
    captured: bool

    def done(self) -> bool:
        """Return whether it is over."""
        return self.captured or self.streams.is_done(self.event)


class CudaWork(dist.Work):
    """The handle of a call that is in a stream.

    ``place`` is the index of the device and the stream. ``held`` are the tensors that the call uses. ``event`` is
    behind the call; by default, it is recorded now.
    """

    def __init__(
        self, owner: Owner, name: str, place: tuple[int, Any], result: Sequence[Any], held: Held | None,
        event: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.owner, self.name = owner, name
        self.device, self.stream = place
        # The caller that recorded the event behind the call knows that no graph is being captured.
        self.captured = event is None and owner.streams.is_capturing()
        self.event = owner.streams.record(self.stream) if event is None else event
        self._result, self._held = list(result), held
        self._future: Any = None

    def then(self, finish: Finish, result: Sequence[Any]) -> CudaWork:
        """Do something after the call, in its stream; ``result`` is the new result."""
        streams = self.owner.streams
        with streams.on(self.stream):
            finish()
        self.event = streams.record(self.stream)
        self._result = list(result)
        if self._held is not None:
            self._held.tensors += all_tensors(result)
        return self

    def wait(self, timeout: timedelta = NO_LIMIT) -> bool:
        """Have the caller's stream wait. With a timeout, the host waits too, and raises if the call takes longer."""
        self.owner.check()
        if timeout > NO_LIMIT and not self.captured:
            self._wait_on_host(timeout.total_seconds())
        self.block_current_stream()
        return True

    def synchronize(self) -> None:
        """Have the caller's stream wait."""
        self.wait()

    def block_current_stream(self) -> None:
        """Have the caller's stream wait."""
        streams = self.owner.streams
        streams.wait_here(self.device, self.event)
        if self._held is not None:
            self._held.release(streams.current_handle(self.device))
            self._held = None

    def _wait_on_host(self, seconds: float) -> None:
        ends = time.monotonic() + seconds
        while not self.is_completed():
            if time.monotonic() > ends:
                text = self.owner.name_of(self.name)
                raise as_torch_error(CollectiveTimeout(messages.NOT_FINISHED(call=text, seconds=f"{seconds:g}")))
            time.sleep(POLL_S)
        self.owner.check()

    def is_completed(self) -> bool:
        """Return whether the call is over. One that was captured in a CUDA graph is: it runs when the graph does."""
        return self.captured or self.owner.streams.is_done(self.event)

    def over(self) -> Over:
        """Return what tells whether the call is over, without its tensors."""
        return Over(self.owner.streams, self.event, self.captured)

    def is_success(self) -> bool:
        """Return whether it is over and succeeded."""
        return self.is_completed() and self.exception() is None

    def exception(self) -> Exception | None:
        """Return the error of the group; None also while the call runs."""
        try:
            self.owner.check()
        except CommError as error:
            return error
        return None

    def result(self) -> list[Any]:
        """Return the tensors of the result."""
        return self._result

    def source_rank(self) -> int:
        """Raise: a receive on a GPU names its sender."""
        raise as_torch_error(CommError(messages.NO_SOURCE(call=self.owner.name_of(self.name))))

    _source_rank = source_rank

    def get_future(self) -> torch.futures.Future[Any]:
        """Return a future of the result, which is complete: callbacks run at once, on streams that wait."""
        if self._future is None:
            if self._held is not None:
                self._held.leave()  # callbacks, and the code that waits for the future, may be on any stream
                self._held = None
            self._future = self.owner.streams.future(self.device, self._result, self.stream)
        return self._future


class JoinedWork(dist.Work):
    """The handle of several calls, at least one of them on GPU tensors, of which ``last`` runs last."""

    def __init__(self, works: Sequence[Any], last: CudaWork, result: Sequence[Any]) -> None:
        super().__init__()
        self.works, self.last, self._result = list(works), last, list(result)

    def wait(self, timeout: timedelta = NO_LIMIT) -> bool:
        """Wait for each call."""
        for work in self.works:
            work.wait(timeout)
        return True

    def synchronize(self) -> None:
        """Wait for each call."""
        self.wait()

    def block_current_stream(self) -> None:
        """Wait for each call."""
        self.wait()

    def is_completed(self) -> bool:
        """Return whether all calls are over."""
        return all(work.is_completed() for work in self.works)

    def is_success(self) -> bool:
        """Return whether all calls are over and succeeded."""
        return all(work.is_success() for work in self.works)

    def exception(self) -> Exception | None:
        """Return the first error."""
        return next((error for work in self.works if (error := work.exception()) is not None), None)

    def result(self) -> list[Any]:
        """Return the tensors of the result."""
        return self._result

    def get_future(self) -> torch.futures.Future[Any]:
        """Return a future of the result. What uses its value waits for all calls."""
        streams = self.last.owner.streams
        joined = streams.make(self.last.device)
        with streams.on(joined):
            self.wait()
        return streams.future(self.last.device, self._result, joined)


def all_tensors(given: Any) -> list[Tensor]:
    """Return the tensors of a list of tensors or of lists."""
    return list(_each_tensor(given))


def _each_tensor(given: Any) -> Iterator[Tensor]:
    if isinstance(given, torch.Tensor):
        yield given
    elif isinstance(given, list | tuple):
        for part in given:
            yield from _each_tensor(part)
