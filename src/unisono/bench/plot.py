"""Plots a measurement: time and bus bandwidth over bytes, on logarithmic axes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from unisono.bench import messages
from unisono.bench.cases import format_bytes
from unisono.bench.measure import Measurement
from unisono.bench.report import figures, time_word
from unisono.errors import UsageError
from unisono.message import listed

KINDS = (".png", ".svg", ".pdf")


def check_plot(path: Path) -> None:
    """Raise UsageError if no plot can be written to this path, before minutes are spent on measuring."""
    if path.suffix not in KINDS:
        raise UsageError(messages.PLOT_KIND(path=path, kinds=listed(KINDS)))
    if not path.absolute().parent.is_dir():
        raise UsageError(messages.NO_FOLDER(path=path, folder=path.parent))
    _pyplot()


def draw(measurement: Measurement, name: str, path: Path) -> None:
    """Plot the measurement into a file and highlight the named contender."""
    pyplot = _pyplot()
    figure, (times, widths) = pyplot.subplots(1, 2, figsize=(13, 5.5), layout="constrained")
    for contender in measurement.contenders:
        timed = [result for result in measurement.results if result.fastest([contender.name]) is not None]
        if not timed:
            continue
        found = [figures(measurement, result, contender.name) for result in timed]
        sizes = [result.case.bytes for result in timed]
        style = _style(contender.name, name, contender.communicates)
        times.plot(sizes, [each.time_us for each in found], label=contender.name, **style)
        widths.plot(sizes, [each.busbw for each in found], label=contender.name, **style)
    case = measurement.results[0].case
    figure.suptitle(f"{case.collective} {case.dtype}, {measurement.size} ranks")
    smallest, largest = (choose(result.case.bytes for result in measurement.results) for choose in (min, max))
    for axes, what in ((times, f"time of a call, µs ({time_word(measurement.effort)})"), (widths, "busbw, GB/s")):
        axes.set(xscale="log", yscale="log", xlabel="bytes", ylabel=what)
        ticks = [smallest * 4**step for step in range(64) if smallest * 4**step <= largest]
        axes.set_xticks(ticks, [format_bytes(tick) for tick in ticks], rotation=45, ha="right")
        axes.minorticks_off()
        axes.grid(alpha=0.3)
    times.legend(fontsize="small", ncols=2)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def _style(contender: str, name: str, communicates: bool) -> dict[str, Any]:
    if contender == name:
        return {"linewidth": 2.5, "color": "black", "marker": "o", "markersize": 4, "zorder": 3}
    return {"linewidth": 1.2, "linestyle": "-" if communicates else ":", "marker": ".", "markersize": 4}


def _pyplot() -> Any:
    try:
        import matplotlib
    except ImportError as error:
        raise UsageError(messages.NO_MATPLOTLIB()) from error
    matplotlib.use("Agg")  # no window
    from matplotlib import pyplot

    return pyplot
