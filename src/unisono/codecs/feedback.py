"""Error feedback: what a codec cuts off today is added tomorrow.

A lossy codec that always errs to the same side never sends what it cuts off: with top-k a small gradient
would never
arrive. So each rank keeps the *residual*, what it did not send, and adds it to the next array of the same name::

    corrected = x + residual
    sent      = decode(encode(corrected))
    residual  = corrected - sent

The sum of all that was sent is then the sum of all x less one residual, however many steps there were.

The array becomes ``sent``. The codec leaves it as it is when the call encodes it (it is idempotent), so what
the rank puts in is exactly what the residual assumes. What partial sums lose on their way is not known to any
one rank, and not fed back.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unisono.codecs import messages
from unisono.codecs.arrays import floats_of
from unisono.codecs.codec import Codec, find
from unisono.codecs.coding import round_in_place
from unisono.errors import UsageError


class ErrorFeedback:
    """The residuals of one rank, one for each key; a key is whatever names a tensor.

    >>> feedback = ErrorFeedback("topk:0.01") >>> feedback.correct("layer1.weight", gradient)  # in place;
    then comm.all_reduce(gradient, codec="topk:0.01")
    """

    def __init__(self, codec: str | Codec) -> None:
        self.codec = find(codec)
        self.residuals: dict[Hashable, NDArray[np.float32]] = {}

    def correct(self, key: Hashable, array: Any) -> None:
        """Add the residual of a key to a float32 array, round the array as the codec does, and keep what is new."""
        values = floats_of(array, messages.ARRAY_OF_KEY(key=repr(key)), writable=True)
        residual = self.residuals.get(key)
        if residual is None:
            residual = self.residuals[key] = np.zeros(values.size, np.float32)
        if residual.size != values.size:
            raise UsageError(messages.FEEDBACK_LENGTH(key=repr(key), found=values.size, expected=residual.size))
        with np.errstate(all="ignore"):
            values += residual
            residual[:] = values
            round_in_place(values, self.codec)
            residual -= values
        residual[~np.isfinite(values)] = (
            0  # what was sent as infinite or NaN has no remainder, and does not come back
        )

    def forget(self, key: Hashable | None = None) -> None:
        """Drop the residual of a key, or all of them."""
        if key is None:
            self.residuals.clear()
        else:
            self.residuals.pop(key, None)
