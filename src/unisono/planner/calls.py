"""The list of collectives of a step with the strategies of ``unisono.parallel``, without ranks and without torch.

``calls_of`` returns what ``unisono.parallel.record()`` logs on every rank, entry by entry and in the same order, in a
step after the first: for ``ParallelTransformer`` with tensor and sequence parallelism, alone or inside
``DataParallel`` or ``Zero``. ``expert_calls`` does the same for ``MixtureOfExperts``, for given numbers of rows.

The backward pass is a list of events: gradients that become ready, and collectives of tensor parallelism.
DataParallel inserts the collective of a bucket where the last of its gradients is ready, Zero that of a unit where
the backward pass enters the next one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from unisono.errors import UsageError
from unisono.planner import messages
from unisono.planner.configurations import NOTHING, Configuration
from unisono.planner.models import Model

ELEMENT_BYTES = 4  # float32
BUCKET_BYTES = 2**20  # of DataParallel on a communicator
ORDER_BYTES = 8  # a checksum of the order of the units, which all ranks compare


@dataclass(frozen=True)
class Call:
    """A collective of a step, as ``record()`` logs it: the first fields of ``unisono.parallel.Entry``."""

    collective: str
    name: str
    bytes: int
    phase: str
    size: int
    axis: str = ""


@dataclass(frozen=True)
class TransformerShape:
    """The arguments of ``ParallelTransformer``, and the batch of a rank: ``batch`` sequences of ``length``."""

    vocabulary: int
    features: int
    heads: int
    layers: int
    longest: int
    batch: int
    length: int

    @classmethod
    def of(cls, model: Model, batch: int, length: int) -> TransformerShape:
        """Return the shape of a model with two matrices in its MLP and an inner width of four times the features."""
        if model.gated or model.experts > 1 or model.intermediate != 4 * model.hidden:
            raise UsageError(messages.NOT_A_PARALLEL_TRANSFORMER(name=model.name))
        return cls(model.vocabulary, model.hidden, model.heads, model.layers, model.sequence, batch, length)

    def parameters(self, tp: int) -> dict[str, int]:
        """Return the numbers of elements of the parameters of a rank, in the order of the module."""
        f, words = self.features, self.vocabulary // tp
        sizes = {"embedding.weight": words * f, "positions.weight": self.longest * f}
        for number in range(self.layers):
            block = {
                "norm1.weight": f, "norm1.bias": f,
                "attention.qkv.weight": 3 * f // tp * f, "attention.qkv.bias": 3 * f // tp,
                "attention.out.weight": f * f // tp, "attention.out.bias": f,
                "norm2.weight": f, "norm2.bias": f,
                "mlp.up.weight": 4 * f // tp * f, "mlp.up.bias": 4 * f // tp,
                "mlp.down.weight": f * 4 * f // tp, "mlp.down.bias": f,
            }  # fmt: skip
            sizes |= {f"blocks.{number}.{name}": count for name, count in block.items()}
        return sizes | {"norm.weight": f, "norm.bias": f, "head.weight": words * f}

    def units(self, tp: int) -> dict[str, int]:
        """Return the numbers of elements of the units of Zero: the root and every block."""
        sizes = dict.fromkeys(["root", *(f"blocks.{number}" for number in range(self.layers))], 0)
        for name, count in self.parameters(tp).items():
            unit = ".".join(name.split(".")[:2]) if name.startswith("blocks.") else "root"
            sizes[unit] += count
        return sizes


@dataclass(frozen=True)
class _Event:
    """A collective, gradients that are ready, or the begin of a block's backward or forward pass."""

    call: Call | None = None
    ready: tuple[str, ...] = ()
    begins: str = ""


