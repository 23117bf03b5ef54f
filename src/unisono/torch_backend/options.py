"""What a user may set beyond what torch asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from unisono.comm.geometry import STAGING_BYTES


@dataclass
class Options:
    """``init_process_group("unisono", pg_options=Options(...))``.

    ``algorithms`` names the algorithm of a collective, or gives one of your own: ``{"all_reduce": my_ring}``. It must
    be the same on every rank. ``staging_bytes`` is the shared memory of each rank.
    """

    algorithms: Mapping[str, Any] = field(default_factory=dict)
    staging_bytes: int = STAGING_BYTES
