"""Write the table of presets into docs/networks.md."""

from __future__ import annotations

from pathlib import Path

import page_parts
from unisono.networks import PRESETS, Network

PAGE = Path(__file__).parent.parent / "docs" / "networks.md"
HEADER = (
    "| network | ranks | per host | near | GB/s | us | fabric | NICs | GB/s | us |",
    "|---|---:|---:|---|---:|---:|---|---:|---:|---:|",
)


def table() -> str:
    """Return a row for each preset."""
    return "\n".join([*HEADER, *(_row(network) for network in PRESETS.values())])


def _row(network: Network) -> str:
    size = "any" if network.size is None else f"{network.size:,}"
    near = ["", "", ""] if network.ranks_per_host == 1 else [network.near.kind, *_speed(network.near)]
    far = ["", "", "", ""]
    if network.hosts != 1:
        far = [network.fabric.kind, str(network.nics.count), *_speed(network.nics)]
    return "| " + " | ".join([f"`{network.name}`", size, str(network.ranks_per_host), *near, *far]) + " |"


def _speed(links: object) -> list[str]:
    return [f"{links.bandwidth / 1e9:.4g}", f"{links.latency_s * 1e6:.3g}"]  # type: ignore[attr-defined]


def page() -> str:
    """Return the page with the present presets."""
    text = PAGE.read_text(encoding="utf-8")
    return page_parts.fill(text, lambda name: table() if name == "presets" else page_parts.content(text, name))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
