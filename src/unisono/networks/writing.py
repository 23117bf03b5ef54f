"""Writes a network as a network file. Reading the text again gives an equal network."""

from __future__ import annotations

from collections.abc import Mapping

from unisono.networks import keys
from unisono.networks.fabrics.kinds import KEYS
from unisono.networks.keys import Key
from unisono.networks.network import Network


def to_toml(network: Network) -> str:
    """Return the text of a network file."""
    parts = [
        _lines(network, keys.TOP),
        _table("endpoint", network.endpoint, keys.ENDPOINT),
        _table("near", network.near, keys.NEAR),
        _table("nic", network.nics, keys.NICS),
        f'\n[fabric]\nkind = "{network.fabric.kind}"\n' + _lines(network.fabric, KEYS[network.fabric.kind]),
        *("\n[[protocol]]\n" + _lines(protocol, keys.PROTOCOL) for protocol in network.protocols),
    ]
    return "".join(parts)


def _table(name: str, record: object, known: Mapping[str, Key]) -> str:
    return f"\n[{name}]\n" + _lines(record, known)


def _lines(record: object, known: Mapping[str, Key]) -> str:
    values = [(name, key, getattr(record, key.field)) for name, key in known.items()]
    return "".join(f"{name} = {key.write(value)}\n" for name, key, value in values if value not in (None, ""))
