"""Programs: what a training program makes of a machine and a network, as constants that are fitted to measured runs.

A constant of a program is neither a property of the accelerator (``Machine``) nor of the network. Each program has at
most five that are fitted; the others are 0. docs/planner.md names the runs and the command of each fit.
"""

from __future__ import annotations

from dataclasses import dataclass

from unisono.planner import messages
from unisono.planner.choices import choose


@dataclass(frozen=True)
class Program:
    """A training program.

    ``matmul_share``: of the attainable rate of matrix products (``Machine.matmul_flops``), the share that it reaches.
    ``attention_share``: of the rate of the attention kernel (``Machine.attention_flops``), likewise. None: the runs
    of the fit do not tell attention from matrix products, which are assumed to run at one rate.
    ``far_share``: the share of the bandwidth between hosts that its collectives reach.
    ``half_tokens``: the tokens of a micro-batch with which matrix products reach half of their rate.
    ``hidden_cost``: how many seconds a second of hidden communication adds to the computation that hides it.
    ``launch_s``: the time in which the host launches a layer that is split by tensor parallelism, forward and
    backward; a layer never takes less.
    ``peer_s``: what each rank of the tensor-parallel group adds to that, where gathered activations are gathered a
    second time in the backward pass.
    ``stall_s``: the time that a message between stages waits, in a job that does not fit under one leaf switch.
    ``overlaps``: whether stages 1 and 2 of ZeRO reduce during the backward pass and gather during the forward pass.
    ``blocks``: whether a stage waits for each of its messages to other stages.
    """

    name: str
    matmul_share: float
    far_share: float
    attention_share: float | None = None
    half_tokens: float = 0.0
    hidden_cost: float = 0.0
    launch_s: float = 0.0
    peer_s: float = 0.0
    stall_s: float = 0.0
    overlaps: bool = False
    blocks: bool = False


# The fitted values, rounded. ``stall_s`` of nanotron is a property of the cluster it was measured on, hence 0 here.
PROGRAMS = {
    program.name: program
    for program in (
        Program("tuned", 0.83, 0.56, 0.52, 720, 0.36, overlaps=True, blocks=True),
        Program("nanotron", 0.65, 0.46, launch_s=0.004, peer_s=0.0024),
    )
}
DEFAULT = PROGRAMS["tuned"]


def find_program(program: Program | str) -> Program:
    """Return a program by name; raise UsageError if there is none."""
    if isinstance(program, Program):
        return program
    return choose(str(program), PROGRAMS, messages.NO_PROGRAM)
