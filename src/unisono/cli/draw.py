"""``unisono draw``: an algorithm as a page that one can watch, in a single file; several names are compared.

The folder of a recorded run is drawn, too: `unisono run --trace run ...`, then `unisono draw run`.
"""

from __future__ import annotations

import argparse
import webbrowser
from pathlib import Path
from typing import Any

from rich.markup import escape

from unisono.algorithms import Algorithm
from unisono.cli import arguments, names
from unisono.cli.names import WrittenSchedule, resolve
from unisono.cli.output import console, progress_bar
from unisono.drawing.drawing import Drawing, draw_preset, draw_scenes
from unisono.drawing.gallery import write_gallery
from unisono.drawing.lessons import LESSONS
from unisono.drawing.page import Settings
from unisono.drawing.presets import PRESETS
from unisono.drawing.runs import is_trace, write_run_page
from unisono.drawing.scene import Scene, scene_of
from unisono.errors import UsageError

SIZE, SIZE_OF_SEVERAL = 4, 8  # ranks, unless -n says otherwise
DESCRIPTION = (
    "%(english)s\n\n"
    "把算法画成一个可以逐步观看的网页（单个文件，不需要服务器和网络）；给出多个名字则并排比较。"
    "你自己的程序也可以：unisono draw my_algo.py -n 5。"
    "记录下来的真实运行也可以：先 unisono run --trace run ...，再 unisono draw run。"
)


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb."""
    parser = verbs.add_parser(
        "draw", help="an algorithm as a page that one can watch (画成可以观看的网页)",
        description=DESCRIPTION % {"english": arguments.described(__doc__)},
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument(
        "names", nargs="*", metavar="name", help="as in `unisono show`, or a trace; several are compared (多个则比较)"
    )
    parser.add_argument(
        "-n", dest="size", type=arguments.size,
        help=f"number of ranks (进程数; default {SIZE}, {SIZE_OF_SEVERAL} for several)",
    )  # fmt: skip
    parser.add_argument("-o", dest="output", metavar="FILE", help="where to write the page (输出文件)")
    parser.add_argument("--no-open", action="store_true", help="do not open a browser (不打开浏览器)")
    parser.add_argument("--numbers", action="store_true", help="open it with numbers in the chunks (显示数值)")
    parser.add_argument(
        "--preset", choices=[*PRESETS, *LESSONS], help="a page to begin with, instead of names (预设页面)"
    )  # fmt: skip
    parser.add_argument(
        "--all",
        action="store_true",
        help="every algorithm, into the folder that -o names (全部算法，写入 -o 指定的文件夹)",
    )
    parser.add_argument("--node", type=int, metavar="K", help="short for --option node=K (每个节点的进程数)")
    arguments.add_options(parser, chinese=True)
    parser.add_argument(
        "--lang", choices=("en", "zh"), help="language of the page (默认跟随浏览器; default: the browser's)"
    )
    parser.add_argument(
        "--calls",
        type=_calls,
        metavar="A-B",
        help="of a run: only these calls (只画这些调用), such as 100-200, or 100-",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write the page and open it."""
    if args.all:
        return _gallery(args)
    if args.no_open and not args.output:
        raise UsageError("--no-open without -o: nobody would ever see the page; say where to write it, -o page.html")
    if any(map(is_trace, args.names)):
        return _run(args)
    if args.calls:
        raise UsageError("--calls is for recorded runs: unisono draw run/ --calls 100-200")
    drawing, scenes = _drawing(args)
    _write(drawing, args)
    wrong = [scene["failure"] for scene in scenes if scene["failure"]]
    for failure in wrong:
        console(stderr=True).print(f"[red]{failure['error']}[/] {escape(failure['message'])}", soft_wrap=True)
    return 1 if wrong else 0


def _write(drawing: Drawing, args: argparse.Namespace) -> None:
    """Write a page to where it belongs, and say where that is."""
    if args.output:
        path = drawing.save(args.output)
        _open(path, args)
    else:
        path = drawing.show()
    size = f"{len(drawing.html.encode()) / 1000:.0f} KB"
    console().print(f"{escape(drawing.title)}: {escape(str(path))} ({size})", soft_wrap=True)


