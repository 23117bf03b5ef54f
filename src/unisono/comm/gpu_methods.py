"""The methods of a communicator for CUDA arrays and streams."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unisono import _engine
from unisono.collectives import OWN
from unisono.comm.call_request import CallRequest
from unisono.comm.dispatch import NUMBERS, Dispatcher
from unisono.comm.gpu_calls import OutsideCall

if TYPE_CHECKING:
    from unisono.gpu.connection import GpuStatus


class GpuMethods:
    """What a communicator does with CUDA streams."""

    dispatcher: Dispatcher

    def enqueue(
        self, request: CallRequest, source: int, out: int, *, device: int, stream: int, timeout: float | None = None
    ) -> None:
        """Enqueue the call ``request`` on a CUDA stream; the input is at address ``source``, the output at ``out``.

        ``device`` is the ordinal of the CUDA device on which they are, and ``stream`` the handle of the stream. The
        memory must stay allocated until the call is over. ``timeout`` and the errors are those of a collective; an
        error that happens later is raised by the next call and by ``raise_if_broken``.
        """
        dispatcher, limit_s = self.dispatcher, self.dispatcher.limit(timeout)
        dispatcher.gpu.enqueue(dispatcher, request, source, out, device, stream, limit_s)

    def enqueue_transfer(
        self, sending: bool, peer: int, tag: int, address: int, count: int, dtype: str, *, device: int, stream: int,
        timeout: float | None = None,
    ) -> None:  # fmt: skip
        """Enqueue a message to the rank ``peer`` (``sending``) or from it on a CUDA stream.

        It has ``count`` elements of type ``dtype`` at ``address``. ``tag`` is that of ``send``; ``device``,
        ``stream`` and ``timeout`` are those of ``enqueue``.
        """
        dispatcher, limit_s = self.dispatcher, self.dispatcher.limit(timeout)
        dispatcher.gpu.enqueue_transfer(
            dispatcher, sending, peer, tag, address, count, dtype, device, stream, limit_s
        )  # fmt: skip

    @property
    def gpu_table(self) -> _engine.GpuTable:
        """The table of the calls on CUDA tensors that were remembered, which repeats them without any Python code."""
        return self.dispatcher.gpu.table

    def remember_on_gpu(self, request: CallRequest, out: Any, array: Any, *, device: int) -> None:
        """Let ``gpu_table`` repeat the call ``request`` on tensors like ``out`` and ``array``.

        They are on the CUDA device with the ordinal ``device``, and must need no preparation. ``array`` is None where
        the collective has one array. Every rank makes this call, or makes the collective next.
        """
        outside = OutsideCall(
            NUMBERS[request.collective], out, array, request.op, request.root or 0, request.algorithm, None,
            request.collective.before.others is OWN,
        )  # fmt: skip
        self.dispatcher.gpu.remember(self.dispatcher, request, outside, device)

    def raise_if_broken(self) -> None:
        """Raise the error of the communicator, if it is broken."""
        self.dispatcher.link.endpoint.raise_if_broken()

    @property
    def gpu(self) -> GpuStatus | None:
        """The state of the calls on CUDA arrays; None before the first one.

        It has the mode ("kernel" or "stream"), the reason for it, the most thread blocks of a call, the name of the
        device, whether MPS is used, and how often memory could not be shared with the other ranks (``staged``).
        """
        return self.dispatcher.gpu.status()

    def synchronize(self) -> None:
        """Wait on the host until all calls on CUDA arrays are over; raise their error if one has failed."""
        self.dispatcher.link.check_open("synchronize")
        self.dispatcher.gpu.synchronize()
