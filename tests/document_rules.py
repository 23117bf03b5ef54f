"""The rules for each block of the documents: it runs, another test runs it, or it does not run.

A Python program runs, and so does a command ``unisono ...``, unless a rule names the test that runs it, or gives the
reason why none does. The first rule that matches counts.
"""

from __future__ import annotations

import re
from fnmatch import fnmatch
from typing import NamedTuple


class Elsewhere(NamedTuple):
    """Another test runs it, possibly with smaller numbers."""

    test: str  # FILE::NAME


class NotRun(NamedTuple):
    """No test runs it; for ``unisono``, the arguments are still read."""

    reason: str


class Long(NamedTuple):
    """It takes too long for ``make test``; ``make stress`` runs it."""


class Script(NamedTuple):
    """A Python program runs after ``before``, which defines the names that the page takes for granted."""

    before: str = ""
    ranks: int = 1
    torch: bool = False
    separately: bool = False  # the programs of a page do not continue each other
    in_function: bool = False  # it is the body of a program of a rank


class Rule(NamedTuple):
    """What is done with the blocks or commands of some pages that begin with a pattern."""

    pages: str
    pattern: str
    what: Elsewhere | NotRun | Long | Script


DRAWN_BY_A_FIXTURE = NotRun("the tests in tests/drawing write the gallery with the course, and read every page")
SEVERAL_HOSTS = NotRun("needs several hosts: the tests in tests/hosts and tests/torch_backend start such jobs")

COMMANDS = [
    Rule("docs/cli.md", "", Elsewhere("tests/test_docs.py::test_the_reference_of_the_command_line_is_up_to_date")),
    Rule("docs/gpu_runbook.md", "", NotRun("needs a borrowed GPU")),
    Rule("*", r".*(--mps|--device cuda|nvidia-cuda-mps)", NotRun("needs a GPU")),
    Rule(
        "README*.md",
        "unisono run --hosts",
        Elsewhere("tests/hosts/test_tool.py::test_the_commands_of_the_readme_for_two_machines_work"),
    ),
    Rule("*", r"(ssh|scp|srun|mpirun) |.*(--hosts|--nnodes) ", SEVERAL_HOSTS),
    Rule("*", r"(sudo )?make ", NotRun("takes minutes, or changes the environment")),
    Rule("*", r"(python\S* -m )?(pip|venv) |git ", NotRun("changes the environment or the repository")),
    Rule("*", r"openssl |python -c .*> token", NotRun("writes secrets")),
    Rule(
        "*",
        r"(sudo )?(\.venv/bin/)?python tools/",
        NotRun("takes minutes, or needs data that the repository does not have"),
    ),
    Rule("CONTRIBUTING.md", "pytest ", NotRun("needs root, and takes minutes")),
    Rule(
        "README*.md",
        "unisono run -n 4 calls.py",
        Elsewhere("tests/test_readme.py::test_the_communicator_example_of_the_page_prints_what_the_page_shows"),
    ),
    Rule(
        "README*.md",
        "unisono (draw|verify|run|bench) ",
        Elsewhere("tests/test_readme.py::test_a_command_of_the_first_screen_works"),
    ),
    Rule(
        "docs/tour*.md",
        "unisono (show|list|explain|verify|simulate) |unisono run .*sum_of_all",
        Elsewhere("tests/test_tour.py::test_a_command_prints_what_the_page_shows"),
    ),
    Rule(
        "docs/tour*.md",
        "unisono (draw|run|bench|plan) ",
        Elsewhere("tests/test_tour.py::test_a_command_without_output_succeeds"),
    ),
    Rule(
        "docs/planner.md",
        "unisono plan ",
        Elsewhere("tests/planner/test_planner_page.py::test_a_command_prints_what_the_page_shows"),
    ),
    Rule(
        "docs/benchmark.md",
        "unisono bench .*my_algo.py:my_ring",
        Elsewhere("tests/test_readme.py::test_a_command_of_the_first_screen_works"),
    ),
    Rule("docs/benchmark.md", "unisono bench .*--against .*mpi", NotRun("needs `make peers`")),
    Rule("docs/*.md", "unisono draw (--course|--all)", DRAWN_BY_A_FIXTURE),
    Rule(
        "docs/drawing.md",
        r"unisono draw .*\.(svg|gif)",
        Elsewhere("tests/drawing/test_browser_pictures.py::test_python_and_the_command_line_make_pictures"),
    ),
    Rule(
        "docs/elastic.md",
        "unisono (run --elastic|resize) ",
        Elsewhere("tests/launch/test_elastic.py::test_a_running_job_changes_its_size"),
    ),
    Rule(
        "docs/drawing.md",
        "unisono draw run --calls",
        Elsewhere("tests/drawing/test_runs.py::test_other_calls_can_be_selected"),
    ),
    Rule(
        "docs/*.md",
        "unisono run -n 4 --trace run train.py",
        Elsewhere("tests/tracing/test_tracing_page.py::test_the_example_is_recorded_and_its_slow_rank_is_named"),
    ),
    Rule("docs/simulator.md", "unisono simulate .* -n 4096", Long()),
    Rule(
        "docs/parallel/README.md",
        "(unisono run|torchrun) .*train.py",
        Elsewhere(
            "tests/parallel/test_train_example.py::test_under_torchrun_a_codec_with_error_feedback_reaches_the_loss_of_gloo"
        ),
    ),
    Rule(
        "docs/pytorch.md",
        "torchrun .*examples",
        Elsewhere(
            "tests/torch_backend/test_examples_of_training.py::test_under_torchrun_an_example_prints_the_same_losses_as_on_gloo"
        ),
    ),
]

