"""The network called ``this-machine``: what `unisono tune` measured here, as a network file in the user's cache."""

from __future__ import annotations

from pathlib import Path

from unisono.cache_files import user_cache
from unisono.errors import UsageError
from unisono.networks import messages
from unisono.networks.network import Network
from unisono.networks.reading import read_file

NAME = "this-machine"


def path() -> Path:
    """Return the path of the network file of this machine, which need not exist."""
    return user_cache() / f"{NAME}.toml"


def load() -> Network:
    """Return the measured network; raise UsageError where nothing was measured."""
    if not path().is_file():
        raise UsageError(messages.NOT_MEASURED(path=path()))
    return read_file(path())


def save(network: Network) -> Path:
    """Write the measured network and return the path of its file."""
    file = path()
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    part = file.with_suffix(".part")
    part.write_text(network.to_toml(), encoding="utf-8")
    part.replace(file)  # readers never see half of it
    return file
