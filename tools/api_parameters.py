"""Takes a docstring apart: the summary, the sentences that explain each parameter, and the rest.

Docstrings explain parameters in sentences, with their names in double backquotes. A sentence that begins with a
parameter explains it; otherwise the first one that names it does. The sentences after it belong to it too, up to the
next parameter or the end of the paragraph. The first paragraph is the summary and stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

SENTENCE = re.compile(r"(?<=[.;])(?<!e\.g\.)\s+(?=[A-Z`\"])")
NAME = re.compile(r"``\*{0,2}(\w+)``")
SUBJECT = re.compile(r"``\w+``(?:(?:, | and |, and | or )``\w+``)*(?=:| (?!and |or ))")
# How sentences begin that are about the call and not about a parameter.
ABOUT_THE_CALL = re.compile(r"(``)?\w+Error\b|It raises|If (the|communication|only|a rank)\b|For example|All ranks")


@dataclass
class Explained:
    """A docstring, taken apart."""

    summary: str
    parameters: dict[str, str] = field(default_factory=dict)
    rest: str = ""


def split(docstring: str, parameters: Iterable[str]) -> Explained:
    """Take the docstring of something with these parameters apart."""
    names = set(parameters)
    summary, *paragraphs = re.split(r"\n\s*\n", docstring)
    subjects = {name for text in paragraphs for one in sentences(text) for name in subjects_of(one)} & names
    explained = (set(NAME.findall(summary)) & names) - subjects
    made = Explained(summary)
    rest = []
    for at, paragraph in enumerate(paragraphs):
        before_block = paragraph.rstrip().endswith(":") and at + 1 < len(paragraphs)
        if paragraph.startswith((" ", "- ")) or not names & set(NAME.findall(paragraph)):
            rest.append(paragraph)
            continue
        left: list[str] = []
        current: list[str] = []
        for sentence in sentences(paragraph):
            own = [name for name in subjects_of(sentence) if name in names]
            new = own + [name for name in NAME.findall(sentence) if name in names - explained - subjects]
            if own or (new and not ABOUT_THE_CALL.match(sentence)):
                current = list(dict.fromkeys(new))
                explained.update(new)
            elif ABOUT_THE_CALL.match(sentence) or (before_block and sentence.endswith(":")):
                current = []
            for name in current:
                before = made.parameters.get(name)
                made.parameters[name] = f"{before} {sentence}" if before else definition(name, sentence)
            if not current:
                left.append(sentence)
        if left:
            rest.append(ended(" ".join(left)))
    made.parameters = {name: ended(text) for name, text in made.parameters.items()}
    made.rest = "\n\n".join(rest)
    return made


def sentences(paragraph: str) -> list[str]:
    """Return the sentences of a paragraph."""
    return SENTENCE.split(" ".join(paragraph.split()))


def subjects_of(sentence: str) -> list[str]:
    """Return the names with which a sentence begins."""
    found = SUBJECT.match(sentence)
    return NAME.findall(found[0]) if found else []


def definition(name: str, sentence: str) -> str:
    """Return a sentence such as "``size`` is the number of ranks" without its beginning."""
    return re.sub(rf"^``{name}``(?: is |: )", "", sentence)


def ended(text: str) -> str:
    """Return a text that ends in a full stop where a part of a sentence was taken away."""
    return f"{text[:-1]}." if text.endswith(";") else text
