"""Every program and every command in the documents runs, or a rule says where it runs, or why it does not."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from functools import cache

import pytest

from console_blocks import ROOT, blocks, printed_by
from document_blocks import DOCUMENTS, FENCED, Block, Command, python_blocks, shell_commands
from document_programs import program_of, run_programs, script_of
from document_rules import COMMANDS, PYTHON, Elsewhere, Long, NotRun, rule_of
from unisono.cli.main import VERBS, main, parser

LIMIT_S = 120.0
PROGRAMS, SHELL = python_blocks(), shell_commands()
# Keeps commands short and the browser closed.
SHORTER = {"draw": ["--no-open"], "bench": ["--bytes", "1KiB", "--repeats", "1", "--time-budget", "0.02"]}


def what_is_done(rules, page, text):
    rule = rule_of(rules, page, text)
    return rule.what if rule else None


def commands_to_run():
    """Return the commands that run here, each once."""
    found = {}
    compared = {command for path in DOCUMENTS for command, _ in blocks(path)}
    for command in SHELL:
        if command.text in compared:
            continue
        what = what_is_done(COMMANDS, command.page, command.text)
        if command.text.startswith("unisono ") and (what is None or isinstance(what, Long)):
            found.setdefault(command.text, (command, pytest.mark.long if isinstance(what, Long) else ()))
    return [pytest.param(command, marks=marks, id=command.text) for command, marks in found.values()]


def programs_to_run():
    """Return pages with their number of ranks; a program that needs torch starts its own process group."""
    found = {}
    for block in PROGRAMS:
        if (script := script_of(block)) is not None:
            line = block.line if script.torch else None
            found[block.page, script.ranks, line] = f"{block.place if line else block.page}, {script.ranks} ranks"
    return [pytest.param(*each, id=name) for each, name in found.items()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the files that the documents name: my_algo.py, mine.toml, examples, and a recorded run."""
    made = tmp_path_factory.mktemp("reader")
    (made / "examples").symlink_to(ROOT / "examples")
    first = {block.page: block.text for block in reversed(PROGRAMS)}
    (made / "my_algo.py").write_text(first["README.md"], encoding="utf-8")
    (made / "train.py").write_text(first["docs/tracing.md"], encoding="utf-8")
    network = re.search(r"```toml\n(.*?)```", (ROOT / "docs" / "networks.md").read_text(encoding="utf-8"), re.DOTALL)
    (made / "mine.toml").write_text(network[1], encoding="utf-8")
    subprocess.run(
        [sys.executable, "-m", "unisono", "run", "-n", "4", "--trace", "run", "train.py"],
        cwd=made, check=True, capture_output=True, timeout=LIMIT_S,
    )  # fmt: skip
    shutil.copy(made / "run" / "run.json", made / "run.json")
    return made


@pytest.mark.slow
@pytest.mark.parametrize("command", commands_to_run())
def test_a_command_succeeds(command, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    verb, *words = shlex.split(command.text)[1:]
    more = SHORTER.get(verb, [])
    if verb == "draw" and "-o" not in words:
        more = [*more, "-o", "page.html"]
    assert main([verb, *words, *more]) == 0, capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(("page", "ranks", "line"), programs_to_run())
def test_the_programs_of_a_page_run(page, ranks, line, folder, monkeypatch):
    monkeypatch.chdir(folder)
    if line is not None:
        pytest.importorskip("torch")
        from torch_ranks import run_ranks

        assert run_ranks(run_programs, ranks, page, ranks, line, init=False) == [1] * ranks
    elif ranks == 1:
        assert run_programs(page, 1)
    else:
        program = ROOT / "tests" / "document_programs.py"
        done = subprocess.run(
            [sys.executable, "-m", "unisono", "run", "-n", str(ranks), program, page, str(ranks)],
            capture_output=True, text=True, timeout=LIMIT_S,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert re.fullmatch(r"\[\d\] [1-9]\d*", done.stdout.splitlines()[-1]), done.stdout


def test_a_command_of_another_program_has_a_rule():
    assert [
        command
        for command in SHELL
        if not command.text.startswith("unisono ") and rule_of(COMMANDS, command.page, command.text) is None
    ] == []


def test_the_arguments_of_every_command_are_valid():
    count = 0
    for command in SHELL:
        if found := re.search(r"(?:^|&& |-- )(?:\.venv/bin/)?unisono (.*)", command.text):
            if command.page == "docs/cli.md":
                continue
            verb, *words = shlex.split(found[1])
            assert parser(verb).parse_args([verb, *words]).run, command
            count += 1
    assert count > 80


def test_targets_and_tools_that_commands_name_exist():
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    for command in SHELL:
        if found := re.match(r"(?:sudo )?make ([\w-]+)", command.text):
            assert found[1] in targets, command
        for program in re.findall(r"(?:tools|examples)/[\w/]+\.py", command.text):
            assert (ROOT / program).exists(), command


@pytest.mark.parametrize("rule", [*COMMANDS, *PYTHON], ids=lambda rule: f"{rule.pages}: {rule.pattern[:40]}")
def test_a_rule_is_needed_and_names_an_existing_test_or_a_reason(rule):
    rules, texts = (COMMANDS, SHELL) if rule in COMMANDS else (PYTHON, PROGRAMS)
    if rule.pages != "*":  # those for all pages are about kinds of commands
        assert any(rule_of(rules, each.page, each.text) is rule for each in texts)
    if isinstance(rule.what, Elsewhere):
        file, _, name = rule.what.test.partition("::")
        assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8")
    if isinstance(rule.what, NotRun):
        assert len(rule.what.reason) > 10


def test_every_program_is_valid_python():
    for block in PROGRAMS:
        compile(program_of(block, script_of(block)), block.place, "exec")


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        pytest.param(*block, id=f"{path.name}: {block[0]}")
        for path in DOCUMENTS
        if path.name not in ("tour.md", "tour.zh.md", "planner.md")  # these have their own tests
        for block in blocks(path)
    ],
)
def test_a_command_prints_what_the_page_shows(command, shown):
    """If this fails after an intended change, run python tools/tour_pages.py."""
    assert printed_by(command) == shown


@pytest.mark.parametrize(
    ("text", "language", "commands"),
    [
        ("$ unisono list  # all\nring\n", "", ["unisono list"]),
        ("make a \\\n    b\n", "", ["make a b"]),
        ("unknown --option\n", "sh", ["unknown --option"]),
        ("unisono = 3\nranks\n", "", []),
        ("unisono list\n", "python", []),
        ("a picture ──> of make test\n", "", []),
    ],
)
def test_commands_are_told_from_output_and_pictures(text, language, commands):
    block = Block("page.md", 1, language, text, signature=False)
    assert list(block.commands()) == [Command("page.md", 1, command) for command in commands]


def test_every_verb_and_option_that_a_sentence_names_exists():
    count = 0
    for path in DOCUMENTS:
        prose = FENCED.sub("", path.read_text(encoding="utf-8"))
        for text in re.findall(r"`unisono ([a-z][^`]*)`", prose):
            verb = text.split()[0]
            assert verb in VERBS, f"{path.name}: {text}"
            known = options_of(verb)
            for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", re.split(r"\.py| -- ", text)[0]):
                assert option in known, f"{path.name}: {text}"
                count += 1
    assert count > 100


@cache
def options_of(verb):
    (verbs,) = (action for action in parser(verb)._actions if isinstance(action.choices, dict))
    return set(verbs.choices[verb]._option_string_actions)
