"""The kinds of fabric by the word that a network file uses, and the keys of each."""

from __future__ import annotations

from unisono.networks.fabrics.dragonfly import Dragonfly
from unisono.networks.fabrics.fat_tree import FatTree, RailOptimized
from unisono.networks.fabrics.switch import Switch
from unisono.networks.fabrics.torus import Torus
from unisono.networks.keys import Key, bandwidth, count, counts, factor, number, seconds, word

KINDS: dict[str, type] = {
    "switch": Switch, "fat-tree": FatTree, "rail": RailOptimized, "dragonfly": Dragonfly, "torus": Torus,
}  # fmt: skip
FAT_TREE = {
    "levels": number("levels", (2, 3)), "hosts_per_switch": count("hosts_per_switch"),
    "switches_per_pod": count("switches_per_pod"), "oversubscription": factor("oversubscription"),
    "trunk_bandwidth": bandwidth("trunk_bandwidth"), "hop_latency": seconds("hop_latency_s"),
}  # fmt: skip
KEYS: dict[str, dict[str, Key]] = {
    "switch": {},
    "fat-tree": FAT_TREE,
    "rail": {**FAT_TREE, "crossing": word("crossing", {"near": "near", "spine": "spine"})},
    "dragonfly": {
        "hosts_per_router": count("hosts_per_router"), "routers_per_group": count("routers_per_group"),
        "links_per_pair": count("links_per_pair"), "groups": count("groups"),
        "local_bandwidth": bandwidth("local_bandwidth"), "global_bandwidth": bandwidth("global_bandwidth"),
        "hop_latency": seconds("hop_latency_s"), "global_latency": seconds("global_latency_s"),
    },
    "torus": {
        "shape": counts("shape"), "dimensions": number("dimensions", (1, 2, 3, 4, 5, 6)),
        "link_bandwidth": bandwidth("link_bandwidth"), "hop_latency": seconds("hop_latency_s"),
    },
}  # fmt: skip
