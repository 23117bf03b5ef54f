"""The table of ``unisono bench``, printed row by row while it is measured, and the comparison of all contenders."""

from __future__ import annotations

import os
from collections.abc import Sequence

from rich.markup import escape

from unisono.bench import cases, report
from unisono.bench.cases import Case
from unisono.bench.contender import Contender
from unisono.bench.measure import Measurement, Result
from unisono.cli import messages
from unisono.cli.output import GrowingTable, console, print_table, ranks, table
from unisono.comm.topology import hosts_of, topology_of
from unisono.message import Message

NUMBER = 8  # columns of a time or a bandwidth
BOUND_BYTES = 4096  # the time of shorter vectors is that of their messages, not of their bytes


class BenchRows:
    """Prints the line of each case as soon as it is measured; ``ours`` is the contender that has the columns."""

    def __init__(
        self, title: str, size: int, chosen: Sequence[Case], contenders: Sequence[Contender], ours: str, *,
        hosts: tuple[int, ...] = (), rate: float | None = None, rate_is_measured: bool = False,
    ) -> None:  # fmt: skip
        self.out = console()  # made before a progress bar, which replaces the standard output
        self.ours = ours
        self.compared = len(contenders) > 1
        self.out.print(f"[bold]{title}[/], {_located(size, hosts, rate, rate_is_measured, chosen[0].device)}")
        words = [report.case_words(case) for case in chosen]
        widths = [max(map(len, column)) for column in zip(*words, strict=True)]
        columns = list(zip([">bytes", ">count", "type", "op"], widths, strict=True))
        columns += [(">time\nµs", NUMBER), (">algbw\nGB/s", NUMBER), (">busbw\nGB/s", NUMBER), (">wrong", 0)]
        self.has_latency = chosen[0].device != "cpu"
        if self.has_latency:
            columns += [(">latency\nµs", NUMBER)]
        if rate is not None:
            columns += [(">bound\nµs", NUMBER), (">of the\nbound", 0)]
        if self.compared:
            longest = max(len(contender.name) for contender in contenders)
            columns += [("contender", longest), ("best rival", longest), (">rival\nµs", NUMBER), (">ratio", 0)]
        self.rows = GrowingTable(self.out, columns)

    def add(self, done: Measurement, result: Result) -> None:
        """Print the line of a case."""
        name = report.chosen(done, result, self.ours)
        if name is None:
            return
        figures = report.figures(done, result, name)
        cells = [
            *report.case_words(result.case), significant(figures.time_us), significant(figures.algbw),
            significant(figures.busbw), f"[red]{figures.wrong}[/]" if figures.wrong else "0",
        ]  # fmt: skip
        if self.has_latency:
            cells.append("" if figures.latency_us is None else significant(figures.latency_us))
        bound_us = report.bound_us(done, result.case)
        if bound_us:
            is_long = result.case.bytes >= BOUND_BYTES
            cells += [significant(bound_us), f"{figures.time_us / bound_us:.2f}" if is_long else ""]
        if self.compared:
            cells.append(escape(name))
            rival = result.fastest(report.rivals(done, name))
            if rival is not None:
                others = report.figures(done, result, rival)
                cells += [escape(rival), significant(others.time_us), f"{others.time_us / figures.time_us:.2f}×"]
        self.rows.print_row(*cells)

    def finish(self, done: Measurement) -> None:
        """Print the times of all contenders, if there are several, and what they do not support."""
        if self.compared:
            self.out.print(
                "[dim]ratio: time of the best rival divided by that of the contender; above 1 it is faster.[/]"
            )
            self._print_all(done)
        reasons = {
            f"{name}: {times.unsupported}"
            for result in done.results
            for name, times in result.times.items()
            if times.unsupported
        }
        for reason in sorted(reasons):
            self.out.print(f"[yellow]note[/] {escape(reason)}", soft_wrap=True)

    def _print_all(self, done: Measurement) -> None:
        self.out.print()
        sizes = [f">{cases.format_bytes(result.case.bytes)}" for result in done.results]
        rows = table(f"{report.time_word(done.effort)} µs", *sizes)
        for contender in done.contenders:
            cells = []
            for result in done.results:
                measured = result.fastest([contender.name]) is not None
                best = measured and result.fastest([each.name for each in done.contenders if each.communicates])
                cell = significant(result.times[contender.name].time_s * 1e6) if measured else "-"
                cells.append(f"[green]{cell}[/]" if best == contender.name else cell)
            rows.add_row(escape(contender.name), *cells)
        print_table(self.out, rows)


def _located(
    size: int, hosts: tuple[int, ...], rate: float | None, rate_is_measured: bool, device: str
) -> str | Message:
    if device != "cpu":
        return messages.BENCH_ON_GPUS(ranks=ranks(size), device=device)
    if not hosts:
        return f"{ranks(size)} on {len(os.sched_getaffinity(0))} cores"
    topology = topology_of(size, hosts_of(hosts))
    if rate is None:
        return messages.BENCH_ON_HOSTS(ranks=ranks(size), topology=topology)
    title = messages.BENCH_WITH_MEASURED_RATE if rate_is_measured else messages.BENCH_WITH_RATE
    return title(ranks=ranks(size), topology=topology, rate=f"{rate * 8e-9:.3g}")


def significant(value: float) -> str:
    """Write three digits, or all digits before the point."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
