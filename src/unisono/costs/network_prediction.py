"""Predicts the time of a call on a network whose ranks have ports, from the cost terms of its program."""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

from unisono.collectives import Collective
from unisono.compiler.call_layout import count_passes
from unisono.compiler.geometry import TRACKS_BETWEEN_HOSTS
from unisono.costs.network_model import Costs, NetworkModel, Processor
from unisono.costs.prediction import Prediction
from unisono.costs.terms import Path, Terms


class _Call(NamedTuple):
    """The costs of a call: those of its protocol, and those that depend on its size."""

    processor: Processor
    costs: Costs
    far_s: float
    far_byte_s: float
    segment: float  # bytes of a chunk in one pass
    slow: float  # the factor on bytes that processors copy
    work: Path


def predict_on_network(
    terms: Terms, collective: Collective, nbytes: int, model: NetworkModel, hosts: int, staging_bytes: int
) -> Prediction:
    """Return the predicted time of a call of ``nbytes`` bytes; the terms are those of a network."""
    processor = model.processor
    chunk = nbytes / terms.chunks if collective.carries_data else 0.0
    costs = _protocol(model, chunk, hosts)
    tracks = TRACKS_BETWEEN_HOSTS if hosts > 1 else 1
    if processor.segment_bytes:
        passes = max(1, ceil(chunk / processor.segment_bytes))
    else:
        passes = count_passes(collective, ceil(chunk), terms.most_sent, staging_bytes, hosts > 1, tracks)
    working_set = nbytes * (1 if collective.single_array else 2)
    slow = processor.beyond_cache if working_set > processor.cache_bytes else 1.0
    far_byte_s = costs.far_byte_s * model.nic_share(terms.ranks)
    far_s = costs.on_hosts(hosts) if hosts > 1 else costs.near_s
    call = _Call(processor, costs, far_s, far_byte_s, chunk / passes, slow, terms.work)
    longest = max(_path(part.first, call) for part in terms.parts)
    if passes > 1:
        port_s = call.segment * (terms.work.passing * costs.near_byte_s + terms.work.crossing * far_byte_s)
        further = Prediction(port_s, 0.0, port_s, 0.0, 0.0)
        if hosts > 1:  # several passes are in flight
            further = max(further, _times(longest, 1 / min(tracks, passes)))
        else:
            further = max(further, *(_path(part.further, call) for part in terms.parts))
        longest = _sum(longest, _times(further, passes - 1))
    copied_s = nbytes * slow * processor.copied_byte_s if processor.copies_input and collective.reduces else 0.0
    return _sum(longest, Prediction(costs.call_s + copied_s, costs.call_s, copied_s, 0.0, costs.call_s + copied_s))


def _protocol(model: NetworkModel, chunk: float, hosts: int) -> Costs:
    """Return the protocol that delivers a chunk first, as the simulator selects it."""

    def seconds(costs: Costs) -> float:
        latency_s, byte_s = costs.far_message if hosts > 1 else costs.near_message
        return latency_s + chunk * byte_s

    return min(model.protocols, key=seconds) if len(model.protocols) > 1 else model.protocols[0]


def _path(path: Path, call: _Call) -> Prediction:
    processor, costs, segment = call.processor, call.costs, call.segment
    latency_s = path.near * costs.near_s + path.far * call.far_s
    bandwidth_s = segment * (path.passing * costs.near_byte_s + path.crossing * call.far_byte_s)
    events = path.sends + path.receives
    message = segment * (path.sent + path.received) / events if events else 0.0  # bytes, on average
    copied_s = path.copied * processor.copied_byte_s
    if message > processor.inline_bytes:
        latency_s += (path.near + path.far) * processor.fetch_s
    if message <= processor.eager_bytes:
        copied_s += path.sent * processor.sent_byte_s + path.received * processor.received_byte_s
        bandwidth_s += (path.near + path.far) * message * processor.eager_byte_s if processor.eager_byte_s else 0.0
    else:
        # Both sides must be ready, so a message also waits for the latency of the one before it.
        handshakes = call.work.handshakes
        latency_s += handshakes * (processor.rendezvous_s + processor.rendezvous_trips * call.far_s)
        latency_s += max(0.0, handshakes - path.near - path.far) * call.far_s
    if message > processor.exchange_bytes:
        turn = 1 - processor.exchange_bytes / message
        bandwidth_s += segment * call.work.exchanged * call.far_byte_s * turn
    busy_s = path.sends * processor.send_s + path.receives * processor.receive_s
    copied_s *= segment * call.slow
    reduced_s = segment * call.slow * path.reduced * processor.reduced_byte_s
    latency_s, bandwidth_s = latency_s + busy_s, bandwidth_s + copied_s
    return Prediction(
        latency_s + bandwidth_s + reduced_s, latency_s, bandwidth_s, reduced_s, busy_s + copied_s + reduced_s
    )


def _sum(one: Prediction, other: Prediction) -> Prediction:
    return Prediction(*(mine + theirs for mine, theirs in zip(one, other, strict=True)))


def _times(one: Prediction, factor: float) -> Prediction:
    return Prediction(*(each * factor for each in one))
