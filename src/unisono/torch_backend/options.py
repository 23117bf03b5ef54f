"""The options of a group beyond those that torch has."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from unisono.bootstrap.job_config import STAGING_BYTES
from unisono.bootstrap.tls import Tls
from unisono.torch_backend import messages

NETWORK_OPTIONS = ("interface", "ports", "transport", "tls", "link_rate")


@dataclass
class Options:
    """The options of a group: ``init_process_group("unisono", pg_options=Options(...))``.

    ``algorithms`` names the algorithm of a collective, or holds your own: ``{"all_reduce": my_ring}`` (default: the
    best ones known). It must be the same on every rank. ``staging_bytes`` is the shared memory of each rank (default
    2 MiB). ``others`` holds the options of the other backends of a group, by device (default: none):
    ``{"cuda": dist.ProcessGroupNCCL.Options()}``.

    If the ranks are on several hosts, ``interface`` is the name, the address or network (such as "10.0.0.0/8") of the
    interface for messages from other hosts (default: the one that reaches the host of torch's store), ``ports``
    is the range of ports to listen on (default: any that is free), and ``transport`` carries the data: "tcp", "ucx",
    or "ucx:PATH" with the path of its library (default: that of ``unisono run --transport``, or "tcp"). ``tls``, a
    ``unisono.Tls``, encrypts the messages between hosts (default: what ``unisono run --tls-certificate ...`` states,
    otherwise nothing is encrypted). ``link_rate`` is the rate of the link of a host in bytes per second, or
    "measure", on which ``codec_hook("auto:...")`` depends (default: not known); rank 0's value applies. In a group
    other than the default group, the default of these five is the value of the default group. Groups with the same
    interface, ports, transport and certificates share a port and a thread.
    """

    algorithms: Mapping[str, Any] = field(default_factory=dict)
    staging_bytes: int = STAGING_BYTES
    others: Mapping[str, Any] = field(default_factory=dict)
    interface: str | None = None
    ports: range | None = None
    transport: str | None = None
    tls: Tls | None = None
    link_rate: float | str | None = None
    _timeout: timedelta | None = field(
        default=None, repr=False
    )  # of the group; torch's options have it under this name


def own_options(given: Any, shared: bool, default: Options | None = None) -> Options:
    """Return the options for our part of a group; ``default`` are those of the default group, if it has ours.

    Options of another class are ignored, as Gloo ignores them. If the group has other backends (``shared``) they are
    meant for one of these; otherwise a warning says that they have no effect.
    """
    if isinstance(given, Options):
        return _completed(given, default)
    if given is not None and not shared:
        kind = type(given)
        warnings.warn(
            messages.OPTIONS_IGNORED(kind=f"{kind.__module__}.{kind.__qualname__}"),
            stacklevel=2,
        )
    return _completed(Options(), default)


def _completed(options: Options, default: Options | None) -> Options:
    """Return options that take what they do not state about the network from those of the default group."""
    inherited = {} if default is None else {name: getattr(default, name) for name in NETWORK_OPTIONS}
    missing = {name: value for name, value in inherited.items() if getattr(options, name) is None}
    return replace(options, **missing) if any(value is not None for value in missing.values()) else options
