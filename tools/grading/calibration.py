"""Fits the costs of a network to measured rows.

python -m grading.calibration DATA_FOLDER MACHINE      (in tools/; prints the network file with the fitted costs)

Gauss-Newton steps on log(predicted / measured), with weights that limit the influence of rows that no costs can
explain (a pseudo-Huber loss of width 0.15), on the logarithms of the costs, and a weak pull towards the costs where
the fit starts (grading.machines). The other keys of the network file stay as they are. Only costs of the machine are
fitted: no algorithm has a parameter.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from grading.mapping import Implementation
from grading.measurements import Row
from grading.prediction import predict
from unisono.networks import Network

WIDTH = 0.15
PULL = 0.05
ENOUGH = 0.005  # a step that lowers the loss by less is the last
Case = tuple[Row, Implementation]


def _endpoint(name: str) -> tuple[Callable[[Network], float], Callable[[Network, float], Network]]:
    return (
        lambda network: float(getattr(network.endpoint, name)),
        lambda network, value: replace(network, endpoint=replace(network.endpoint, **{name: value})),
    )


def _overhead(network: Network, value: float) -> Network:
    return replace(network, endpoint=replace(network.endpoint, send_overhead_s=value, receive_overhead_s=value))


def _handling(network: Network, value: float) -> Network:
    return replace(network, endpoint=replace(network.endpoint, send_s_per_byte=value, receive_s_per_byte=value))


COSTS: dict[str, tuple[Callable[[Network], float], Callable[[Network, float], Network]]] = {
    "call_overhead_s": _endpoint("call_overhead_s"),
    "overhead_s": (lambda network: network.endpoint.send_overhead_s, _overhead),
    "handling_s_per_byte": (lambda network: network.endpoint.receive_s_per_byte, _handling),  # by both sides
    "fetch_s": _endpoint("fetch_s"),
    "eager_s_per_byte": _endpoint("eager_s_per_byte"),
    "receive_s_per_byte": _endpoint("receive_s_per_byte"),
    "rendezvous_s": _endpoint("rendezvous_s"),
    "exchange_bytes": (
        lambda network: float(network.endpoint.exchange_bytes or 0),
        lambda network, value: replace(network, endpoint=replace(network.endpoint, exchange_bytes=round(value))),
    ),
    "jitter_s": _endpoint("jitter_s"),
    "allocate_s_per_byte": _endpoint("allocate_s_per_byte"),
    "reduce_s_per_byte": _endpoint("reduce_s_per_byte"),
    "copy_s_per_byte": _endpoint("copy_s_per_byte"),
    "beyond_cache": _endpoint("beyond_cache"),
    "latency_s": (
        lambda network: network.nics.latency_s,
        lambda network, value: replace(network, nics=replace(network.nics, latency_s=value)),
    ),
    "hop_latency_s": (
        lambda network: network.fabric.hop_latency_s,  # type: ignore[attr-defined]
        lambda network, value: replace(network, fabric=replace(network.fabric, hop_latency_s=value)),  # type: ignore[type-var]
    ),
    "bandwidth": (
        lambda network: network.nics.bandwidth,
        lambda network, value: replace(network, nics=replace(network.nics, bandwidth=value)),
    ),
    "link_bandwidth": (
        lambda network: network.fabric.link_bandwidth,  # type: ignore[attr-defined]
        lambda network, value: replace(network, fabric=replace(network.fabric, link_bandwidth=value)),  # type: ignore[type-var]
    ),
}


def with_costs(network: Network, names: Sequence[str], values: np.ndarray) -> Network:
    """Return the network with other costs; ``values`` are their logarithms."""
    for name, value in zip(names, values, strict=True):
        network = COSTS[name][1](network, float(np.exp(value)))
    return network


def fit(network: Network, cases: Sequence[Case], costs: dict[str, float], steps: int = 8) -> Network:
    """Return the network with other costs: those that fit the cases, searched from ``costs``."""
    names, start = list(costs), np.log(list(costs.values()))

    def residuals(values: np.ndarray) -> np.ndarray:
        changed = with_costs(network, names, values)
        # Implementations of the same program have the same prediction.
        rows = {(made, row.nbytes): row for row, made in cases}
        predicted = {key: predict(row, key[0], changed) for key, row in rows.items()}
        return np.array([np.log(predicted[made, row.nbytes] / row.seconds) for row, made in cases])

    def loss(values: np.ndarray, errors: np.ndarray) -> float:
        return float(np.sum(np.sqrt(1 + (errors / WIDTH) ** 2) - 1) + PULL * np.sum((values - start) ** 2))

    values, damping = start.copy(), 0.01
    errors = residuals(values)
    for _ in range(steps):
        weights = 1 / np.sqrt(1 + (errors / WIDTH) ** 2) / WIDTH**2
        slopes = np.stack([(residuals(values + 0.03 * unit) - errors) / 0.03 for unit in np.eye(len(names))], axis=1)
        normal = slopes.T @ (weights[:, None] * slopes) + 2 * PULL * np.eye(len(names))
        gradient = slopes.T @ (weights * errors) + 2 * PULL * (values - start)
        for _ in range(5):
            move = np.linalg.solve(normal + damping * np.diag(np.diag(normal)), -gradient)
            tried = values + np.clip(move, -0.5, 0.5)
            found = residuals(tried)
            gain = 1 - loss(tried, found) / loss(values, errors)
            if gain > 0:
                values, errors, damping = tried, found, damping / 3
                break
            damping *= 4
        else:
            break
        print(f"loss {loss(values, errors):.3f}, median {np.median(np.abs(np.exp(errors) - 1)):.1%}", file=sys.stderr)
        if gain < ENOUGH:
            break
    return with_costs(network, names, values)


def main(data: Path, machine: str) -> None:
    """Fit the preset of a machine and print it."""
    from grading.collectives import MACHINES, calibration_cases  # it imports this module's callers
    from grading.measurements import read

    found = next(each for each in MACHINES if each.preset == machine)
    print(fit(found.network(), calibration_cases(found, read(data)), found.fitted).to_toml())


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
