"""Tests of the torch backend on a GPU. Without one they are skipped; `make gpu-test` runs them where there is one."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
from tests.gpu.torch_on_gpu.pool import RankPool  # noqa: E402

HERE = Path(__file__).parent
SIZES = (2, 4, 8)


def pytest_collection_modifyitems(items):
    if not torch.cuda.is_available():
        skip = pytest.mark.skip(reason="needs a GPU that torch can use")
        for item in items:
            if HERE in item.path.parents:
                item.add_marker(skip)


@pytest.fixture(scope="session")
def _pools():
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
