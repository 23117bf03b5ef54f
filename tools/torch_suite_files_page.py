"""Write the results of PyTorch's ``test/distributed`` into docs/torch_suite.md, and explain the differences.

A test that passes on Gloo must pass on Unisono, unless it needs something that only Gloo has.
"""

from __future__ import annotations

import collections
import fnmatch
import json
from collections.abc import Mapping
from pathlib import Path

Tests = Mapping[str, Mapping]

ROOT = Path(__file__).parent.parent
FOUND = ROOT / "docs" / "measurements" / "torch_suite" / "files-{backend}.json"

# Names of tests that need not pass on Unisono, and the reasons.
REASONS = {
    "*.test_allreduce_basics": "compares a float16 sum with one that was rounded once; 1 to 3 of its 200 numbers "
    "nearly cancel, and differ if each addition rounds. Of the 24 orders in which four ranks can add one after "
    "another, 2 come close enough, of the 8 orders of a ring 2, and of the 3 orders by pairs none",
    "*.test_allgather_checks": "expects that outputs of different lengths are refused; torch's documentation of "
    "`all_gather` allows them, and Unisono accepts them",
    "*.test_allreduce_op_timeout": "expects a timeout after 1 ms; the other ranks exit immediately, and Unisono "
    "reports that instead (`PeerLost`)",
    "*.test_alltoall_checks": "expects that parts of different lengths are refused; torch's own `test_all_to_all` "
    "(above) expects that they are exchanged",
    "*.test_gloo_set_pg_timeout_api": "`_set_pg_timeout` looks for the class of Gloo's or NCCL's backend; "
    "`group.set_timeout()` works",
    "*.test_gloo_backend_cpu_module*": "creates a Gloo device (`create_device`)",
    "*.test_broadcast_coalesced_gloo_cpu": "creates a Gloo device (`create_device`)",
    "*GlooFRTest.test_long": "torch's flight recorder takes no entries from Python; ours is `flight_record()`",
    "*GlooFRTest.test_short_*": "torch's flight recorder takes no entries from Python; ours is `flight_record()`",
    "*DispatchedCollectivesTests.test_all_to_all_single": "expects that non-contiguous tensors are refused (ours "
    "handles them)",
    "*.test_device_to_backend_mapping_cpu": "expects that the default backend for the CPU is Gloo",
    "*.test_parse_backend_string": "expects that the default backend for the CPU is Gloo",
    "*.test_monitored_barrier": "`torch.distributed.monitored_barrier` refuses every backend but Gloo by its name",
}
# Known faults, by the names of tests; a test is removed from this list when it passes.
FAULTS: dict[str, str] = {}
WORDED = "passes if the texts of errors are not compared: their classes are the expected ones"
AS_EXPECTED = ("passed", "worded")


def load() -> tuple[dict, dict]:
    """Return the results on Unisono and on Gloo."""
    ours, gloo = (json.loads(Path(str(FOUND).format(backend=name)).read_text()) for name in ("unisono", "gloo"))
    return ours, gloo


def reason_of(name: str) -> str | None:
    """Return the reason why a test need not pass on Unisono, or None."""
    return next((why for pattern, why in {**REASONS, **FAULTS}.items() if fnmatch.fnmatch(name, pattern)), None)


def unexplained(ours: Tests, gloo: Tests) -> list[str]:
    """Return the tests that pass on Gloo and, without a known reason, not on Unisono."""
    passed = [name for name, test in gloo.items() if test["outcome"] == "passed"]
    bad = [name for name in passed if ours.get(name, {}).get("outcome") not in AS_EXPECTED]
    return [name for name in bad if reason_of(name) is None]


def fixed(ours: Tests) -> list[str]:
    """Return the tests on the list of known faults that pass."""
    return [
        name for name, test in ours.items()
        if test["outcome"] == "passed" and any(fnmatch.fnmatch(name, pattern) for pattern in FAULTS)
    ]  # fmt: skip


def parts() -> dict[str, str]:
    """Return the generated parts of the page."""
    ours, gloo = (found["tests"] for found in load())
    rows = collections.defaultdict(lambda: [0, 0, 0, 0])
    for name, test in gloo.items():
        row, passed = rows[name.partition("::")[0]], test["outcome"] == "passed"
        row[0] += 1
        row[1] += passed
        row[2] += passed and test["used"]
        row[3] += passed and ours.get(name, {}).get("outcome") == "passed"
    total = [sum(column) for column in zip(*rows.values(), strict=True)]
    lines = ["| file | tests | pass on Gloo | pass on Gloo and create a group | pass on Gloo and on Unisono |"]
    lines += ["|---|--:|--:|--:|--:|"]
    lines += [f"| {name} | {' | '.join(map(str, row))} |" for name, row in rows.items()]
    lines += [f"| all | {' | '.join(map(str, total))} |"]
    different = collections.defaultdict(list)
    for name, test in gloo.items():
        if test["outcome"] == "passed" and ours.get(name, {}).get("outcome") != "passed":
            worded = ours.get(name, {}).get("outcome") == "worded"
            why = WORDED if worded else reason_of(name) or "NOT EXPLAINED: a defect of Unisono"
            different[why].append(name.rpartition("::")[2])
    lists = [f"- {reason}: {', '.join(f'`{name}`' for name in names)}." for reason, names in different.items()]
    return {"files": "\n".join(lines), "files_differences": "\n".join(lists) or "None."}
