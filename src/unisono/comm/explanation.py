"""Explains the choice of an algorithm: the predicted terms, the runner-up, and the sizes where others take over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from unisono import collectives
from unisono.algorithms.user_files import WrittenSchedule
from unisono.bootstrap.job_config import STAGING_BYTES, Table
from unisono.collectives import Collective
from unisono.comm import codec_messages, messages
from unisono.comm.candidates import NO_OPTIONS, Variant, with_options
from unisono.comm.codec_agreement import agrees, rounding_mode_of
from unisono.comm.codec_choice import CodecChoice, rate_at_which_codec_pays
from unisono.comm.ranking import EQUALLY_GOOD, Ranking, ranking_for
from unisono.comm.selection import Rule, choose, micro
from unisono.comm.topology import topology_of
from unisono.compiler import Hosts
from unisono.costs.network_model import NetworkModel
from unisono.costs.prediction import Prediction
from unisono.costs.rates import DEFAULT, Rates
from unisono.message import Message, listed

DEFAULT_CODEC = "bf16"


class Takeover(NamedTuple):
    """The size in bytes from which an algorithm is used, and that algorithm with its options."""

    from_bytes: int
    algorithm: str


class Explanation(NamedTuple):
    """The algorithm of a call, the reason, and the next best one.

    A call of ``collective`` with ``nbytes`` bytes on ``size`` ranks uses ``algorithm`` with these ``options``
    (default: none), because of ``reason``. ``next_best`` is the next best algorithm, or None. ``topology`` describes
    the hosts: "8", "2x4" or "3+1" (topology.py). If the call allows a codec (``codec="auto:..."``), ``codec`` is the
    one that it uses, or None, because of ``codec_reason`` (default: both None).

    ``prediction`` is the predicted time of the call and its terms (latency, bandwidth, reduction) in seconds, and
    ``behind`` the factor by which ``next_best`` is predicted to be slower; it is less than 1 where a measurement
    disagrees with the prediction (``measured``: the choice was measured). If the call names an algorithm that would
    not be chosen, ``requested`` is True, and ``next_best`` the algorithm that would be. ``takeovers`` are the sizes
    from which each algorithm is used. ``codec_rate`` is the rate of the links between hosts, in bytes per second,
    below which a codec pays off in this call: ``allowed_codec``, which the call allows, or else bf16; it is None if
    it never does. (Defaults: None, none and False.)
    """

    collective: str
    size: int
    nbytes: int
    algorithm: str
    reason: Message
    next_best: str | None
    topology: str
    options: Mapping[str, Any] = NO_OPTIONS
    codec: str | None = None
    codec_reason: Message | None = None
    prediction: Prediction | None = None
    behind: float | None = None
    takeovers: tuple[Takeover, ...] = ()
    codec_rate: float | None = None
    allowed_codec: str | None = None
    measured: bool = False
    requested: bool = False

    def message(self) -> Message:
        """Return the explanation as one sentence."""
        carries_data = collectives.find(self.collective).carries_data
        about = {"collective": self.collective, "size": self.size, "reason": self.reason}
        about["algorithm"] = with_options(self.algorithm, self.options)
        if carries_data:
            explanation = messages.EXPLANATION(nbytes=self.nbytes, **about)
        else:
            explanation = messages.EXPLANATION_WITHOUT_BYTES(**about)
        following = self.next_best_message()
        if following is not None:
            said = messages.EXPLANATION_WITH_CHOICE if self.requested else messages.EXPLANATION_WITH_NEXT
            explanation = said(explanation=explanation, next_best=following)
        if self.takeovers and carries_data:
            takeovers = self.takeovers_message()
            explanation = messages.EXPLANATION_WITH_TAKEOVERS(explanation=explanation, takeovers=takeovers)
        if self.topology != str(self.size) and self.codec_rate is not None:
            rate = self.codec_rate_message()
            explanation = codec_messages.EXPLANATION_WITH_CODEC(explanation=explanation, reason=rate)
        if self.codec_reason is None:
            return explanation
        return codec_messages.EXPLANATION_WITH_CODEC(explanation=explanation, reason=self.codec_reason)

    def next_best_message(self) -> Message | None:
        """Return the next best algorithm, and how far it is behind; None if there is none."""
        if self.next_best is None:
            return None
        if self.behind is None:
            return messages.NEXT_BEST(algorithm=self.next_best)
        if 1 / EQUALLY_GOOD <= self.behind <= EQUALLY_GOOD:
            return messages.NEXT_BEST_EQUAL(algorithm=self.next_best, percent=_percent(EQUALLY_GOOD))
        if self.behind < 1:
            faster = messages.NEXT_BEST_PREDICTED_FASTER if self.measured else messages.NEXT_BEST_FASTER
            return faster(algorithm=self.next_best, percent=_percent(1 / self.behind))
        if self.behind >= 2:
            return messages.NEXT_BEST_FAR_BEHIND(algorithm=self.next_best, times=f"{self.behind:.1f}")
        return messages.NEXT_BEST_BEHIND(algorithm=self.next_best, percent=_percent(self.behind))

    def prediction_message(self) -> Message | None:
        """Return the predicted time and its terms; None if there is no prediction."""
        if self.prediction is None:
            return None
        time, latency, bandwidth, reduction, _ = map(micro, self.prediction)
        return messages.PREDICTED_TIME(time=time, latency=latency, bandwidth=bandwidth, reduction=reduction)

    def takeovers_message(self) -> Message:
        """Return the sizes at which another algorithm takes over."""
        others = [each for each in self.takeovers if each.from_bytes]
        if not others:
            return messages.NO_TAKEOVER()
        return messages.TAKEOVERS(
            first=self.takeovers[0].algorithm,
            others=listed(messages.TAKEOVER(algorithm=each.algorithm, start=each.from_bytes) for each in others),
        )

    def codec_rate_message(self) -> Message:
        """Return the link speed below which a codec pays off: the one that the call allows, or else bf16."""
        codec = self.allowed_codec or DEFAULT_CODEC
        if self.codec_rate is None:
            return codec_messages.CODEC_NEVER_PAYS(codec=codec)
        return codec_messages.CODEC_PAYS_BELOW(codec=codec, rate=f"{self.codec_rate * 8e-9:.3g}")

    def __str__(self) -> str:
        return str(self.message())


def _percent(ratio: float) -> str:
    return f"{(ratio - 1) * 100:.0f}"


def explain(
    collective: Collective, size: int, nbytes: int, table: Table, rates: Rates | NetworkModel = DEFAULT,
    hosts: Hosts | None = None, codec: CodecChoice | None = None, staging_bytes: int = STAGING_BYTES,
    own: Variant | WrittenSchedule | None = None, ranking: Ranking | None = None,
) -> Explanation:  # fmt: skip
    """Return the algorithm that a call with this codec would use, the reason, and the next best one.

    ``own`` is the algorithm that the call names, if it names one; the reason is then that of the choice without it.
    ``ranking`` replaces the one by cost terms.
    """
    used = None if codec is None else codec.codec
    rounding, root = rounding_mode_of(used), 0 if collective.rooted else None

    def may_be_used(variant: Variant) -> bool:
        return used is None or agrees(variant.schedule(size, root), rounding)

    ranking = ranking or ranking_for(collective, size, hosts, rates, staging_bytes)
    chosen = choose(collective, size, nbytes, table, rates, may_be_used, hosts, staging_bytes, ranking)
    ranked = ranking.ranked(nbytes)
    choice = Variant(chosen.algorithm, chosen.options)
    named = choice if own is None else own
    requested = not (isinstance(named, Variant) and _is_same(choice, named))
    prediction = next((each.prediction for each in ranked if _is_same(each.variant, named)), None)
    if prediction is None and own is not None:
        prediction = ranking.predicted(named.schedule(size, root), nbytes)
    following = next((each for each in ranked if _is_same(each.variant, choice) == requested), None)
    allowed = None if codec is None else codec.allowed
    rows = table.get(collective.name, {}).get(topology_of(size, hosts))
    if rows:
        rules = [Rule(*row) for row in rows]
        takeovers = [Takeover(rule.from_bytes, with_options(rule.algorithm, rule.options)) for rule in rules]
    else:
        takeovers = [Takeover(each.from_bytes, each.variant.key) for each in ranking.takeovers()]
    return Explanation(
        collective.name, size, nbytes, named.name, chosen.reason,
        None if following is None else following.variant.key, topology_of(size, hosts),
        named.options if isinstance(named, Variant) else NO_OPTIONS,
        None if used is None else str(used), None if codec is None else codec.reason,
        prediction,
        None if prediction is None or following is None else _ratio(following.prediction, prediction),
        tuple(takeovers), rate_at_which_codec_pays(allowed, collective, size, nbytes, hosts, rates),
        None if allowed is None else str(allowed), bool(rows), requested,
    )  # fmt: skip


def _is_same(one: Variant, other: Variant | WrittenSchedule) -> bool:
    """Return whether two variants run the same program; options that one does not state have their defaults."""
    if not isinstance(other, Variant):
        return False
    mine, theirs = one.algorithm, other.algorithm
    return mine is theirs and {**mine.options, **one.options} == {**theirs.options, **other.options}


def _ratio(other: Prediction, mine: Prediction) -> float:
    return other.time_s / mine.time_s if mine.time_s else 1.0
