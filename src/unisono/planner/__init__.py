"""The planner: how to train a model on a cluster, predicted before anything runs.

``plan("llama-8b", gpus=64, network="dgx-h100")`` returns every combination of data, tensor, sequence, pipeline and
expert parallelism, ZeRO stage, micro-batch and recomputation that fits into memory, fastest first.
"""

from __future__ import annotations

from unisono.planner.calls import Call, TransformerShape, calls_of, calls_of_configuration, expert_calls
from unisono.planner.clusters import MACHINES, Cluster, Machine, Wiring, find_cluster, wiring_of
from unisono.planner.configurations import Configuration, admissible
from unisono.planner.memory import Memory, memory_of
from unisono.planner.models import PRESETS, Model, find_model
from unisono.planner.plan import Candidate, Job, Plan, evaluate, job_of, plan, plan_job
from unisono.planner.programs import PROGRAMS, Program, find_program
from unisono.planner.ranking import Change, rivals, what_would_change, why_slower
from unisono.planner.state_memory import KINDS, Kind
from unisono.planner.step import StepTimes, step_times
from unisono.planner.traffic import Traffic

__all__ = [
    "KINDS", "MACHINES", "PRESETS", "PROGRAMS", "Call", "Candidate", "Change", "Cluster", "Configuration",
    "Job", "Kind", "Machine", "Memory", "Model", "Plan", "Program", "StepTimes", "Traffic", "TransformerShape",
    "Wiring", "admissible", "calls_of", "calls_of_configuration", "evaluate", "expert_calls", "find_cluster",
    "find_model", "find_program", "job_of", "memory_of", "plan", "plan_job", "rivals", "step_times",
    "what_would_change", "why_slower", "wiring_of",
]  # fmt: skip
