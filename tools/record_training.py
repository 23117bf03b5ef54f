"""Record one training step of each strategy on 4 real ranks, for the pages that explain them: ``make docs``.

Writes src/unisono/drawing/training/*.json: which collective ran when, on which tensor, and what every rank held at
every moment, measured from its tensors (described in tools/training_watch.py). Nothing in these files is typed by
hand. A test records again and compares.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import unisono
from training_watch import Watch, WatchedGroup
from unisono.parallel import DataParallel, MixtureOfExperts, ParallelBlock, ParallelMLP, Zero, record
from unisono.parallel.moe import is_expert
from unisono.parallel.sharded_parameter import gradient_of

FOLDER = Path(__file__).parent.parent / "src" / "unisono" / "drawing" / "training"
RANKS = 4
ROWS, FEATURES, LAYERS = 8, 64, 4  # rows of each rank
BATCH, LENGTH, HIDDEN, HEADS = 2, 8, 2 * FEATURES, 4  # of tensor parallel
CHOICES = 2  # experts for each row, in the mixture of experts


class Layer(nn.Linear):
    """Linear, then ReLU."""

    def forward(self, x: Tensor) -> Tensor:
        """Apply both."""
        return super().forward(x).relu()


class Model(nn.Module):
    """Several layers, one after another."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer(FEATURES, FEATURES) for _ in range(LAYERS))

    def forward(self, x: Tensor) -> Tensor:
        """Apply all layers."""
        for layer in self.layers:
            x = layer(x)
        return x


def data_parallel(comm: unisono.Communicator) -> dict[str, Any]:
    """DataParallel with two layers in each bucket."""
    model = Model()
    layers = {f"layers.{number}": layer for number, layer in enumerate(model.layers)}
    watch = Watch(layers)
    layer_bytes = 4 * sum(parameter.numel() for parameter in model.layers[0].parameters())
    wrapped = DataParallel(model, WatchedGroup(comm, watch), bucket_bytes=2 * layer_bytes)
    optimizer = torch.optim.AdamW(wrapped.parameters())
    shapes = {name: list(parameter.shape) for name, parameter in model.named_parameters()}
    buckets = {bucket.name: [(name, shapes[name]) for name in bucket.names] for bucket in wrapped.buckets}
    watch.members = lambda name: buckets.get(name, [])
    watch.activations.others = lambda: list(model.parameters())

    def measure() -> tuple[list[dict[str, int]], int]:
        flats = [bucket.flat for bucket in wrapped.buckets]
        places = {flat.untyped_storage().data_ptr() for flat in flats}
        gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
        in_buckets = [each for each in gradients if each.untyped_storage().data_ptr() in places]
        return [_of_module(layer, optimizer) for layer in layers.values()], _bytes(flats) - _bytes(in_buckets)

    watch.measure = measure
    return _described(watch, layers, model, _step(watch, wrapped, optimizer, torch.randn(ROWS, FEATURES)))


def zero3(comm: unisono.Communicator) -> dict[str, Any]:
    """Zero, stage 3; each layer is a unit."""
    model = Model()
    layers = {f"layers.{number}": layer for number, layer in enumerate(model.layers)}
    watch = Watch(layers)
    described = _described(watch, layers, model, {})
    zero = Zero(model, WatchedGroup(comm, watch), optimizer=torch.optim.AdamW)
    flats = {flat.name: flat for flat in zero.flats}
    gatherer, reducer = zero._gatherer, zero._reducer
    assert gatherer is not None
    watch.members = lambda name: [
        (member.names[0], list(shape)) for member, shape in zip(flats[name].members, flats[name].shapes, strict=True)
    ]
    watch.activations.others = lambda: [*(buffer.memory for buffer in gatherer.buffers), *model.parameters()]
    free = gatherer.free

    def watched_free(name: str) -> None:
        was_there = gatherer.residents[name].buffer.resident is gatherer.residents[name]
        free(name)
        if was_there and name in watch.layers:
            watch.note("free", layer=watch.layers.index(name))

    gatherer.free = watched_free  # type: ignore[method-assign]

    def measure() -> tuple[list[dict[str, int]], int]:
        sent = [
            each for number in watch.open if (each := watch.collectives[number])["collective"] == "reduce_scatter"
        ]
        found = []
        empty = _bytes([buffer.memory for buffer in gatherer.buffers]) + _bytes(reducer.buffers)
        for name in layers:
            flat = flats[name]
            vector = flat.padded_numel * flat.compute_dtype.itemsize
            gathered = vector if gatherer.residents[name].buffer.resident is gatherer.residents[name] else 0
            on_the_way = sum(each["bytes"] for each in sent if each["name"] == name)
            left = (gradient_of(member.parameter) for member in flat.members)
            whole = [gradient for gradient in left if gradient is not None]
            own = _bytes([flat.gradient])
            empty -= gathered + on_the_way - (0 if flat.has_gradient else own)
            found.append({
                "parameters": _bytes([flat.shard]), "gathered": gathered,
                "gradients": (own if flat.has_gradient else 0) + on_the_way + _bytes(whole),
                "optimizer": _bytes(_states(zero.optimizer, [flat.master])),
            })  # fmt: skip
        return found, empty

    watch.measure = measure
    return {**described, **_step(watch, zero, zero, torch.randn(ROWS, FEATURES)), **_shapes(watch, described)}


