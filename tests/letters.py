"""What ranks send to each other in the tests: arrays that say who sent them, and with which tag."""

from __future__ import annotations

from typing import Any

import numpy as np

from unisono.bootstrap.membership import DEPTH, TRANSFER_BYTES

# More than all slots of a channel hold, so that the sender waits until somebody reads.
LONG = 3 * DEPTH * TRANSFER_BYTES // 8 + 5


def letter(source: int, tag: int, length: int, number: int = 0) -> np.ndarray[Any, Any]:
    """Return the message of a rank that has this number among those with the tag."""
    return np.arange(length) + 1_000_000 * source + 10_000 * tag + 100 * number


def is_letter(x: np.ndarray[Any, Any], source: int, tag: int, number: int = 0) -> bool:
    """Whether an array holds that message."""
    return bool((x == letter(source, tag, len(x), number)).all())
