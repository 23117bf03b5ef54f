"""The documentation agrees with the program."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import algorithms_page
import api_pages
import cli_page
import errors_page
import page_parts
import performance_page
import pictures
from console_blocks import ROOT, printed_by
from site_sources import line_of
from unisono import prove
from unisono.algorithms import BUILT_IN
from unisono.collectives import COLLECTIVES

PAGES = [ROOT / "README.md", ROOT / "README.zh.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PYTHON = re.compile(r"```python\n(.*?)```", re.DOTALL)


def test_the_page_of_algorithms_is_up_to_date():
    """If this fails, run make docs."""
    assert (ROOT / "docs" / "algorithms.md").read_text(encoding="utf-8") == algorithms_page.page()


def test_the_api_reference_is_up_to_date():
    """If this fails, run make docs."""
    made = api_pages.pages()
    assert set(api_pages.FOLDER.iterdir()) == set(made)
    for path, text in made.items():
        assert path.read_text(encoding="utf-8") == text, path.name


def test_the_reference_of_the_command_line_is_up_to_date():
    """If this fails, run make docs."""
    assert cli_page.PAGE.read_text(encoding="utf-8") == cli_page.page()


def test_every_verb_and_option_of_the_command_line_has_an_explanation():
    entries = re.findall(r"^- `([^:]+)`: (.*)$", cli_page.page(), re.MULTILINE)
    assert len(entries) > 100
    assert [name for name, explanation in entries if len(explanation) < 5] == []


def test_the_page_of_errors_is_up_to_date():
    """If this fails, run make docs."""
    text = errors_page.PAGE.read_text(encoding="utf-8")
    assert page_parts.names(text) == ["tree", "messages"]
    assert errors_page.filled(text) == text


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_picture_is_up_to_date(language):
    """If this fails, run make docs."""
    drawn = (ROOT / "docs" / "images" / f"ring-{language}.svg").read_text(encoding="utf-8")
    assert drawn == pictures.picture(language)


@pytest.mark.parametrize("page", performance_page.PAGES, ids=lambda page: page.name)
def test_the_tables_of_the_performance_pages_show_the_measurements(page):
    """If this fails, run python tools/performance_page.py."""
    text = page.read_text(encoding="utf-8")
    assert performance_page.page(text) == text


def test_every_measurement_of_a_collective_or_a_training_step_is_shown():
    shown = [name for page in performance_page.PAGES for name in page_parts.names(page.read_text(encoding="utf-8"))]
    folders = [path for path in performance_page.MEASUREMENTS.iterdir() if path.name.endswith("-cores")]
    stored = [f"{path.parent.name}/{path.stem}" for folder in folders for path in folder.glob("*.json")]
    assert len(shown) == len(set(shown)) >= 20
    assert set(stored) - set(shown) == {"epyc-2-cores/groups-4"}  # on the page of the PyTorch backend


@pytest.mark.parametrize(("page", "to"), [("README.md", " to "), ("README.zh.md", "～")])
def test_the_headline_states_the_range_of_the_recorded_runs(page, to):
    text = (ROOT / page).read_text(encoding="utf-8")
    runs = performance_page.measurement("xeon-16-cores/all_reduce-2-runs")
    for low, high in performance_page.ranges(runs, 1 << 20).values():
        assert f"{low}{to}{high}" in text


@pytest.mark.parametrize("page", ["README.md", "README.zh.md"])
def test_the_algorithm_on_the_first_screen_is_proved(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    space: dict[str, object] = {}
    code = PYTHON.findall(text)[0]
    exec(compile(code, page, "exec"), space)
    for size in range(1, 18):
        proof = prove(space["my_ring"].schedule(size))
        assert proof.bandwidth_ratio == 1
    # the first screen: sentence, picture, and about ten lines of code
    assert text.index("![") < text.index("```python")
    assert len(code.splitlines()) <= 12
    assert text.index("```python") < 1000


@pytest.mark.parametrize("page", ["README", "docs/features", "docs/course"])
def test_both_languages_of_a_page_have_the_same_parts(page):
    english, chinese = ((ROOT / f"{page}{suffix}").read_text(encoding="utf-8") for suffix in (".md", ".zh.md"))
    for pattern in (r"^## ", r"^- \*\*", r"^\|", r"^```", r"^\d+\. "):
        assert len(re.findall(pattern, english, re.MULTILINE)) == len(re.findall(pattern, chinese, re.MULTILINE))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_have_targets(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def anchors(text: str) -> set[str]:
    """Return the anchors of a page: those of its headings, as GitHub makes them, and explicit ones."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    made = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return made | set(re.findall(r'<a id="([^"]+)">', text))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_into_a_page_lead_to_a_heading(page):
    text = page.read_text(encoding="utf-8")
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)#([^)]+)\)", text):
        linked = page.parent / target if target else page
        if linked.suffix == ".py":  # the name of a function or class
            assert line_of(linked.resolve().relative_to(ROOT), anchor) >= 1
            continue
        assert anchor in anchors(linked.read_text(encoding="utf-8")), f"{target}#{anchor}"


def test_every_collective_is_on_the_page_with_its_story_in_both_languages():
    text = (ROOT / "docs" / "algorithms.md").read_text(encoding="utf-8")
    for collective in COLLECTIVES:
        assert collective.story.en in text
        assert collective.story.zh in text


def test_no_document_names_a_path_on_a_machine():
    for page in PAGES:
        assert not re.search(r"/(root|home|work|tmp)/", page.read_text(encoding="utf-8")), page


def test_the_incorrect_examples_fail_their_proofs():
    for path in sorted((ROOT / "examples" / "wrong").glob("*.py")):
        assert "0 proved, 1 failed" in printed_by(f"unisono verify {Path(path).relative_to(ROOT)} -n 3")


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("README.md", "{} algorithms"),
        ("README.zh.md", "{} 个算法"),
        ("docs/features.md", "{} algorithms"),
        ("docs/features.zh.md", "{} 个算法"),
    ],
)
def test_the_stated_number_of_algorithms_is_correct(page, words):
    assert words.format(len(BUILT_IN)) in (ROOT / page).read_text(encoding="utf-8")


