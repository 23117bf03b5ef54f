"""The kinds of fabric, by the word that a network file uses."""

from __future__ import annotations

from unisono.networks.fabrics.switch import Switch
from unisono.networks.keys import Key

KINDS: dict[str, type] = {"switch": Switch}
KEYS: dict[str, dict[str, Key]] = {"switch": {}}
