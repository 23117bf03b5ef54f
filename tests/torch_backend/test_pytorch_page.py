"""The tables and programs of docs/pytorch.md are correct."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
import torch.distributed as dist  # noqa: E402

import measure_groups  # noqa: E402
from torch_ranks import run_ranks  # noqa: E402

HERE = Path(__file__).parent
PAGE = HERE.parent.parent / "docs" / "pytorch.md"


def test_every_row_of_the_table_names_an_existing_test():
    _, table = PAGE.read_text(encoding="utf-8").split("| program | result | test |\n")
    rows = [line for line in table.splitlines() if line.startswith("| ")]
    assert len(rows) > 30
    for row in rows:
        file, name = re.search(r"`(test_\w+\.py)::(test_\w+)` \|$", row).groups()
        assert f"def {name}(" in (HERE / file).read_text(encoding="utf-8"), row


def run_the_program_with_an_algorithm():
    """Return the gradient of the page's model: the mean over all ranks."""
    _, section = PAGE.read_text(encoding="utf-8").split("## Training with your own algorithm\n")
    program, *_ = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    space = {"__name__": "docs"}
    exec(compile(program, "docs/pytorch.md", "exec"), space)
    return dist.get_backend(), space["model"].module.weight.grad.tolist()


@pytest.mark.parametrize("size", [2, 4])
def test_the_program_with_a_user_defined_algorithm_runs(size):
    mean = 4 * sum(range(1, size + 1)) / size
    assert run_ranks(run_the_program_with_an_algorithm, size, init=False) == [("unisono", [[mean] * 8])] * size


def test_the_table_of_groups_matches_the_measurements():
    """If this fails: python tools/measure_groups.py --page."""
    text = PAGE.read_text(encoding="utf-8")
    assert measure_groups.page(text) == text
    assert "| pairs | unisono | " in text.split("<!-- groups -->")[1].split("<!-- end -->")[0]
