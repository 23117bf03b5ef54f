"""``unisono list --networks``: the networks that predictions can use."""

from __future__ import annotations

from typing import Any

from unisono.cli.output import console, print_json, print_paragraph, print_table, table
from unisono.networks import PRESETS, Network, this_machine

COLUMNS = {
    "en": ("network", ">ranks", ">per\nhost", "near", ">GB/s", ">us", "fabric", ">NICs", ">GB/s", ">us", "title"),
    "zh": ("网络", ">rank 数", ">每台\n主机", "主机内", ">GB/s", ">us", "主机间", ">网卡", ">GB/s", ">us", "说明"),
}
LEGEND = {
    "en": "GB/s and us are the bandwidth in one direction and the latency of a link, first between ranks of a host, "
    "then of a NIC. The files, with the sources of the numbers, are in unisono/networks/presets; docs/networks.md "
    "describes the format.",
    "zh": "GB/s 和 us 是链路的单向带宽和延迟，先是同一主机的 rank 之间，后是网卡。各文件及数字的出处在 "
    "unisono/networks/presets 中；格式见 docs/networks.md。",
}
ANY = {"en": "any", "zh": "不限"}


def print_networks(language: str, as_json: bool) -> int:
    """Print a row for each preset, and for this machine where it has been measured."""
    networks = list(PRESETS.values())
    if this_machine.path().is_file():
        networks.insert(0, this_machine.load())
    if as_json:
        print_json([_as_data(network) for network in networks])
        return 0
    out, rows = console(), table(*COLUMNS[language])
    for network in networks:
        rows.add_row(*_row(network, language))
    print_table(out, rows)
    print_paragraph(out, LEGEND[language], style="dim")
    return 0


def _row(network: Network, language: str) -> list[str]:
    near, nics = network.near, network.nics
    several = network.ranks_per_host > 1
    alone = network.hosts == 1
    return [
        f"[cyan]{network.name}[/]", ANY[language] if network.size is None else f"{network.size:,}",
        str(network.ranks_per_host), near.kind if several else "", *(_speed(near) if several else ("", "")),
        "" if alone else network.fabric.kind, "" if alone else str(nics.count),
        *(("", "") if alone else _speed(nics)), (network.title_zh if language == "zh" else "") or network.title,
    ]  # fmt: skip


def _speed(links: Any) -> tuple[str, str]:
    return f"{links.bandwidth / 1e9:.4g}", f"{links.latency_s * 1e6:.3g}"


def _as_data(network: Network) -> dict[str, Any]:
    near, nics = network.near, network.nics
    return {
        "name": network.name, "title": {"en": network.title, "zh": network.title_zh or network.title},
        "source": network.source, "size": network.size, "hosts": network.hosts,
        "ranks_per_host": network.ranks_per_host,
        "near": {"kind": near.kind, "bandwidth": near.bandwidth, "latency_s": near.latency_s},
        "nic": {"count": nics.count, "bandwidth": nics.bandwidth, "latency_s": nics.latency_s},
        "fabric": network.fabric.kind, "protocols": [protocol.name for protocol in network.protocols],
        "digest": network.digest,
    }  # fmt: skip