def _run(args: argparse.Namespace) -> int:
    """Draw a recorded run."""
    if len(args.names) > 1 or args.size or args.root is not None or args.option or args.node or args.preset:
        raise UsageError(
            f"{' '.join(args.names)}: a recorded run is drawn by itself, as it was; leave out other names, -n, "
            "--root, --option, --node and --preset"
        )
    with progress_bar() as progress:
        progress.add_task(f"reading {escape(args.names[0])}", total=None)
        page = write_run_page(args.names[0], Settings(numbers=args.numbers, language=args.lang), args.calls)
    _write(Drawing(page.title, page.html), args)
    for words in page.verdict:
        console().print(escape(words.zh if args.lang == "zh" else words.en), soft_wrap=True)
    for words in page.notes:
        note = words.zh if args.lang == "zh" else words.en
        console(stderr=True).print(f"[yellow]{escape(note)}[/]", soft_wrap=True)
    return 0


def _calls(text: str) -> tuple[int, int | None]:
    """Read which calls to draw: 100-200, or 100- for all that follow, or a single one."""
    first, dash, last = text.partition("-")
    numbers = len(text) < 20 and first.isdecimal() and (last.isdecimal() or not last)
    if not numbers or (last and int(last) < int(first)):
        raise argparse.ArgumentTypeError(f"{text!r} names no calls; expected e.g. 100-200, 100- or 100")
    return int(first), int(last) if last else None if dash else int(first)


def _open(path: Path, args: argparse.Namespace) -> None:
    if not args.no_open:
        webbrowser.open(path.resolve().as_uri())


def _gallery(args: argparse.Namespace) -> int:
    """Write a page for everything."""
    if args.names or args.preset or not args.output:
        raise UsageError("--all draws everything into a folder; expected nothing but -o FOLDER, and perhaps -n")
    with progress_bar() as progress:
        bar = progress.add_task("drawing", total=None)
        index = write_gallery(
            args.output,
            args.size or SIZE_OF_SEVERAL,
            args.lang,
            written=lambda path: progress.update(bar, advance=1, description=escape(path.name)),
        )
    _open(index, args)
    pages = len(list(index.parent.glob("*.html")))
    console().print(f"{pages} pages: {escape(str(index))}", soft_wrap=True)
    return 0


def _drawing(args: argparse.Namespace) -> tuple[Drawing, list[Scene]]:
    """Draw algorithms, or a page to begin with."""
    if args.preset:
        if args.names or args.size or args.root is not None or args.option or args.node:
            raise UsageError(f"--preset {args.preset} says what to draw; leave out names, -n, --root and options")
        return draw_preset(args.preset, numbers=args.numbers, language=args.lang), []
    scenes = _scenes(args)
    return draw_scenes(scenes, Settings(numbers=args.numbers, language=args.lang)), scenes


def _scenes(args: argparse.Namespace) -> list[Scene]:
    if not args.names:
        raise UsageError("nothing to draw; expected a name such as `unisono draw ring -n 5`, or --preset four")
    options = arguments.options(args.option)
    if args.node is not None:
        options["node"] = args.node
    several = len(args.names) > 1
    size = args.size or (SIZE_OF_SEVERAL if several else SIZE)
    with progress_bar() as progress:
        bar = progress.add_task("proving and playing", total=len(args.names))
        scenes = []
        for name in args.names:
            progress.update(bar, description=escape(f"proving and playing {name}"))
            scenes.append(_scene(resolve(name), size, args, options, several))
            progress.update(bar, advance=1)
    return scenes


def _scene(
    algorithm: Algorithm | WrittenSchedule,
    size: int,
    args: argparse.Namespace,
    options: dict[str, Any],
    several: bool,
) -> Scene:
    """Return the scene of one; of several, each takes the options that it has."""
    if isinstance(algorithm, WrittenSchedule):
        return scene_of(algorithm.schedule(args.size or algorithm.written.size, args.root))
    suitable = {name: value for name, value in options.items() if not several or name in algorithm.options}
    return scene_of(algorithm.schedule(size, args.root, **suitable), algorithm, hidden_files=[names.__file__])