@dataclass(frozen=True)
class _Passes:
    """The events of the forward and the backward pass of a transformer on ``tp`` ranks."""

    shape: TransformerShape
    tp: int
    sequence_parallel: bool
    axis: str
    activation: int = field(init=False)

    def __post_init__(self) -> None:
        shape = self.shape
        object.__setattr__(self, "activation", shape.batch * shape.length * shape.features * ELEMENT_BYTES)

    def forward(self) -> Iterator[_Event]:
        """Yield the events of the forward pass."""
        leave, enter = ("reduce_scatter", "all_gather") if self.sequence_parallel else ("all_reduce", "")
        yield self._call(leave, "embedding.output", "forward")
        for number in range(self.shape.layers):
            block = f"blocks.{number}"
            yield _Event(begins=block)
            for layer, output in (("attention.qkv", "attention.out"), ("mlp.up", "mlp.down")):
                if enter:
                    yield self._call(enter, f"{block}.{layer}.input", "forward")
                yield self._call(leave, f"{block}.{output}.output", "forward")
        if enter:
            yield self._call(enter, "head.input", "forward")
        tokens = self.shape.batch * self.shape.length * ELEMENT_BYTES
        yield self._call("all_reduce", "loss.max", "forward", tokens)
        yield self._call("all_reduce", "loss.sum and target", "forward", 2 * tokens)

    def backward(self) -> Iterator[_Event]:
        """Yield the events of the backward pass."""
        yield _Event(ready=("head.weight",))
        yield self._of_input("head")
        yield from self._norm("norm")
        for number in reversed(range(self.shape.layers)):
            block = f"blocks.{number}"
            yield _Event(begins=block)
            for norm, enter, leave in (("norm2", "mlp.up", "mlp.down"), ("norm1", "attention.qkv", "attention.out")):
                yield from self._row(f"{block}.{leave}")
                yield _Event(ready=(f"{block}.{enter}.bias", f"{block}.{enter}.weight"))
                yield self._of_input(f"{block}.{enter}")
                yield from self._norm(f"{block}.{norm}")
        if self.sequence_parallel:
            positions = self.shape.length * self.shape.features * ELEMENT_BYTES
            yield self._call("all_gather", "gradient of embedding.output", "backward")
            yield self._call("all_reduce", "gradient of positions", "backward", positions)
        yield _Event(ready=("positions.weight", "embedding.weight"))

    def _row(self, layer: str) -> Iterator[_Event]:
        """Yield the events of a row layer, whose bias is added to the shard of a rank in sequence parallelism."""
        if not self.sequence_parallel:
            yield _Event(ready=(f"{layer}.bias", f"{layer}.weight"))
            return
        yield self._parameters_call(f"{layer}.bias", 1)
        yield _Event(ready=(f"{layer}.bias",))
        yield self._call("all_gather", f"gradient of {layer}.output", "backward")
        yield _Event(ready=(f"{layer}.weight",))

    def _norm(self, norm: str) -> Iterator[_Event]:
        if self.sequence_parallel:
            yield self._parameters_call(f"{norm} (parameters)", 2)
        yield _Event(ready=(f"{norm}.bias", f"{norm}.weight"))

    def _of_input(self, layer: str) -> _Event:
        collective = "reduce_scatter" if self.sequence_parallel else "all_reduce"
        return self._call(collective, f"gradient of {layer}.input", "backward")

    def _parameters_call(self, name: str, vectors: int) -> _Event:
        return self._call(
            "all_reduce", f"gradient of {name}", "backward", vectors * self.shape.features * ELEMENT_BYTES
        )

    def _call(self, collective: str, name: str, phase: str, nbytes: int = 0) -> _Event:
        return _Event(Call(collective, name, nbytes or self.activation, phase, self.tp, self.axis))


