"""The page of a plan: where memory and time go, as stacked bars for the ten best combinations.

The page is one HTML file without references to others, in English and Chinese. It is complete without JavaScript; a
script of a few lines switches the language and follows the theme of the system.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from pathlib import Path

from unisono.drawing.messages import NOT_WRITABLE
from unisono.drawing.page import asset
from unisono.errors import UsageError
from unisono.message import CHINESE, ENGLISH, LANGUAGES, Template, translated
from unisono.planner import messages
from unisono.planner.plan import Candidate, Plan
from unisono.planner.quantities import gigabytes, seconds
from unisono.planner.ranking import Change, rivals, why_slower
from unisono.planner.texts import headings

SHOWN = 10
FOLDER = Path(__file__).parent
COLOURS = {
    "parameters": "blue", "gradients": "orange", "optimizer": "purple", "activations": "green", "buffers": "brown",
    "compute": "blue", "recompute": "purple", "launch": "brown", "tensor": "orange", "expert": "pink",
    "pipeline": "green", "bubble": "gap", "data": "red", "update": "grey",
}  # fmt: skip


def page_of(plan: Plan, changes: Sequence[Change], language: str = ENGLISH) -> str:
    """Return the page, shown first in ``language``."""
    shown = plan.candidates[:SHOWN]
    usable = plan.job.cluster.usable
    longest, largest = max(each.times.total for each in shown), max(usable, *(each.memory.total for each in shown))
    first, *rest = headings(plan, len(shown))
    reasons = [why_slower(plan.best, each) for each in rivals(plan)]
    remarks = "".join(f"<li>{_both(line)}</li>" for line in [*reasons, *(each.text for each in changes)])
    limit = f'<i class="limit" style="left:calc({100 * usable / largest:.2f}% - 2px)"></i>'
    memory = [_bar(each, _memory(each), largest, gigabytes(each.memory.total), limit) for each in shown]
    time = [_bar(each, each.times.parts(), longest, _rate(each)) for each in shown]
    parts = {
        "language": "zh-CN" if language == CHINESE else "en",
        "title": html.escape(str(first)),
        "style": "\n".join([asset("common/colours.css"), asset("common/frame.css"), _read("plan.css")]),
        "heading": _both(messages.PAGE_TITLE(model=plan.job.model.name, gpus=plan.job.cluster.gpus)),
        "story": _both(first),
        "counts": "".join(_both(line) for line in rest),
        "time_title": _both(messages.PAGE_TIME()),
        "time_legend": _legend([each.times.parts() for each in shown], messages.PARTS),
        "time": "".join(time),
        "memory_title": _both(messages.PAGE_MEMORY(usable=gigabytes(usable))),
        "memory_legend": _legend([_memory(each) for each in shown], messages.MEMORY_PARTS),
        "memory": "".join(memory),
        "remarks_title": _both(messages.PAGE_REMARKS()),
        "remarks": remarks,
        "script": _read("plan.js"),
    }
    text = _read("plan.html")
    for name, value in parts.items():
        text = text.replace("{{" + name + "}}", value)
    return text


def save_page(path: str | Path, plan: Plan, changes: Sequence[Change], language: str = ENGLISH) -> Path:
    """Write the page to the file ``path``; raise UsageError if it cannot be written."""
    target = Path(path)
    try:
        target.write_text(page_of(plan, changes, language), encoding="utf-8")
    except OSError as error:
        raise UsageError(NOT_WRITABLE(path=str(path), reason=error.strerror)) from error
    return target


def _read(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def _both(message: str) -> str:
    """Return a sentence in both languages, of which the page shows one."""
    tags = {ENGLISH: "en", CHINESE: "zh-CN"}
    return "".join(f'<span lang="{tags[each]}">{html.escape(translated(message, each))}</span>' for each in LANGUAGES)


def _title(word: str) -> str:
    """Return a word in both languages; an attribute cannot switch them."""
    return " · ".join(html.escape(translated(word, each)) for each in LANGUAGES)


def _memory(candidate: Candidate) -> dict[str, float]:
    memory = candidate.memory
    return {part: getattr(memory, part) for part in messages.MEMORY_PARTS}


def _rate(candidate: Candidate) -> str:
    return f"{candidate.tokens_s_gpu:,.0f} tokens/s/GPU · MFU {candidate.mfu:.1%}"


def _legend(bars: Sequence[Mapping[str, float]], words: Mapping[str, Template]) -> str:
    """Return the colours of the parts that a bar shows."""
    used = [part for part in words if any(_share(bar, part) > 0.001 for bar in bars)]
    return "".join(f'<span class="key"><i class="{COLOURS[part]}"></i>{_both(words[part]())}</span>' for part in used)


def _share(bar: Mapping[str, float], part: str) -> float:
    return bar[part] / sum(bar.values())


def _bar(candidate: Candidate, parts: Mapping[str, float], whole: float, label: str, mark: str = "") -> str:
    """Return a row: the configuration, its bar, and the sum."""
    is_time = "compute" in parts
    words = messages.PARTS if is_time else messages.MEMORY_PARTS
    pieces = [
        f'<i class="{COLOURS[part]}" style="width:{100 * value / whole:.3f}%" '
        f'title="{_title(words[part]())}: {seconds(value) if is_time else gigabytes(value)}"></i>'
        for part, value in parts.items()
        if value > 0
    ]
    name = html.escape(str(candidate.configuration))
    return (
        f'<tr><th>{name}</th><td><div class="bar">{"".join(pieces)}{mark}</div></td><td class="sum">{label}</td></tr>'
    )
