"""The README, in English and in Chinese: every command works, and every number has a source."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys

import pytest

from console_blocks import ROOT
from unisono.cli.main import VERBS, parser

PAGES = ["README.md", "README.zh.md"]
FEATURES = {"README.md": "docs/features.md", "README.zh.md": "docs/features.zh.md"}  # has the table of verbs
PYTHON = re.compile(r"```python\n(.*?)```", re.DOTALL)
COMMAND = re.compile(r"^\$ (unisono [^\n#]*)", re.MULTILINE)
IN_TABLE = re.compile(r"^\| `(unisono [^`]*)` \|", re.MULTILINE)
INLINE = re.compile(r"`(unisono [a-z]+ -[^`]*)`")
# Keeps the commands short and the browser of the machine closed.
SHORTER = {
    "draw": ["-o", "page.html", "--no-open"],
    "bench": ["--bytes", "1KiB", "--repeats", "2", "--time-budget", "0.05"],
    "train.py": ["--steps", "2", "--sample", "10"],
}


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path):
    """A folder like the reader's: with the examples and the two programs of the page, my_algo.py and calls.py."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for name, program in zip(("my_algo.py", "calls.py"), PYTHON.findall(text_of("README.md")), strict=True):
        (tmp_path / name).write_text(program, encoding="utf-8")
    return tmp_path


def run_in(folder, words):
    return subprocess.run(
        [sys.executable, "-m", *words],
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=300,
        stdin=subprocess.DEVNULL,
    )


@pytest.mark.slow
@pytest.mark.parametrize("command", [command.strip() for command in COMMAND.findall(text_of("README.md"))])
def test_a_command_of_the_first_screen_works(folder, command):
    words = shlex.split(command)
    for part, more in SHORTER.items():
        if any(word.endswith(part) for word in words):
            words += more
    if any(word in command for word in ("gloo", "train.py")):
        pytest.importorskip("torch")
        words[words.index("-n") + 1] = "2"  # every rank imports torch, which takes seconds
    done = run_in(folder, words)
    assert done.returncode == 0, done.stderr


def test_both_pages_have_the_same_commands():
    english, chinese = (COMMAND.findall(text_of(page)) for page in PAGES)
    translated = [command.replace(" --lang zh", "").strip() for command in chinese]
    assert [command.strip() for command in english] == translated
    assert len(english) >= 6


def test_a_command_of_the_chinese_page_is_in_chinese_if_it_can_be():
    in_table = IN_TABLE.findall(text_of(FEATURES["README.zh.md"]))
    for command in COMMAND.findall(text_of("README.zh.md")) + in_table:
        words = re.sub(r"\[[^\]]*\]", "", command.replace("\\|", "|")).split()[1:]
        assert ("--lang zh" in command) == hasattr(parser(words[0]).parse_args(words), "lang"), command


@pytest.mark.parametrize("page", PAGES)
def test_the_arguments_of_every_other_command_are_valid(page):
    table = IN_TABLE.findall(text_of(FEATURES[page]))
    commands = table + INLINE.findall(text_of(page)) + INLINE.findall(text_of(FEATURES[page]))
    assert {command.split()[1] for command in commands} == set(VERBS)
    for command in commands:
        words = re.sub(r"\[[^\]]*\]", "", command.replace("\\|", "|")).split()[1:]
        assert parser(words[0]).parse_args(words).run


@pytest.mark.parametrize(
    ("page", "language", "lines"),
    [
        ("README.md", "en", ["32 proved, 0 failed", "far from the latency bound: 62 rounds; the lower bound is 5"]),
        ("README.zh.md", "zh", ["32 个通过证明，0 个失败", "轮数远高于下界：需 62 轮，下界为 5 轮"]),
    ],
)
def test_verify_prints_the_lines_that_the_page_quotes(page, language, lines, folder):
    printed = run_in(folder, ["unisono", "verify", "my_algo.py", "-n", "1-32", "--lang", language]).stdout
    for quoted in lines:
        assert quoted in printed
        assert f"`{quoted}`" in text_of(page)


@pytest.mark.parametrize("page", PAGES)
def test_the_communicator_example_of_the_page_prints_what_the_page_shows(page, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(PYTHON.findall(text_of(page))[1], encoding="utf-8")
    alone = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120)
    assert alone.stdout == "rank 0 of 1: 1\n", alone.stderr
    together = run_in(tmp_path, ["unisono", "run", "-n", "4", str(script)])
    shown = re.search(r"\$ unisono run -n 4 calls.py\n(.*?)```", text_of(page), re.DOTALL)[1]
    assert sorted(together.stdout.splitlines()) == shown.splitlines(), together.stderr


@pytest.mark.parametrize(
    ("page", "sentence"),
    [
        (
            "README.md",
            r"takes\s([\d.]+ to [\d.]+) µs \(seven runs\); Gloo takes ([\d.]+ to [\d.]+) times as long, and "
            r"Open MPI in the best of seven settings ([\d.]+ to [\d.]+) times",
        ),
        (
            "README.zh.md",
            r"七次测得耗时 ([\d.]+～[\d.]+) µs；Gloo 的耗时是它的 ([\d.]+～[\d.]+) 倍，\s*Open MPI 七种配置中最快的"
            r"\s*一种是 ([\d.]+～[\d.]+) 倍",
        ),
    ],
)  # fmt: skip
def test_the_measured_line_is_in_the_page_of_measurements(page, sentence):
    time_us, gloo, mpi = (part.replace("～", " to ") for part in re.search(sentence, text_of(page)).groups())
    section = text_of("docs/performance.md").split("## All-reduce between 2 ranks, several runs")[1].split("\n## ")[0]
    assert f"| 1 MiB | {time_us} | {mpi} | {gloo} |" in section
