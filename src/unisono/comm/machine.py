"""The rates of this machine: those that ``unisono tune`` has measured, or a default for the speed of its memory.

The speed of memory is measured once, in less than a millisecond, and kept in the cache directory of the user, so
that the choice of algorithms, and with it the order of additions, does not change from job to job. It is rounded to
a power of two, because such a short measurement is not exact.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from math import log2
from pathlib import Path
from typing import Any

import numpy as np

from unisono.bootstrap.job_config import Tuning
from unisono.cache_files import Unbelievable, read_record, user_cache, warn_ignored, write_record
from unisono.comm import messages
from unisono.comm.tables import load_table
from unisono.costs.rates import DEFAULT, Rates, network_of, rates_for, rates_from
from unisono.errors import UsageError

MOST_BYTES = 64 * 1024
MOST_RANKS = 1_000_000
COPIED_BYTES, COPIES = 1 << 20, 7
DEFAULT_COPY_RATE = 17.7e9  # bytes per second, on the machine of the default rates
SLOWEST, FASTEST = 1 / 8, 8  # times that rate


def machine_path() -> Path:
    """Return the path of the record; a user may delete it at any time."""
    return user_cache() / "machine.json"


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1  # macOS and Windows


def load_rates(ranks: int = 1) -> Rates:
    """Return the rates of this machine for a number of ranks."""
    return rates_from(rates_for(load_machine(), ranks))


def load_machine() -> dict[str, Any]:
    """Return the record of this machine: the stored one, or a new one."""
    record = read_machine()
    if record is None:
        record = {"rates": detected_rates().as_data(), "measured": False}
        with suppress(OSError, Unbelievable):
            write_record(machine_path(), record, indent=1)
    return record


def read_machine() -> dict[str, Any] | None:
    """Return the stored record of this machine; None if there is none, or if it is invalid."""
    path = machine_path()
    try:
        record = read_record(path, MOST_BYTES)
        if record is None:
            return None
        rates_from(record["rates"])
        for ranks, rates in record.get("by_ranks", {}).items():
            if not 1 <= int(ranks) <= MOST_RANKS:
                raise ValueError(ranks)
            rates_from(rates)
    except Unbelievable as error:
        warn_ignored(path, str(error), messages.TABLE_HINT())
        return None
    except (AttributeError, KeyError, TypeError, ValueError):
        warn_ignored(path, messages.MACHINE_EXPECTED(), messages.TABLE_HINT())
        return None
    found: dict[str, Any] = record
    return found


def store_machine(by_ranks: Mapping[int, Rates], cores: int) -> None:
    """Store measured rates, by number of ranks, and the network ``this-machine`` of the simulator."""
    path = machine_path()
    alone = by_ranks[max((ranks for ranks in by_ranks if ranks <= cores), default=min(by_ranks))]
    record = {
        "rates": alone.as_data(), "measured": True, "cores": cores,
        "by_ranks": {str(ranks): rates.as_data() for ranks, rates in by_ranks.items()},
    }  # fmt: skip
    try:
        write_record(path, record, indent=1)
        from unisono.networks import this_machine

        this_machine.save(network_of(alone, max(2, cores), cores, source="measured by `unisono tune`"))
    except (OSError, Unbelievable) as error:
        reason = (error.strerror or error) if isinstance(error, OSError) else error
        raise UsageError(messages.TABLE_NOT_STORED(path=path, reason=reason)) from error


def detected_rates() -> Rates:
    """Return the default rates, with bytes that take as long as the memory of this machine suggests."""
    array = np.zeros(COPIED_BYTES // 8)
    copy = np.empty_like(array)
    times_s = []
    for _ in range(COPIES):
        began_s = time.perf_counter()
        np.copyto(copy, array)
        times_s.append(time.perf_counter() - began_s)
    rate = COPIED_BYTES / min(times_s) / DEFAULT_COPY_RATE
    slower = 2.0 ** -round(log2(min(max(rate, SLOWEST), FASTEST)))
    return DEFAULT._replace(
        sent_byte_s=DEFAULT.sent_byte_s * slower,
        received_byte_s=DEFAULT.received_byte_s * slower,
        copied_byte_s=DEFAULT.copied_byte_s * slower,
    )


def load_tuning() -> Tuning:
    """Return the table and the rates of this machine, by which a job chooses its algorithms."""
    machine = load_machine()
    return {"table": load_table(), "rates": machine["rates"], "by_ranks": machine.get("by_ranks", {})}


def with_link_rate(rates: Rates, link_rate: float | None) -> Rates:
    """Return the rates with links between hosts of ``link_rate`` bytes per second; None if it is not known."""
    if link_rate is None or link_rate <= 0:  # not known, or not measured yet
        return rates
    return rates._replace(crossing_byte_s=1 / link_rate, contended_byte_s=1 / link_rate)