def test_every_package_and_module_is_in_the_code_map():
    """The map of CONTRIBUTING.md names everything in src/unisono, and every folder at the top."""
    map_text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("## Code map")[1].split("\n## ")[0]
    source = ROOT / "src" / "unisono"
    packages = [path.parent for path in source.glob("*/__init__.py")]
    modules = [path for path in source.glob("*.py*") if not path.name.startswith("__")]
    assert len(packages) >= 15
    for path in packages:
        assert f"| `src/unisono/{path.name}/` |" in map_text, path.name
    for path in modules:
        assert f"| `src/unisono/{path.name}` |" in map_text, path.name
    for folder in ("engine", "tests", "tools", "examples", "docs"):
        assert f"| `{folder}/` |" in map_text


def test_every_page_is_in_the_index():
    docs = ROOT / "docs"
    index = (docs / "README.md").read_text(encoding="utf-8")
    pages = {path.name for path in docs.glob("*.md")} | {
        f"{path.parent.name}/README.md" for path in docs.glob("*/README.md")
    }
    assert pages - {name for name in pages if f"]({name})" in index} == {"README.md"}


def test_the_documented_make_targets_exist():
    explained = re.findall(r"^make ([\w-]+)", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.MULTILINE)
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(explained) >= 10
    assert set(explained) <= set(targets)


ADRS = sorted((ROOT / "docs" / "adr").glob("0*.md"))


@pytest.mark.parametrize("path", ADRS, ids=lambda path: path.stem[:4])
def test_a_decision_has_a_title_a_status_and_a_date_and_is_listed(path):
    title, *head = path.read_text(encoding="utf-8").splitlines()[:6]
    assert title.startswith(f"# {path.stem[:4]} ")
    assert re.search(r"Status\W+(accepted|replaced by \d{4})\b", "\n".join(head))
    assert re.search(r"Date\W+\d{4}-\d\d-\d\d\b", "\n".join(head))
    assert f"[{title[2:]}]({path.name})" in (path.parent / "README.md").read_text(encoding="utf-8")


def test_decisions_have_different_numbers():
    numbers = [path.stem[:4] for path in ADRS]
    assert len(numbers) == len(set(numbers)) >= 28
