"""Random models that every strategy trains in random ways on 1, 2 and 3 ranks match training in one process.

One run is one model, trained for two or three updates by one strategy on one number of ranks. The short version is
part of `make test`, the long one of `make stress`.
"""

from __future__ import annotations

import warnings
from contextlib import nullcontext

import pytest

torch = pytest.importorskip("torch")

from random_models import Model, loss_of, make_optimizer, scenario_of, train_alone  # noqa: E402
from torch import nn  # noqa: E402
from worlds import run_groups  # noqa: E402

from unisono.parallel import DataParallel, Zero  # noqa: E402

STRATEGIES = (0, 1, 2, 3)  # DataParallel, and the stages of Zero
SHORT, LONG = 24, 250  # models
AT_ONCE = 25  # models per group of processes
TOLERANCES = {"float64": 1e-10, "float32": 2e-4}
UNITS = {None: None, "linear": lambda name, module: isinstance(module, nn.Linear), "none": lambda name, module: False}


def train(group, scenario, stage):
    """Return the state of a model that was trained by a strategy."""
    model = Model(scenario)
    model.rank = group.rank
    if stage == 0:
        wrapped = DataParallel(model, group)
        optimizer = make_optimizer(scenario, [each for each in model.parameters() if each.requires_grad])
    else:
        settings = {**scenario.zero_settings, "units": UNITS[scenario.zero_settings["units"]]}
        wrapped = Zero(
            model, group, optimizer=lambda shards: make_optimizer(scenario, shards), stage=stage, **settings
        )
        optimizer = wrapped
    for step in range(scenario.steps):
        optimizer.zero_grad()
        for micro_batch, averages in enumerate(scenario.micro_batches):
            with nullcontext() if averages else wrapped.no_sync():
                loss_of(wrapped, scenario, step, micro_batch, group.rank).backward()
        if scenario.clip is not None and stage == 0:
            torch.nn.utils.clip_grad_norm_(wrapped.parameters(), scenario.clip)
        elif scenario.clip is not None:
            wrapped.clip_grad_norm(scenario.clip)
        optimizer.step()
        if scenario.reloads:
            wrapped.load_state_dict(wrapped.state_dict())
    return wrapped.state_dict()


def runs(group, seeds):
    """Return the number of runs, and a description of each that differs from one process."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # warnings about reentrant checkpoints
    count, wrong = 0, []
    for seed in seeds:
        for stage in STRATEGIES:
            scenario = scenario_of(seed, group.size, stage)
            found, expected = train(group, scenario, stage), train_alone(scenario)
            furthest = max(float((found[name] - value).abs().max()) for name, value in expected.items())
            count += 1
            if not furthest < TOLERANCES[scenario.dtype]:
                wrong.append(f"seed {seed}, strategy {stage}, {group.size} ranks: off by {furthest:.1e}; {scenario}")
    return count, wrong


def campaign(size, models):
    """Train all models with all strategies; return the number of runs."""
    total = 0
    for first in range(0, models, AT_ONCE):
        seeds = range(first, min(first + AT_ONCE, models))
        counts = set()
        for count, wrong in run_groups(runs, size, seeds):
            assert not wrong, f"{len(wrong)} runs are wrong; the first: {wrong[0]}"
            counts.add(count)
        assert counts == {len(seeds) * len(STRATEGIES)}, "a rank has not made all runs"
        total += counts.pop()
    return total


@pytest.mark.campaign
@pytest.mark.parametrize("size", [1, *(pytest.param(size, marks=pytest.mark.long) for size in (2, 3))])
def test_random_models_train_like_one_process(size, record_property):
    """288 runs in all."""
    record_property("training runs", campaign(size, SHORT))


@pytest.mark.long
@pytest.mark.campaign
@pytest.mark.parametrize("size", [1, 2, 3])
def test_many_random_models_train_like_one_process(size, record_property):
    """3,000 runs in all."""
    record_property("training runs", campaign(size, LONG))
