"""``unisono draw``: draw an algorithm as an interactive web page in a single file; several names are compared.

A name is a built-in algorithm, your own file (`unisono draw my_algo.py -n 5`), or the folder of a recorded run
(`unisono run --trace run ...`, then `unisono draw run`).
"""

from __future__ import annotations

import argparse
import tempfile
import webbrowser

from rich.markup import escape

from unisono import networks
from unisono.bench.cases import parse_bytes
from unisono.cli import arguments
from unisono.cli.output import console, progress_bar
from unisono.cli.watchdog import watched
from unisono.collectives import Words
from unisono.drawing import messages
from unisono.drawing.course import course_names
from unisono.drawing.drawing import (
    SIZE,
    SIZE_OF_SEVERAL,
    Drawing,
    Request,
    draw_request,
    picture_kind,
    presets_are_lessons,
)
from unisono.drawing.gallery import write_gallery
from unisono.drawing.simulated import Conditions
from unisono.errors import UsageError


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb."""
    parser = verbs.add_parser(
        "draw", help="draw an algorithm or a recorded run as a web page", description=arguments.described(__doc__)
    )
    parser.add_argument(
        "names",
        nargs="*",
        metavar="name",
        help="an algorithm, a file, or the folder of a trace; several are compared",
    )
    parser.add_argument(
        "-n", dest="size", type=arguments.size,
        help=f"number of ranks (default {SIZE}, or {SIZE_OF_SEVERAL} for several names)",
    )  # fmt: skip
    add_output(parser)
    parser.add_argument(
        "--network",
        help="animate in simulated time on this network: a preset (`unisono list --networks`) or a file (.toml); "
        "a comparison without it offers several",
    )
    parser.add_argument(
        "--bytes", metavar="SIZE", help="size of the vector on the network, such as 64KiB (default 1MiB)"
    )
    parser.add_argument("--step", type=int, metavar="K", help="open the page at this step (default: at the start)")
    parser.add_argument("--rank", type=int, metavar="R", help="open the page with this rank selected")
    parser.add_argument("--numbers", action="store_true", help="open the page with numbers in the cells")
    parser.add_argument(
        "--lesson",
        metavar="NAME",
        help=f"draw a lesson of the course, by number or name: {', '.join(course_names())}",
    )
    parser.add_argument("--preset", help=argparse.SUPPRESS)  # of earlier versions; refused with a hint
    parser.add_argument(
        "--course", action="store_true", help="draw the whole course into the folder given by -o (default: a new one)"
    )
    parser.add_argument(
        "--all", action="store_true", help="draw every algorithm into the folder given by -o, which is created"
    )
    parser.add_argument("--node", type=int, metavar="K", help="short for --option node=K")
    arguments.add_options(parser)
    parser.add_argument("--lang", choices=("en", "zh"), help="language of the page (default: that of the browser)")
    parser.add_argument(
        "--calls", type=_calls, metavar="A-B", help="draw only these calls of a recorded run: 100-200, 100- or 100"
    )
    parser.set_defaults(run=run)


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say where a page goes."""
    parser.add_argument(
        "-o", dest="output", metavar="FILE",
        help="write the page to this file; FILE.svg holds a picture of the step, FILE.gif the animation",
    )  # fmt: skip
    parser.add_argument("--no-open", action="store_true", help="do not open a browser")


def run(args: argparse.Namespace) -> int:
    """Write the page and open it."""
    if args.preset is not None:
        raise UsageError(presets_are_lessons(args.preset))
    if args.all or args.course:
        return _gallery(args)
    return draw_page(_request(args), args.output, not args.no_open)


def check_output(output: str | None, opens: bool) -> None:
    """Refuse a page that is neither kept nor opened."""
    if not opens and not output:
        raise UsageError(messages.PAGE_NOT_KEPT())


def draw_page(request: Request, output: str | None, opens: bool, to_stderr: bool = False) -> int:
    """Draw a request, write the page, open it, and print what was found; return the exit status."""
    check_output(output, opens)
    with progress_bar() as progress:
        bar = progress.add_task("drawing", total=len(request.names) or None)
        drawn = 0

        def show(name: str) -> None:
            nonlocal drawn
            progress.update(bar, completed=drawn, description=escape(f"drawing {name}"))
            drawn += 1

        drawing = draw_request(request, watch=watched, progress=show)
    _write(drawing, output, opens, to_stderr)
    for finding in drawing.findings:
        console().print(escape(_in(request.language, finding)), soft_wrap=True)
    for note in drawing.notes:
        console(stderr=True).print(f"[yellow]{escape(_in(request.language, note))}[/]", soft_wrap=True)
    for error, message in drawing.failures:
        console(stderr=True).print(f"[red]{error}[/] {escape(message)}", soft_wrap=True)
    return 1 if drawing.failures else 0


def _request(args: argparse.Namespace) -> Request:
    options = arguments.options(args.option)
    if args.node is not None:
        options["node"] = args.node
    network = None if args.network is None else networks.load(args.network)
    sizes = () if args.bytes is None else (parse_bytes(args.bytes, args.bytes),)
    return Request(
        args.names, args.size, args.root, args.numbers, args.lang, args.lesson, calls=args.calls, options=options,
        conditions=Conditions(network, sizes), step=args.step, rank=args.rank,
    )  # fmt: skip


def _write(drawing: Drawing, output: str | None, opens: bool, to_stderr: bool) -> None:
    """Write the page and print its path."""
    if output:
        path = drawing.save(output)
        if opens and picture_kind(output) is None:
            webbrowser.open(path.resolve().as_uri())
    else:
        path = drawing.show()
    size = f"{path.stat().st_size / 1000:.0f} KB"
    out = console(stderr=to_stderr)
    out.print(f"{escape(drawing.title)}: {escape(str(path))} ({size})", soft_wrap=True)


def _in(language: str | None, words: Words) -> str:
    return words.zh if language == "zh" else words.en


def _calls(text: str) -> tuple[int, int | None]:
    """Parse the numbers of calls: 100-200, 100- for all that follow, or a single one."""
    first, dash, last = text.partition("-")
    numbers = len(text) < 20 and first.isdecimal() and (last.isdecimal() or not last)
    if not numbers or (last and int(last) < int(first)):
        raise argparse.ArgumentTypeError(f"{text!r} names no calls; expected e.g. 100-200, 100- or 100")
    return int(first), int(last) if last else None if dash else int(first)


def _gallery(args: argparse.Namespace) -> int:
    """Write the course, and with --all a page for everything."""
    has_view = (args.step, args.rank) != (None, None)
    needless = args.names or args.lesson or args.network or args.bytes or has_view
    if args.course and (needless or args.all or args.size):
        raise UsageError(messages.COURSE_ALONE())
    if args.all and (needless or not args.output):
        raise UsageError(messages.GALLERY_ALONE())
    check_output(args.output, not args.no_open)
    with progress_bar() as progress:
        bar = progress.add_task("drawing", total=None)
        index = write_gallery(
            args.output or tempfile.mkdtemp(prefix="unisono-"),
            (args.size or SIZE_OF_SEVERAL) if args.all else None,
            args.lang,
            written=lambda path: progress.update(bar, advance=1, description=escape(path.name)),
        )
    if not args.no_open:
        webbrowser.open(index.resolve().as_uri())
    pages = len(list(index.parent.glob("*.html")))
    console().print(f"{pages} pages: {escape(str(index))}", soft_wrap=True)
    return 0
