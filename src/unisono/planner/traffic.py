"""Traffic: the collectives of a step on the rank that communicates most, with their bytes, links and times."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from unisono.planner.clusters import Members, Wiring
from unisono.planner.configurations import GATHERS, NOTHING, Configuration
from unisono.planner.models import Model
from unisono.planner.state_memory import Kind

NEAR, FAR = "near", "far"
TENSORS_OF_LAYER = 6  # qkv, output, gate with up, down, two norms: a collective for each


@dataclass(frozen=True)
class Traffic:
    """Collectives of one kind.

    ``axis``: "tp", "dp", "pp" or "ep". ``nbytes``: of the vector of one of them. ``count``: in a step.
    ``sent_bytes``: the bytes that a rank sends in a step, ``near_bytes`` of them to ranks of its host and
    ``far_bytes`` through its NIC. ``time_s``: of all of them, if nothing hides it.
    """

    axis: str
    collective: str
    nbytes: float
    count: int
    size: int
    link: str
    sent_bytes: float
    time_s: float
    latency_s: float = 0.0  # the part of the time that does not depend on the bytes
    far_bytes: float = 0.0

    @property
    def near_bytes(self) -> float:
        """The bytes that a rank sends to ranks of its host in a step."""
        return self.sent_bytes - self.far_bytes

    def as_data(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return asdict(self) | {"near_bytes": self.near_bytes}


def tensor_traffic(
    model: Model, configuration: Configuration, sequence: int, wiring: Wiring, layers: int
) -> list[Traffic]:
    """Return the collectives of tensor and sequence parallelism in ``layers`` layers, for all micro-batches."""
    tp = configuration.tp
    if tp == 1:
        return []
    members = wiring.group(tp, 1)
    nbytes = 2.0 * configuration.micro_batch * sequence * model.hidden
    times = layers * configuration.micro_batches
    if not configuration.sequence_parallel:
        return [_traffic("tp", "all_reduce", nbytes, 4 * times, members, wiring, 2)]
    gathers = 4 + (2 if configuration.recompute != NOTHING else 0)
    return [
        _traffic("tp", "all_gather", nbytes, gathers * times, members, wiring, 1),
        _traffic("tp", "reduce_scatter", nbytes, 4 * times, members, wiring, 1),
    ]


def expert_traffic(
    model: Model, configuration: Configuration, sequence: int, wiring: Wiring, layers: int
) -> list[Traffic]:
    """Return the exchanges of rows with experts: to them and back, forward and backward."""
    ep, tp = configuration.ep, configuration.tp
    if ep == 1:
        return []
    members = wiring.group(ep, tp)
    split = tp if configuration.sequence_parallel else 1
    nbytes = 2.0 * configuration.micro_batch * sequence * model.hidden * model.experts_per_token / split
    return [_traffic("ep", "all_to_all", nbytes, 4 * layers * configuration.micro_batches, members, wiring, 1)]


def pipeline_traffic(
    model: Model, configuration: Configuration, sequence: int, wiring: Wiring
) -> tuple[list[Traffic], float]:
    """Return the messages between stages, and the time of one of them."""
    pp, tp = configuration.pp, configuration.tp
    if pp == 1:
        return [], 0.0
    split = tp if configuration.sequence_parallel else 1
    nbytes = 2.0 * configuration.micro_batch * sequence * model.hidden / split
    is_far = configuration.gpus > wiring.per_host
    message_s = wiring.message_s(nbytes, is_far)
    count = configuration.micro_batches * (2 if pp == 2 else 4)  # activations and gradients, received and sent
    sent = nbytes * count / 2
    far = sent if is_far else 0.0
    link = FAR if is_far else NEAR
    return [Traffic("pp", "send_recv", nbytes, count, pp, link, sent, message_s * count, 0.0, far)], message_s


def data_traffic(
    configuration: Configuration, kind: Kind, wiring: Wiring, parameters: float, layers: int, ep: int = 1
) -> list[Traffic]:
    """Return the collectives of data parallelism and ZeRO for the ``parameters`` of a rank, in ``layers`` layers.

    Parameters of experts that are divided among ``ep`` ranks are replicated dp / ep times.
    """
    replicas, zero = configuration.dp // ep, configuration.zero
    if replicas == 1 or not parameters:
        return []
    members = wiring.group(replicas, configuration.tp * ep)
    reduced = 4 if kind.gradients == 6 else kind.gradients  # bytes of a gradient on the wire
    tensors = TENSORS_OF_LAYER * layers + 2
    gradients, values = reduced * parameters, kind.parameters * parameters
    if zero == 0:
        return [_stream("all_reduce", gradients, tensors, members, wiring, 2)]
    m = configuration.micro_batches
    if zero == 1:
        return [
            _stream("reduce_scatter", gradients, tensors, members, wiring),
            _stream("all_gather", values, tensors, members, wiring),
        ]
    units = layers + 1  # a collective for each unit; shards of gradients are reduced for every micro-batch
    scatter = _stream("reduce_scatter", m * gradients, m * units, members, wiring)
    if zero == 2:
        return [scatter, _stream("all_gather", values, units, members, wiring)]
    return [_stream("all_gather", 2 * m * values, 2 * m * units, members, wiring), scatter]


def _traffic(
    axis: str, collective: str, nbytes: float, count: int, members: Members, wiring: Wiring, passes: int
) -> Traffic:
    sent = passes * nbytes * (members.size - 1) / members.size
    time_s = count * wiring.ring_s(nbytes, members, passes)
    latency_s = count * wiring.ring_s(0, members, passes)
    far = count * sent * _far_share(collective, members)
    return Traffic(
        axis, collective, nbytes, count, members.size, _link(members), sent * count, time_s, latency_s, far
    )


def _stream(collective: str, nbytes: float, count: int, members: Members, wiring: Wiring, passes: int = 1) -> Traffic:
    sent = passes * nbytes * (members.size - 1) / members.size
    # Collectives that follow each other, and the two passes of an all-reduce, overlap all but their latency.
    latency_s = count * wiring.latency_s(members)
    time_s = latency_s + passes * wiring.pass_s(nbytes, members)
    far = sent * _far_share(collective, members)
    return Traffic(
        "dp", collective, nbytes / count, count, members.size, _link(members), sent, time_s, latency_s, far
    )


def _link(members: Members) -> str:
    return FAR if members.is_far else NEAR


def _far_share(collective: str, members: Members) -> float:
    """Return the share of the bytes of a rank that leaves its host.

    Of the hops of a ring through a host, one leaves it. In an all-to-all, rows go to every other rank alike.
    """
    if not members.is_far:
        return 0.0
    if collective == "all_to_all":
        return (members.size - members.per_host) / (members.size - 1)
    return 1 / members.per_host


def gathers_again(configuration: Configuration) -> bool:
    """Return whether the backward pass gathers the inputs of tensor-parallel layers a second time."""
    return configuration.tp > 1 and configuration.recompute == GATHERS