def tensor_parallel(comm: unisono.Communicator) -> dict[str, Any]:
    """A column, an activation, a row; and what a whole block of a transformer sends."""
    group = WatchedGroup(comm, Watch({}))
    mlp = ParallelMLP(FEATURES, HIDDEN, group, name="mlp")
    layers = {"mlp.up": mlp.up, "mlp.activation": mlp.activation, "mlp.down": mlp.down}
    watch = Watch(layers)
    mlp.up.group = mlp.down.group = WatchedGroup(comm, watch)
    optimizer = torch.optim.AdamW(mlp.parameters())
    watch.members = lambda name: [(short := name.removeprefix("gradient of "), watch.shapes[short])]
    watch.activations.others = lambda: list(mlp.parameters())
    watch.measure = lambda: ([_of_module(layer, optimizer) for layer in layers.values()], 0)
    x = torch.randn(BATCH, LENGTH, FEATURES, requires_grad=True)  # there are layers before this one
    found = _described(watch, layers, mlp, _step(watch, mlp, optimizer, x))
    for layer in found["layers"]:
        kind = type(layers[layer["name"]]).__name__
        layer["split"] = {"ColumnLinear": "column", "RowLinear": "row"}.get(kind, "")
    block = ParallelBlock(FEATURES, HEADS, group, name="block")
    with record() as log:
        block(x.detach().requires_grad_()).sum().backward()
    sent = [{"collective": e.collective, "name": e.name, "bytes": e.bytes, "phase": e.phase} for e in log]
    whole = {f"mlp.{name}": list(shape) for name, shape in _whole_shapes(mlp).items()}
    return {**found, "whole": whole, "block": sent}


