"""Networks as data: ranks, hosts, links, switches and the costs of a processor, for the simulator and the planner.

``load("dgx-h100")`` is a preset and ``load("mine.toml")`` a network file; docs/networks.md describes the format. The
time of a message of n bytes that shares no link is::

    sender's processor     send_overhead_s + n * send_s_per_byte
    links of the route     sum of latency_s + n / smallest bandwidth       (messages pipeline through the links)
    receiver's processor   receive_overhead_s + n * receive_s_per_byte (+ n * reduce_s_per_byte)
"""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

from unisono.errors import UsageError
from unisono.message import listed
from unisono.networks import messages, this_machine
from unisono.networks.endpoint import Endpoint
from unisono.networks.fabrics import Dragonfly, Fabric, FatTree, RailOptimized, Switch, Torus
from unisono.networks.links import Link, LinkTable
from unisono.networks.near import Near
from unisono.networks.network import Network
from unisono.networks.nics import Nics
from unisono.networks.presets import PRESETS
from unisono.networks.protocols import Protocol
from unisono.networks.reading import read_file, read_text
from unisono.networks.writing import to_toml

__all__ = [
    "PRESETS", "Dragonfly", "Endpoint", "Fabric", "FatTree", "Link", "LinkTable", "Near", "Network", "Nics",
    "Protocol", "RailOptimized", "Switch", "Torus", "ideal", "load", "read_text", "to_toml",
]  # fmt: skip


def load(name: str | Path) -> Network:
    """Return the preset called ``name``, or the network of the file at that path.

    ``"this-machine"`` is the network that `unisono tune` has measured.
    """
    if isinstance(name, Path) or name.endswith(".toml"):
        return read_file(Path(name))
    if name == this_machine.NAME:
        return this_machine.load()
    if name in PRESETS:
        return PRESETS[name]
    known = [this_machine.NAME, *PRESETS]
    near = get_close_matches(name, known, n=1)
    hint = messages.MEANT(near=near[0]) if near else messages.SEE_LIST()
    raise UsageError(messages.NO_NETWORK(name=name, known=listed(known), hint=hint))


def ideal(latency_s: float, bandwidth: float, reduce_s_per_byte: float = 0.0) -> Network:
    """Return the network of the textbook formulas: hosts with one rank each on one switch, and no other costs.

    A message of n bytes takes ``latency_s + n / bandwidth``, and a reduction ``n * reduce_s_per_byte`` more.
    """
    return Network(
        name="ideal",
        nics=Nics(latency_s=latency_s, bandwidth=bandwidth),
        endpoint=Endpoint(reduce_s_per_byte=reduce_s_per_byte, synchronous=True),
    )