def calls_of(
    shape: TransformerShape, *, dp: int = 1, tp: int = 1, sequence_parallel: bool = False, zero: int = 0,
    replicas: int = 1, bucket_bytes: int = BUCKET_BYTES, axes: tuple[str, str] = ("dp", "tp"),
) -> list[Call]:  # fmt: skip
    """Return the collectives of a step of ``ParallelTransformer`` on dp * tp ranks, in the order in which they start.

    With ``dp`` above 1 the model is inside ``DataParallel`` (``zero`` 0, with buckets of ``bucket_bytes``) or inside
    ``Zero`` of that stage. ``replicas`` above 1 is hybrid sharding, ``Zero(..., replicate=)``, with that many groups
    of dp ranks. ``axes``: the names of the two groups in the log.
    """
    for what, count in (("heads", shape.heads), ("vocabulary", shape.vocabulary), ("length", shape.length)):
        if count % tp and (what != "length" or sequence_parallel):
            raise UsageError(messages.NOT_SPLIT(what=what, count=count, tp=tp))
    passes = _Passes(shape, tp, sequence_parallel, axes[1])
    forward, backward = list(passes.forward()), list(passes.backward())
    if dp == 1:
        return [event.call for event in [*forward, *backward] if event.call is not None]
    if zero == 0:
        calls = [event.call for event in forward if event.call is not None]
        return calls + _with_buckets(backward, shape.parameters(tp), dp, bucket_bytes, axes[0])
    sizes = {name: -(-count // dp) * dp * ELEMENT_BYTES for name, count in shape.units(tp).items()}
    units = _Units(sizes, dp, zero, axes[0], replicas, "replica")
    return [*units.forward(forward), *units.backward(backward), *units.update()]


def calls_of_configuration(model: Model, configuration: Configuration, sequence: int) -> list[Call]:
    """Return the collectives of a micro-batch in ``unisono.parallel``; raise UsageError where it has no strategy."""
    each = configuration
    if each.pp > 1 or each.ep > 1 or each.recompute != NOTHING:
        raise UsageError(messages.NOT_IN_PARALLEL(configuration=each))
    shape = TransformerShape.of(model, each.micro_batch, sequence)
    return calls_of(shape, dp=each.dp, tp=each.tp, sequence_parallel=each.sequence_parallel, zero=each.zero)


def fill_buckets(sizes: dict[str, int], bucket_bytes: int) -> list[list[str]]:
    """Return the names of the parameters of each bucket, in the order of sending; ``sizes`` are in bytes.

    This is the rule of ``unisono.parallel.buckets``, for parameters of one dtype.
    """
    filled: list[tuple[int, list[str]]] = []
    open_names: list[str] = []
    positions = {name: position for position, name in enumerate(reversed(sizes))}
    for name, position in positions.items():
        if sizes[name] >= bucket_bytes:
            filled.append((position, [name]))
            continue
        if sum(sizes[each] for each in open_names) + sizes[name] > bucket_bytes:
            filled.append((positions[open_names[-1]], open_names))
            open_names = []
        open_names.append(name)
    if open_names:
        filled.append((positions[open_names[-1]], open_names))
    return [names for _, names in sorted(filled)]


def _with_buckets(
    backward: Sequence[_Event], elements: dict[str, int], dp: int, bucket_bytes: int, axis: str
) -> list[Call]:
    sizes = {name: count * ELEMENT_BYTES for name, count in elements.items()}
    buckets = fill_buckets(sizes, bucket_bytes)
    pending, calls = [set(bucket) for bucket in buckets], []
    reduced = 0
    for event in backward:
        if event.call is not None:
            calls.append(event.call)
        for name in event.ready:
            next(each for each in pending if name in each).discard(name)
            while reduced < len(buckets) and not pending[reduced]:
                bucket = buckets[reduced]
                label = bucket[0] if len(bucket) == 1 else f"{bucket[0]}..{bucket[-1]}"
                nbytes = sum(sizes[each] for each in bucket)
                calls.append(Call("all_reduce", label, nbytes, "backward", dp, axis))
                reduced += 1
    return [*calls, Call("all_reduce", "(which gradients exist)", len(sizes) + 1, "backward", dp, axis)]


@dataclass(frozen=True)
class _Units:
    """The collectives of Zero: the units of a model on ``dp`` ranks, and on ``replicas`` groups of them.

    A shard is averaged over the replicas when the next unit is reduced, so that both collectives overlap.
    """

    sizes: dict[str, int]  # bytes, padded
    dp: int
    zero: int
    axis: str
    replicas: int
    replica_axis: str

    def forward(self, events: Sequence[_Event]) -> Iterator[Call]:
        """Yield the collectives of the forward pass; stage 3 gathers each unit while the one before it runs."""
        order = [name for name in self.sizes if name != "root"]
        yield from self._gathering(order, "forward", events)
        if self.zero == 3:
            yield from self._agreements("(order of the units)", ORDER_BYTES, "forward")

    def backward(self, events: Sequence[_Event]) -> Iterator[Call]:
        """Yield the collectives of the backward pass."""
        order = [name for name in reversed(self.sizes) if name != "root"]
        yield from self._gathering(order, "backward", events)
        yield from self._averaging(order[-1])
        yield self._reducing("root")
        late = len(self.sizes) + 1  # a byte for each unit, and one for all
        name = "(late gradients, order of the units)" if self.zero == 3 else "(which gradients are late)"
        own, *others = self._agreements(name, late + ORDER_BYTES * (self.zero == 3), "backward")
        yield from (own, *self._averaging("root"), *others)

    def update(self) -> Iterator[Call]:
        """Yield the collectives of the optimiser's step."""
        if self.zero < 3:
            yield from (self._call("all_gather", name, "update") for name in self.sizes)

    def _gathering(self, order: list[str], phase: str, events: Sequence[_Event]) -> Iterator[Call]:
        following = dict(pairwise(order))
        reduced = ""
        if self.zero == 3:
            yield from (self._call("all_gather", name, phase) for name in ("root", order[0]))
        for event in events:
            if event.call is not None:
                yield event.call
            if not event.begins:
                continue
            if self.zero == 3 and event.begins in following:
                yield self._call("all_gather", following[event.begins], phase)
            if phase == "backward" and event.begins != order[0]:
                yield from self._averaging(reduced)
                reduced = order[order.index(event.begins) - 1]
                yield self._reducing(reduced)
        if phase == "backward":
            yield from self._averaging(reduced)
            yield self._reducing(order[-1])

    def _reducing(self, name: str) -> Call:
        return self._call("all_reduce" if self.zero == 1 else "reduce_scatter", name, "backward")

    def _averaging(self, name: str) -> Iterator[Call]:
        """Yield the all-reduce of a unit over the replicas: of the shard, or in stage 1 of the whole gradient."""
        if name and self.replicas > 1:
            nbytes = self.sizes[name] // (1 if self.zero == 1 else self.dp)
            yield Call("all_reduce", name, nbytes, "backward", self.replicas, self.replica_axis)

    def _agreements(self, name: str, nbytes: int, phase: str) -> Iterator[Call]:
        yield Call("all_reduce", name, nbytes, phase, self.dp, self.axis)
        if self.replicas > 1:
            yield Call("all_reduce", name, nbytes, phase, self.replicas, self.replica_axis)

    def _call(self, collective: str, name: str, phase: str) -> Call:
        return Call(collective, name, self.sizes[name], phase, self.dp, self.axis)


def expert_calls(
    features: int, experts: int, ranks: int, *, top_k: int, sent_rows: int, received_rows: int, name: str = "moe",
    axis: str = "",
) -> list[Call]:  # fmt: skip
    """Return the collectives of a ``MixtureOfExperts`` on a rank that sends and receives these numbers of rows."""
    sent, received = (rows * features * ELEMENT_BYTES for rows in (sent_rows, received_rows))
    return [
        Call("all_gather", f"{name}.expert_counts", 8 * ranks * experts * top_k, "forward", ranks, axis),
        Call("all_to_all", f"{name}.dispatch", sent, "forward", ranks, axis),
        Call("all_to_all", f"{name}.combine", received, "forward", ranks, axis),
        Call("all_to_all", f"gradient of {name}.combine", sent, "backward", ranks, axis),
        Call("all_to_all", f"gradient of {name}.dispatch", received, "backward", ranks, axis),
    ]
