"""Reads a network file, and reports the line, the key, the expected value and the value found of a mistake."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from unisono.errors import UsageError
from unisono.message import listed
from unisono.networks import keys, messages
from unisono.networks.endpoint import Endpoint
from unisono.networks.fabrics.kinds import KEYS, KINDS
from unisono.networks.keys import Key
from unisono.networks.near import Near
from unisono.networks.network import Network
from unisono.networks.nics import Nics
from unisono.networks.protocols import Protocol

TABLES = ("endpoint", "near", "nic", "fabric", "protocol")
HEADER = re.compile(r"\s*\[{1,2}\s*([\w.-]+)\s*\]")
ENTRY = re.compile(r"""\s*["']?([\w-]+)["']?\s*[=.]""")
POSITION = re.compile(r"\(at line (\d+), column \d+\)")
FABRIC_KIND = keys.word("kind", {kind: kind for kind in KINDS})


def read_file(path: Path) -> Network:
    """Return the network that a file describes."""
    if not path.is_file():
        raise UsageError(messages.NO_FILE(path=str(path)))
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(messages.NOT_TEXT(file=path.name, error=error)) from None
    return read_text(text, path.name)


def read_text(text: str, file: str) -> Network:
    """Return the network that ``text`` describes; messages call it ``file``."""
    return _Reader(text, file).network()


class _Reader:
    def __init__(self, text: str, file: str) -> None:
        self._file, self._lines, self._index = file, text.splitlines(), 0
        try:
            self._data = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            position = POSITION.search(str(error))
            line = int(position[1]) if position else len(self._lines)
            reason = POSITION.sub("", str(error)).strip()
            raise UsageError(messages.NOT_TOML(file=file, line=line, error=reason)) from None

    def network(self) -> Network:
        top = {key: value for key, value in self._data.items() if key not in TABLES}
        fields = self._fields("", top, keys.TOP, also=TABLES)
        network = Network(
            endpoint=Endpoint(**self._fields("endpoint", self._table("endpoint"), keys.ENDPOINT)),
            near=Near(**self._fields("near", self._table("near"), keys.NEAR)),
            nics=Nics(**self._fields("nic", self._table("nic"), keys.NICS)),
            fabric=self._fabric(),
            protocols=self._protocols(),
            **fields,
        )
        if network.nics.count > network.ranks_per_host:
            self._refuse("nic", "count", network.nics.count, messages.NICS(most=network.ranks_per_host))
        return network

    def _fabric(self) -> Any:
        table = self._table("fabric")
        kind = self._value("fabric", "kind", table.get("kind", "switch"), FABRIC_KIND)
        others = {key: value for key, value in table.items() if key != "kind"}
        return KINDS[kind](**self._fields("fabric", others, KEYS[kind], also=("kind",)))

    def _protocols(self) -> tuple[Protocol, ...]:
        tables = self._data.get("protocol", [])
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            self._refuse("", "protocol", tables, messages.TABLES(name="protocol"))
        found = []
        for index, table in enumerate(tables):
            values = {key: value for key, value in table.items() if key != "source"}
            found.append(Protocol(**self._fields("protocol", values, keys.PROTOCOL, index=index)))
        return tuple(found)

    def _table(self, name: str) -> Mapping[str, Any]:
        table = self._data.get(name, {})
        if not isinstance(table, dict):
            self._refuse("", name, table, messages.A_TABLE(name=name))
        return {key: value for key, value in table.items() if key != "source"}

    def _fields(
        self, table: str, values: Mapping[str, Any], known: Mapping[str, Key], also: tuple[str, ...] = (),
        index: int = 0,
    ) -> dict[str, Any]:  # fmt: skip
        self._index = index
        for name in values:
            if name not in known:
                self._refuse_key(table, name, [*known, *also, *(["source"] if table else [])])
        for name, key in known.items():
            if key.required and name not in values:
                line = self._line(table, "")
                raise UsageError(messages.MISSING_KEY(file=self._file, line=line, key=name, expected=key.expected))
        return {known[name].field: self._value(table, name, value, known[name]) for name, value in values.items()}

    def _value(self, table: str, name: str, value: object, key: Key) -> Any:
        try:
            return key.read(value)
        except (ValueError, OverflowError):
            return self._refuse(table, name, value, key.expected)

    def _refuse(self, table: str, name: str, value: object, expected: str) -> None:
        shown = keys.quoted(value) if isinstance(value, str) else str(value)
        raise UsageError(
            messages.BAD_VALUE(
                file=self._file, line=self._line(table, name), key=_full(table, name), expected=expected, found=shown
            )
        )

    def _refuse_key(self, table: str, name: str, known: list[str]) -> None:
        near = get_close_matches(name, known, n=1)
        hint = messages.MEANT(near=near[0]) if near else messages.SEE_DOCS()
        raise UsageError(
            messages.NO_KEY(
                file=self._file, line=self._line(table, name), key=_full(table, name), known=listed(known), hint=hint
            )
        )

    def _line(self, table: str, name: str) -> int:
        """Return the line of a key, or else that of its table, or else 1. ``_index`` counts tables of one name."""
        current, seen, of_table = "", -1, 1
        for number, line in enumerate(self._lines, start=1):
            header, entry = HEADER.match(line), ENTRY.match(line)
            if header:
                current = header[1]
                seen += current == table
                of_table = number if current == table and seen == self._index else of_table
                if not table and current == name:
                    return number
            elif entry and entry[1] == name and current == table and (not table or seen == self._index):
                return number
            elif entry and table and not current and entry[1] == table:
                of_table = number
        return of_table


def _full(table: str, name: str) -> str:
    return f"{table}.{name}" if table else name
