"""The check of the links of the site finds each kind of broken link."""

from __future__ import annotations

import json

import pytest

import site_links


@pytest.fixture
def broken(tmp_path):
    """Return what the check says about a page with the given text."""

    def check(text: str, **others: str) -> list[str]:
        (tmp_path / "page.html").write_text(text)
        for name, content in others.items():
            path = tmp_path / name.replace("__", "/").replace("_html", ".html")
            path.parent.mkdir(exist_ok=True)
            path.write_text(content)
        return site_links.check(tmp_path).broken

    return check


@pytest.mark.parametrize(
    ("link", "problem"),
    [
        ("missing.html", "no such file"),
        ("#missing", "no such place"),
        ("other.html#missing", "no such place"),
        ("/other.html", "begins with a slash, so it depends on where the site is"),
        ("folder", "leads to a folder, which shows no page when it is opened as a file"),
        ("https://host", "not a well-formed address"),
        ("ftp://example.org/file", "not a well-formed address"),
        ("https://example.org/a b", "not a well-formed address"),
    ],
)
def test_a_broken_link_is_found(broken, link, problem):
    found = broken(f'<a href="{link}">it</a>', other_html="", folder__x_html="")
    assert found == [f"page.html: {link}: {problem}"]


def test_good_links_are_not_reported(broken):
    links = [
        "other.html",
        "other.html#place",
        "#here",
        "https://example.org/a?b=c#d",
        "other.html#step=3",
        "a%20b.html",
    ]
    text = "".join(f'<a href="{link}" id="here">it</a>' for link in links)
    assert broken(text, **{"other_html": '<p id="place">', "a b_html": ""}) == []


@pytest.mark.parametrize(
    "text",
    [
        '<script src="https://example.org/x.js"></script>',
        '<link rel="stylesheet" href="//example.org/x.css">',
        '<img src="https://example.org/x.png">',
    ],
)
def test_nothing_is_loaded_from_another_host(broken, text):
    [found] = broken(text)
    assert found.endswith("loaded from another host")


def test_a_page_of_the_gallery_names_only_pages_that_exist(broken):
    data = json.dumps({"index": {"course": [{"pages": [{"file": "there.html"}, {"file": "gone.html"}]}]}})
    text = f'<script type="application/json" id="data">{data}</script>'
    assert broken(text, there_html="") == ["page.html: gone.html: no such file"]


def test_the_path_of_a_machine_is_found(broken):
    [found] = broken("<p>see /" + "home/me/unisono</p>")
    assert "the path of a machine" in found
    assert broken("<p>see https://example.org/home/me and ~/work/x</p>") == []
