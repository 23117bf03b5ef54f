"""Tests of the torch backend on a GPU. Without one they are skipped; `make gpu-test` runs them where there is one.

Options, for runs with little time: ``--gpu-mode stream`` (default: kernel, under a private MPS daemon) and
``--gpu-ranks 2,4`` (default: 2, 4 and 8).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from unisono.launch.mps import mps_variables

torch = pytest.importorskip("torch")
from tests.gpu.torch_on_gpu import pool as pools  # noqa: E402
from tests.gpu.torch_on_gpu.pool import RankPool  # noqa: E402

HERE = Path(__file__).parent
SIZES = (2, 4, 8)


def pytest_addoption(parser):
    parser.addoption("--gpu-mode", choices=("kernel", "stream"), default="kernel")
    parser.addoption("--gpu-ranks", default=",".join(map(str, SIZES)))


@pytest.fixture(autouse=True)
def _private_cache():
    """Use the user's cache: ranks outlive a test, and their kernels take minutes to compile."""


@pytest.fixture(scope="session", autouse=True)
def _mode(request):
    """Start an MPS daemon for all ranks, in kernel mode."""
    wanted = torch.cuda.is_available() and request.config.getoption("--gpu-mode", "kernel") == "kernel"
    with mps_variables(wanted=wanted) as variables:
        pools.VARIABLES.update(variables)
        yield
        pools.VARIABLES.clear()


def pytest_collection_modifyitems(config, items):
    ranks = set(map(int, config.getoption("--gpu-ranks", ",".join(map(str, SIZES))).split(",")))
    others = [
        item
        for item in items
        if HERE in item.path.parents and hasattr(item, "callspec") and not _runs_on(item.callspec.params, ranks)
    ]
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if item not in others]
    if not torch.cuda.is_available():
        skip = pytest.mark.skip(reason="needs a GPU that torch can use")
        for item in items:
            if HERE in item.path.parents:
                item.add_marker(skip)


def _runs_on(params, ranks):
    return params.get("size", min(ranks)) in ranks


@pytest.fixture(scope="session")
def _pools(_mode):
    pools: dict[object, RankPool] = {}
    yield pools
    for pool in pools.values():
        pool.close()


@pytest.fixture
def start(_pools):
    """Return a function that returns a pool of ranks with these settings; only one pool is alive at a time."""

    def found(size, backend="unisono", bind=False):
        key = (size, backend, bind)
        pool = _pools.get(key)
        if pool is None or pool.broken:
            for other in list(_pools):
                _pools.pop(other).close()
            pool = _pools[key] = RankPool(size, backend, bind=bind)
        return pool

    return found


@pytest.fixture(params=SIZES, scope="session")
def size(request):
    """The number of ranks; session scope, so that pytest groups the tests by it."""
    return request.param


@pytest.fixture
def ranks(start, size):
    """Ranks of the backend "unisono"."""
    return start(size)