class Expert(nn.Module):
    """Two matrices with a ReLU between them."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(FEATURES, HIDDEN), nn.Linear(HIDDEN, FEATURES)

    def forward(self, x: Tensor) -> Tensor:
        """Apply both."""
        result: Tensor = self.down(self.up(x).relu())
        return result


class Mixture(nn.Module):
    """A mixture of as many experts as there are ranks, without its balance loss."""

    def __init__(self, group: WatchedGroup) -> None:
        super().__init__()
        self.moe = MixtureOfExperts.of(FEATURES, RANKS, Expert, group, top_k=CHOICES, name="moe")

    def forward(self, x: Tensor) -> Tensor:
        """Return the weighted sum of the results of the experts."""
        output: Tensor = self.moe(x).output
        return output


def experts(comm: unisono.Communicator) -> dict[str, Any]:
    """A mixture of experts: each rank has one expert, and the router is averaged by DataParallel."""
    model = Mixture(WatchedGroup(comm, Watch({})))
    (expert,) = model.moe.experts.values()
    layers: dict[str, nn.Module] = {"moe.router": model.moe.router, "moe.expert": expert}
    watch = Watch(layers)
    model.moe.group = WatchedGroup(comm, watch)
    wrapped = DataParallel(model, WatchedGroup(comm, watch), local=is_expert)
    optimizer = torch.optim.AdamW(wrapped.parameters())
    buckets = {bucket.name: list(bucket.names) for bucket in wrapped.buckets}
    shapes = {name: list(parameter.shape) for name, parameter in model.named_parameters()}
    watch.members = lambda name: (
        [(member, shapes[member]) for member in buckets[name]] if name in buckets
        else [("moe.router.counts", [RANKS, CHOICES])] if name.endswith("expert_counts")
        else [("moe.expert.rows", [ROWS * CHOICES, FEATURES])] if name.startswith(("moe.", "gradient of moe."))
        else []
    )  # fmt: skip
    watch.activations.others = lambda: list(model.parameters())

    def measure() -> tuple[list[dict[str, int]], int]:
        flats = [bucket.flat for bucket in wrapped.buckets]
        places = {flat.untyped_storage().data_ptr() for flat in flats}
        gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
        in_buckets = [each for each in gradients if each.untyped_storage().data_ptr() in places]
        return [_of_module(layer, optimizer) for layer in layers.values()], _bytes(flats) - _bytes(in_buckets)

    watch.measure = measure
    # Every rank has different rows, and there are layers before this one.
    x = torch.randn(ROWS, FEATURES, generator=torch.Generator().manual_seed(comm.rank)).requires_grad_()
    found = _described(watch, layers, model, _step(watch, wrapped, optimizer, x))
    for layer, split in zip(found["layers"], ("router", "expert"), strict=True):
        layer["split"] = split
        layer["input"] = layer["output"] = []  # the rows of an expert differ from rank to rank
    whole = {f"moe.expert.{name}": [RANKS * len(p), *p.shape[1:]] for name, p in expert.named_parameters()}
    return {**found, "whole": {**whole, "moe.router.weight": list(model.moe.router.weight.shape)}}


def _step(watch: Watch, model: Any, optimizer: Any, x: Tensor) -> dict[str, Any]:
    """Train two steps, and return the events of the second: Adam creates its state in the first."""
    for number in range(2):
        if number == 0:
            model(x).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
            continue
        x.grad = None
        with watch.step():
            watch.note("begin")
            loss = model(x).square().mean()
            watch.note("loss")
            loss.backward()
            watch.phase = "backward"
            watch.note("ready")
            watch.phase = "update"
            optimizer.step()
            watch.note("update")
            optimizer.zero_grad()
            watch.note("end")
    return {"moments": watch.moments, "collectives": watch.collectives}


def _described(watch: Watch, layers: dict[str, nn.Module], model: nn.Module, step: dict[str, Any]) -> dict[str, Any]:
    described: dict[str, Any] = {
        "ranks": RANKS,
        "dtype": "float32",
        "layers": [
            {
                "name": name, "kind": "linear" if list(layer.parameters()) else "activation", "split": "",
                "parameters": [[short, list(each.shape)] for short, each in layer.named_parameters()],
            }
            for name, layer in layers.items()
        ],
        **step,
    }  # fmt: skip
    return described | _shapes(watch, described)


def _shapes(watch: Watch, described: dict[str, Any]) -> dict[str, Any]:
    layers = [
        {**layer, **{end: watch.shapes.get(f"{layer['name']}.{end}", []) for end in ("input", "output")}}
        for layer in described["layers"]
    ]
    return {"layers": layers}


def _whole_shapes(mlp: Any) -> dict[str, list[int]]:
    return {
        "up.weight": [mlp.up.out_features, mlp.up.in_features], "up.bias": [mlp.up.out_features],
        "down.weight": [mlp.down.out_features, mlp.down.in_features], "down.bias": [mlp.down.out_features],
    }  # fmt: skip


def _of_module(layer: nn.Module, optimizer: Any) -> dict[str, int]:
    parameters = list(layer.parameters())
    return {
        "parameters": _bytes(parameters),
        "gradients": _bytes([each.grad for each in parameters if each.grad is not None]),
        "optimizer": _bytes(_states(optimizer, parameters)),
    }


def _states(optimizer: Any, parameters: list[Any]) -> list[Tensor]:
    """Return the state of the optimiser for parameters, without its step counters."""
    return [value for each in parameters for value in optimizer.state[each].values() if value.dim()]


def _bytes(tensors: list[Any]) -> int:
    return sum(each.numel() * each.element_size() for each in tensors)


STRATEGIES: dict[str, Callable[[unisono.Communicator], dict[str, Any]]] = {
    "data_parallel": data_parallel, "tensor_parallel": tensor_parallel, "zero3": zero3,
    "experts": experts,
}  # fmt: skip


def recorded(name: str) -> str:
    """Run a strategy on new ranks; return the text of its file."""
    found = unisono.spawn(_on_a_rank, RANKS, name, timeout=60)
    _merge_rows(found)
    first = found[0]
    for other in found[1:]:
        assert _without_memory(other) == _without_memory(first), f"{name}: ranks do different things"
    for number, moment in enumerate(first["moments"]):
        for kind in ("held", "empty"):
            moment[kind] = [rank["moments"][number][kind] for rank in found]
    return _written(first)


def _merge_rows(found: list[dict[str, Any]]) -> None:
    """Give every rank the rows that each rank sends to each; bytes become means, which all ranks agree on."""
    for calls in zip(*(rank["collectives"] for rank in found), strict=True):
        if "rows" not in calls[0]:
            continue
        rows = [call["rows"] for call in calls]
        width = FEATURES * 4
        leaving = sum(sum(each) - each[rank] for rank, each in enumerate(rows))
        means = {"bytes": width * sum(map(sum, rows)) // RANKS, "sent_bytes": width * leaving // RANKS, "rows": rows}
        for call in calls:
            call.update(means)


def _on_a_rank(comm: unisono.Communicator, name: str) -> dict[str, Any]:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    found: dict[str, Any] = json.loads(json.dumps(STRATEGIES[name](comm)))
    return found


def _without_memory(found: dict[str, Any]) -> dict[str, Any]:
    moments = [{k: v for k, v in moment.items() if k not in ("held", "empty")} for moment in found["moments"]]
    return {**found, "moments": moments}


def _written(found: dict[str, Any]) -> str:
    """Return JSON with a line for each layer, collective and moment."""
    parts = []
    for key, value in found.items():
        if isinstance(value, list):
            lines = ",\n".join("  " + json.dumps(each) for each in value)
            parts.append(f"{json.dumps(key)}: [\n{lines}\n]")
        else:
            parts.append(f"{json.dumps(key)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for strategy in STRATEGIES:
        (FOLDER / f"{strategy}.json").write_text(recorded(strategy), encoding="utf-8")
