"""Messages for the tests of send and recv: arrays whose numbers identify the sender and the tag."""

from __future__ import annotations

from typing import Any

import numpy as np

from unisono.bootstrap.job_config import DEPTH, TRANSFER_BYTES

# More than all slots of a channel hold, so that the sender waits for the receiver.
LONG = 3 * DEPTH * TRANSFER_BYTES // 8 + 5


def letter(source: int, tag: int, length: int, number: int = 0) -> np.ndarray[Any, Any]:
    """Return the message of a rank with this tag and this index among the messages with that tag."""
    return np.arange(length) + 1_000_000 * source + 10_000 * tag + 100 * number


def is_letter(x: np.ndarray[Any, Any], source: int, tag: int, number: int = 0) -> bool:
    """Return whether an array holds that message."""
    return bool((x == letter(source, tag, len(x), number)).all())
