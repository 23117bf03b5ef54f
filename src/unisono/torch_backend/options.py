"""The options of a group beyond those that torch has."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from unisono.bootstrap.job_resources import STAGING_BYTES
from unisono.torch_backend import messages


@dataclass
class Options:
    """The options of a group: ``init_process_group("unisono", pg_options=Options(...))``.

    ``algorithms`` names the algorithm of a collective, or holds your own: ``{"all_reduce": my_ring}`` (default: the
    best ones known). It must be the same on every rank. ``staging_bytes`` is the shared memory of each rank (default
    2 MiB). ``others`` holds the options of the other backends of a group, by device (default: none):
    ``{"cuda": dist.ProcessGroupNCCL.Options()}``.

    If the ranks are on several hosts, ``interface`` is the name, the address or network (such as "10.0.0.0/8") of the
    interface for messages from other hosts (default: the one that reaches the host of torch's store), and ``ports``
    is the range of ports to listen on (default: any that is free). A group without options takes these two from the
    default group.
    """

    algorithms: Mapping[str, Any] = field(default_factory=dict)
    staging_bytes: int = STAGING_BYTES
    others: Mapping[str, Any] = field(default_factory=dict)
    interface: str | None = None
    ports: range | None = None
    _timeout: timedelta | None = field(
        default=None, repr=False
    )  # of the group; torch's options have it under this name


def own_options(given: Any, shared: bool, default: Options | None = None) -> Options:
    """Return the options for our part of a group; ``default`` are those of the default group.

    Options of another class are ignored, as Gloo ignores them. If the group has other backends (``shared``) they are
    meant for one of these; otherwise a warning says that they have no effect.
    """
    if isinstance(given, Options):
        return given
    if given is not None and not shared:
        kind = type(given)
        warnings.warn(
            messages.OPTIONS_IGNORED(kind=f"{kind.__module__}.{kind.__qualname__}"),
            stacklevel=2,
        )
    return Options() if default is None else Options(interface=default.interface, ports=default.ports)
