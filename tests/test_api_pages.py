"""docs/api shows every public name with its signature and its docstring."""

from __future__ import annotations

import inspect

import pytest

import api_pages
import api_parameters
import unisono


def sample(array, *rest, op: str = "sum", chunks=unisono.one, **options) -> list[int]:
    """Do ``this``, as in :class:`Message`.

    For example::

        with it:
            use(it)

    and so on.
    """


def test_a_signature_is_formatted_as_in_python():
    assert api_pages.signature(sample, "sample") == (
        "sample(array, *rest, op: str = 'sum', chunks=one, **options) -> list[int]"
    )


def test_a_long_signature_is_wrapped():
    text = api_pages.signature(unisono.Communicator.all_reduce, "Communicator.all_reduce")
    lines = text.splitlines()
    assert lines[0] == "Communicator.all_reduce("
    assert lines[1].startswith("    array: Any, *, op: str = 'sum',")
    assert lines[-1] == ") -> Work | GpuWork | None"
    assert max(map(len, lines)) <= api_pages.WIDTH


def test_a_docstring_becomes_markdown():
    assert api_pages.in_markdown(inspect.getdoc(sample)) == (
        "Do `this`, as in `Message`.\n\nFor example:\n\n```python\nwith it:\n    use(it)\n```\n\nand so on."
    )


@pytest.mark.parametrize("page", api_pages.PAGES, ids=lambda page: page.module)
def test_every_public_name_has_an_entry_with_text(page):
    text = api_pages.text_of(page)
    names = [name for name, _ in api_pages.members(page)]
    assert names
    for name in names:
        entry = text.split(f'<a id="{name}"></a>')[1].split("<a id=")[0]
        assert len(entry.replace("```python", "").split()) > 3, f"{page.module}.{name} has no docstring"
        assert "[source](" in entry or not callable(getattr(unisono, name, None))
    assert " at 0x" not in text


DOCSTRING = """Send ``data`` to rank ``to``.

It is asynchronous. ``to`` is the number of a rank, from 0. Rank 0 is the first. With ``fast``, which needs ``link``,
nothing is copied; ``link`` is the rate of the link.

``data`` stays unchanged. ValueError is raised if ``to`` is not a rank. For example::

    send(x, to=1)
"""


def test_sentences_are_assigned_to_the_parameters_that_they_explain():
    found = api_parameters.split(inspect.cleandoc(DOCSTRING), ["data", "to", "fast", "link"])
    assert found.summary == "Send ``data`` to rank ``to``."
    assert found.parameters == {
        "to": "the number of a rank, from 0. Rank 0 is the first.",
        "fast": "With ``fast``, which needs ``link``, nothing is copied.",
        "link": "the rate of the link.",
        "data": "``data`` stays unchanged.",
    }
    assert found.rest.split("\n\n") == [
        "It is asynchronous.",
        "ValueError is raised if ``to`` is not a rank. For example::",
        "    send(x, to=1)",
    ]


def test_no_sentence_of_a_docstring_is_lost():
    for page in api_pages.PAGES:
        for name, value in api_pages.members(page):
            if inspect.isroutine(value):
                text = inspect.getdoc(value)
                shown = "\n".join(api_pages.of_function(value, name))
                words = {word.strip("`.,;:") for word in api_pages.in_markdown(text).split()}
                assert {word for word in words if word not in shown} == set(), name