COMMUNICATOR = """
import numpy as np
import unisono
import unisono.codecs, unisono.tracing
from unisono.codecs import AutoCodec, Codec, ErrorFeedback

comm = unisono.connect()
rank, size = comm.rank, comm.size
gradient = gradients = np.ones(4096, np.float32)
x = np.ones(4, np.float32)
largest = 1.0

def compute():
    pass
"""
AUTHOR = """
from unisono import algorithm, combine, copy, mapped, one, one_per_rank, recv, recv_reduce, send
from unisono.algorithms.ring import ring_all_gather as ring
from unisono.collectives import all_gather, all_reduce
"""
FAILING = """
import sys

def train(comm):
    raise unisono.CommError("rank 1 is lost")

def save_checkpoint():
    pass
"""
TORCH = """
import torch
import torch.distributed as dist
import unisono
from torch.nn.parallel import DistributedDataParallel
from unisono.torch_backend import codec_hook
"""
GROUP = """
dist.init_process_group("unisono")
model = DistributedDataParallel(torch.nn.Linear(4, 4))
"""
ON_PYTORCH = """
model = model.module
"""

PYTHON = [
    Rule(
        "README*.md",
        "from unisono import algorithm",
        Elsewhere("tests/test_docs.py::test_the_algorithm_on_the_first_screen_is_proved"),
    ),
    Rule(
        "README*.md",
        "import numpy as np, unisono",
        Elsewhere("tests/test_readme.py::test_the_communicator_example_of_the_page_prints_what_the_page_shows"),
    ),
    Rule("docs/tour*.md", "", Elsewhere("tests/test_tour.py::test_the_python_of_the_tour_runs_in_order")),
    Rule(
        "docs/parallel/*.md",
        "",
        Elsewhere("tests/parallel/test_parallel_pages.py::test_the_programs_of_the_page_run"),
    ),
    Rule(
        "docs/tracing.md",
        "# train.py",
        Elsewhere("tests/tracing/test_tracing_page.py::test_the_example_is_recorded_and_its_slow_rank_is_named"),
    ),
    Rule(
        "docs/pytorch.md",
        r"(?s).*Options\(algorithms=",
        Elsewhere("tests/torch_backend/test_pytorch_page.py::test_the_program_with_a_user_defined_algorithm_runs"),
    ),
    Rule("docs/pytorch.md", r"(?s).*(torch\.device\(\"cuda\"|cuda:nccl)", NotRun("needs a GPU")),
    Rule("docs/pytorch.md", r"(?s).*init_process_group", Script(TORCH, ranks=2, torch=True, separately=True)),
    Rule("docs/pytorch.md", "", Script(TORCH + GROUP + ON_PYTORCH, ranks=2, torch=True, separately=True)),
    Rule("docs/api/torch_backend.md", "", Script(TORCH + GROUP, ranks=2, torch=True, separately=True)),
    Rule("docs/api/unisono.md", "yield", Script(COMMUNICATOR + AUTHOR, in_function=True)),
    Rule("docs/api/*.md", "", Script(COMMUNICATOR + AUTHOR, ranks=2, separately=True)),
    Rule(
        "docs/drawing.md",
        "unisono.draw",
        Elsewhere("tests/drawing/test_browser_pictures.py::test_python_and_the_command_line_make_pictures"),
    ),
    Rule("docs/errors.md", "", Script(COMMUNICATOR + FAILING)),
    Rule("docs/elastic.md", "comm = unisono.connect", Script(COMMUNICATOR + "step, steps = 0, 2\n")),
    Rule("docs/codecs.md", "", Script(COMMUNICATOR, ranks=2)),
    Rule("docs/engine.md", "", Script(COMMUNICATOR, ranks=2)),
    Rule("docs/tracing.md", "", Script(COMMUNICATOR, ranks=2)),
]


def rule_of(rules: list[Rule], page: str, text: str) -> Rule | None:
    """Return the first rule for a text of a page."""
    return next((each for each in rules if fnmatch(page, each.pages) and re.match(each.pattern, text)), None)
