"""Error feedback: what a codec drops in one step is added in the next.

Without it, a codec can drop the same element at every step: with top-k a small gradient would never arrive. So each
rank keeps the *residual*, the part that it did not send, and adds it to the next array of the same key::

    corrected = x + residual
    sent      = decode(encode(corrected))
    residual  = corrected - sent

After any number of steps, the sum of everything sent is the sum of all x minus one residual.

The array becomes ``sent``. Codecs are idempotent, so the call that encodes the array does not change it again, and
the rank contributes exactly what the residual assumes. The rounding of partial sums during the call is known to no
single rank and is not fed back.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unisono.codecs import messages
from unisono.codecs.arrays import cuda_coding, floats_of, is_on_cuda
from unisono.codecs.codec import Codec, find
from unisono.codecs.coding import round_in_place
from unisono.errors import UsageError


class ErrorFeedback:
    """The residuals of one rank, one for each key. A key identifies a tensor, for instance by its name.

    ``codec`` is the codec of the calls, or its name. For example::

        feedback = ErrorFeedback("topk:0.01")
        feedback.correct("layer1.weight", gradient)  # in place
        comm.all_reduce(gradient, codec="topk:0.01")
    """

    def __init__(self, codec: str | Codec) -> None:
        self.codec = find(codec)
        self.residuals: dict[Hashable, Any] = {}  # flat arrays, on the device of their tensors

    def correct(self, key: Hashable, array: Any) -> None:
        """Add the residual of ``key`` to ``array``, round the array like the codec, and keep the new residual.

        The array is float32 and is changed in place; the residual of a CUDA array is on the same device. UsageError
        is raised if its length or device differs from that of the residual.
        """
        if is_on_cuda(array):
            self._correct_on_cuda(key, array)
            return
        values = floats_of(array, messages.ARRAY_OF_KEY(key=repr(key)), writable=True)
        residual: NDArray[np.float32] = self._residual(key, values, np.zeros_like)
        with np.errstate(all="ignore"):
            values += residual
            residual[:] = values
            round_in_place(values, self.codec)
            residual -= values
        residual[~np.isfinite(values)] = (
            0  # what was sent as infinite or NaN has no remainder, and does not come back
        )

    def _correct_on_cuda(self, key: Hashable, array: Any) -> None:
        on_cuda = cuda_coding()
        values = on_cuda.floats_of(array, messages.ARRAY_OF_KEY(key=repr(key)), writable=True)
        on_cuda.correct(values, self._residual(key, values, lambda like: like.new_zeros(len(like))), self.codec)

    def _residual(self, key: Hashable, values: Any, zeros: Callable[[Any], Any]) -> Any:
        """Return the residual of a key, for a flat array on any device; it is zero at first."""
        residual = self.residuals.get(key)
        if residual is None:
            residual = self.residuals[key] = zeros(values)
        if len(residual) != len(values):
            raise UsageError(messages.FEEDBACK_LENGTH(key=repr(key), found=len(values), expected=len(residual)))
        found, expected = (str(getattr(each, "device", "cpu")) for each in (values, residual))
        if found != expected:
            raise UsageError(messages.FEEDBACK_DEVICE(key=repr(key), found=found, expected=expected))
        return residual

    def forget(self, key: Hashable | None = None) -> None:
        """Drop the residual of ``key``; by default, all of them."""
        if key is None:
            self.residuals.clear()
        else:
            self.residuals.pop(key, None)
