"""The networks that come with Unisono, each a network file with the sources of its numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from unisono.networks.network import Network
from unisono.networks.reading import read_file

FOLDER = Path(__file__).parent


@cache
def _files() -> dict[str, Path]:
    return {path.stem: path for path in sorted(FOLDER.glob("*.toml"))}


@cache
def _network(name: str) -> Network:
    return read_file(_files()[name])


class Presets(Mapping[str, Network]):
    """The presets by name. A file is read when its network is first used."""

    def __getitem__(self, name: str) -> Network:
        return _network(name)

    def __iter__(self) -> Iterator[str]:
        return iter(_files())

    def __len__(self) -> int:
        return len(_files())


PRESETS = Presets()
