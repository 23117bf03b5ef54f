"""Sentences as data: an id, a template in English and in Chinese, and parameters.

The text of every error is made here. A package keeps its templates in its module ``messages.py``::

    NO_SUCH_RANK = Template("schedule.no_such_rank", "there is no rank {rank}", "没有 rank {rank}")
    raise UsageError(NO_SUCH_RANK(rank=7))

A :class:`Message` is a ``str``, the English sentence, so it can be used wherever text is expected; it also knows its
template and parameters, so that a page can show it in Chinese and a test can ask for its id. A parameter that is a
message itself is shown in the same language as the sentence around it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

ENGLISH, CHINESE = "en", "zh"
LANGUAGES = (ENGLISH, CHINESE)
PLAIN = (str, int, float, type(None))  # parameters of other types become text, so that messages can be pickled


@dataclass(frozen=True)
class Template:
    """A sentence with ``{named}`` parameters. The id never changes: ``<package>.<snake_case_name>``."""

    id: str
    english: str
    chinese: str

    def __call__(self, **parameters: Any) -> Message:
        """Return the sentence with these parameters."""
        plain = {name: value if isinstance(value, PLAIN) else str(value) for name, value in parameters.items()}
        return Message(self.english.format(**plain), self, plain)


class Message(str):
    """A sentence in English that can also be shown in Chinese."""

    __slots__ = ("parameters", "template")
    template: Template | None
    parameters: Mapping[str, Any]

    def __new__(
        cls, text: str, template: Template | None = None, parameters: Mapping[str, Any] | None = None
    ) -> Message:
        """Make a message; without a template it is plain text."""
        made = super().__new__(cls, text)
        made.template = template
        made.parameters = parameters or {}
        return made

    @property
    def id(self) -> str:
        """The id of the template; empty for plain text."""
        return "" if self.template is None else self.template.id

    def __reduce__(self) -> tuple[Any, ...]:
        return (Message, (str(self), self.template, dict(self.parameters)))


def translated(text: str, language: str) -> str:
    """Return a message in a language; plain text, which has no translation, stays as it is."""
    if language == ENGLISH or not isinstance(text, Message) or text.template is None:
        return str(text)
    parameters = {
        name: translated(value, language) if isinstance(value, str) else value
        for name, value in text.parameters.items()
    }
    return text.template.chinese.format(**parameters)


# Between two sentences.
SEPARATORS = {ENGLISH: "; ", CHINESE: "；"}


def join(messages: Iterable[str], english: str = SEPARATORS[ENGLISH], chinese: str = SEPARATORS[CHINESE]) -> Message:
    """Return several sentences as one message."""
    parts = {f"part_{number}": message for number, message in enumerate(messages)}
    fields = [f"{{{name}}}" for name in parts]
    return Template("join", english.join(fields), chinese.join(fields))(**parts)


def listed(items: Iterable[str], longest: int | None = None) -> Message:
    """Return names or numbers as one message, separated as each language does; no more than ``longest`` of them."""
    every = list(items)
    shown = join(every[:longest], ", ", "、")
    return shown if longest is None or len(every) <= longest else join([shown, ""], ", ...", "……")
