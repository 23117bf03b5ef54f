"""Draw the picture of the README: a ring all-reduce on four ranks, played, as an SVG file.

Every number and every colour comes from ``play``.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from unisono import find, play
from unisono.collectives import Words
from unisono.notation import chunk_name
from unisono.player import Frame

IMAGES = Path(__file__).parent.parent / "docs" / "images"
SIZE = 4
CELL, GAP, MARGIN, TOP = 30, 30, 62, 92
CHUNKS = 5  # the room between the names of the chunks and the cells
# From one rank summed in (pale) to all of them (full).
COLOURS = ("#e8eef7", "#b7cdec", "#7fa6dc", "#2f6db5")
INK = ("#1b2733", "#1b2733", "#1b2733", "#ffffff")
FAINT = "#5b6b7b"
FONT = 'font-family="Helvetica, Arial, Noto Sans CJK SC, sans-serif"'

TITLE = Words("Ring all-reduce: four ranks, six steps", "环形 all-reduce：四个 rank，六步")
BEFORE = Words("before", "开始")
PHASES = (
    Words("reduce-scatter: sums grow", "reduce-scatter：逐步求和"),
    Words("all-gather: sums spread", "all-gather：分发结果"),
)
RANK = Words("rank", "rank")
CHUNK = Words("chunk", "块")
LEGEND = Words("ranks summed in:", "已累加的 rank 数：")


def picture(language: str) -> str:
    """Return the picture as SVG."""
    inputs = [np.arange(SIZE) + rank for rank in range(SIZE)]
    frames = list(play(find("ring").schedule(SIZE), inputs, record=True).frames())
    panel = SIZE * CELL + GAP
    width, height = MARGIN + len(frames) * panel, TOP + SIZE * CELL + 52
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{getattr(TITLE, language)}">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        _text(MARGIN, 24, getattr(TITLE, language), size=17, weight="bold"),
    ]
    for rank in range(SIZE):
        parts.append(_text(8, TOP + rank * CELL + 20, f"{getattr(RANK, language)} {rank}", size=13))
    parts.append(_text(8, TOP - CHUNKS, getattr(CHUNK, language), size=12, fill=FAINT))
    for frame in frames:
        parts += _panel(frame, MARGIN + frame.level * panel, language)
    half = SIZE - 1
    for phase, words in enumerate(PHASES):
        left = MARGIN + (1 + phase * half) * panel
        right = left + half * panel - GAP
        parts.append(f'<path d="M{left} 50 H{right}" stroke="{COLOURS[3]}" stroke-width="2"/>')
        parts.append(_text(left, 44, getattr(words, language), size=13))
    at, low = MARGIN, TOP + SIZE * CELL + 18
    parts.append(_text(at, low + 15, getattr(LEGEND, language), size=13))
    at += 118
    for count in range(1, SIZE + 1):
        parts.append(f'<rect x="{at}" y="{low}" width="22" height="22" rx="3" fill="{COLOURS[count - 1]}"/>')
        parts.append(_text(at + 11, low + 16, str(count), size=13, anchor="middle", fill=INK[count - 1]))
        at += 28
    return "\n".join([*parts, "</svg>", ""])


def _panel(frame: Frame, left: int, language: str) -> list[str]:
    if frame.level == 0:
        title = getattr(BEFORE, language)
    elif language == "en":
        title = f"after {frame.level} step{'' if frame.level == 1 else 's'}"
    else:
        title = f"层级 {frame.level} 之后"
    parts = [_text(left, TOP - 22, title, size=13, weight="bold")]
    for chunk in range(SIZE):
        at = left + chunk * CELL + CELL // 2 - 1
        parts.append(_text(at, TOP - CHUNKS, chunk_name(chunk), size=12, anchor="middle", fill=FAINT))
    for rank, row in enumerate(frame.rows):
        for chunk, cell in enumerate(row):
            assert cell is not None  # in an all-reduce every slot holds something
            count = cell.ranks.bit_count()
            x, y = left + chunk * CELL, TOP + rank * CELL
            parts.append(
                f'<rect x="{x}" y="{y}" width="{CELL - 2}" height="{CELL - 2}" rx="4" fill="{COLOURS[count - 1]}"/>'
            )
            parts.append(
                _text(x + CELL // 2 - 1, y + 19, str(cell.values[0]), size=13, anchor="middle", fill=INK[count - 1])
            )
    return parts


def _text(
    x: int, y: int, text: str, *, size: int, weight: str = "normal", anchor: str = "start", fill: str = "#1b2733"
) -> str:
    return (
        f'<text x="{x}" y="{y}" {FONT} font-size="{size}" font-weight="{weight}" text-anchor="{anchor}" '
        f'fill="{fill}">{text}</text>'
    )


def main() -> None:
    """Write the picture in both languages."""
    IMAGES.mkdir(exist_ok=True)
    for language in ("en", "zh"):
        (IMAGES / f"ring-{language}.svg").write_text(picture(language), encoding="utf-8")


if __name__ == "__main__":
    main()
