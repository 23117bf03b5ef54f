"""Finds out whether messages of several ranks use the same link."""

from __future__ import annotations

import numpy as np

from unisono.networks import Network
from unisono.simulator.actions import Array


def meet(routes: Array, source: Array, target: Array, size: int, network: Network) -> bool:
    """Return whether routes meet on a link, other than one that belongs to their sender or receiver.

    Messages of the same sender, or receiver, take turns at its port already, if it has one port.
    """
    by_source = _shared_by(routes, source, size)
    by_target = _shared_by(routes, target, size)
    return bool(by_source | by_target if network.endpoint.ports > 1 else by_source & by_target)


def _shared_by(routes: Array, ends: Array, size: int) -> set[int]:
    """Return the links that the routes of several ranks use; ``ends`` is the rank of each route."""
    used = np.unique(np.concatenate([column[column >= 0] * size + ends[column >= 0] for column in routes.T]))
    links = used // size
    return set(links[:-1][links[:-1] == links[1:]].tolist())
