"""From YAML text to plain values with their line numbers; ambiguous text is refused.

Values are accepted only if all YAML readers agree on them. YAML 1.1 reads ``no`` as false, ``10:30`` as 630 and ``010``
as 8; YAML 1.2 does not. PyYAML reads ``1e-4`` as text. Tags, merge keys, several documents and duplicate keys are
refused.
"""

# mypy: allow-untyped-calls
# PyYAML has no annotations for its parser.

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import yaml

from ep_bench.errors import UnquotedText, UserError, spell
from ep_bench.regular_files import read_bytes
from ep_bench.spec.problems import Place, shorten, shown

MAX_BYTES = 256 * 1024
MAX_DEPTH = 40
MAX_VALUES = 20_000
_MAX_DIGITS = 300  # of an integer

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLEAN = {word: value for value in (True, False) for word in (str(value), str(value).lower(), str(value).upper())}
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_HEXADECIMAL = re.compile(r"[-+]?0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_TRAPS = (
    (
        re.compile(r"yes|no|on|off", re.IGNORECASE),
        "text or a truth value, because YAML readers differ: write true or false, or quote it",
    ),
    (
        re.compile(r"[-+]?[0-9][0-9_]*(:[0-9]+)+(\.[0-9_]*)?"),
        "text or a number in base 60, because YAML readers differ: quote it",
    ),
    (
        re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt \t].*)?"),
        "text or a date, because YAML readers differ: quote it",
    ),
    (
        re.compile(r"[-+]?0o?[0-9]+"),
        "an octal or a decimal number, because YAML readers differ: write it without a leading 0, or quote it",
    ),
    (
        re.compile(r"[-+]?0b[01_]+"),
        "text or a binary number, because YAML readers differ: write it in decimal, or quote it",
    ),
    (
        re.compile(r"[-+]?[0-9.][0-9.]*_[0-9_.]*([eE][-+]?[0-9]+)?|[-+]?0x[0-9a-fA-F]*_[0-9a-fA-F_]*"),
        "text or a number, because YAML readers differ: write it without _, or quote it",
    ),
    (re.compile(r"[-+]?\.?(inf|infinity|nan)", re.IGNORECASE), "not a finite number: quote it to mean text"),
    (re.compile(r"=|<<"), "has a special meaning for some YAML readers: quote it, or write out the merged keys"),
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


@dataclass
class Document:
    """A study file: its text, its values, and the line (from 1) of each place in it."""

    where: str
    text: str
    values: dict[str, Any]
    lines: dict[Place, int] = field(default_factory=dict)


def read_document(path: Path) -> Document:
    """Return the mapping in a YAML file.

    Raises UserError if the file cannot be read, is not valid YAML in UTF-8, is not one mapping, or has a value on which
    YAML readers disagree.
    """
    where = str(path)
    return parse_document(_read_text(path, where), where)


def parse_document(text: str, where: str) -> Document:
    """Return the mapping in YAML text; ``where`` names it in messages. Raises UserError as `read_document` does."""
    node = _compose(text, where)
    if node is None:
        raise UserError("the file is empty; a study is a mapping with study, datasets and methods", where=where)
    builder = _Builder(where)
    values = builder.build(node, ())
    if not isinstance(values, dict):
        raise UserError(
            "a study is a mapping with study, datasets and methods", where=f"{where}:1", found=UnquotedText(_kind(node))
        )
    return Document(where, text, values, builder.lines)


def read_value(text: str, where: str) -> Any:
    """Return the value of YAML text outside a file, such as an option of a command. Raises UserError."""
    node = _compose(text, where)
    return None if node is None else _Builder(where).build(node, ())


def _compose(text: str, where: str) -> yaml.Node | None:
    try:
        return _Loader(text, where).get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = " ".join(part for part in (error.context, error.problem) if part)
        raise UserError(f"not valid YAML: {problem}", where=f"{where}:{mark.line + 1}" if mark else where) from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:  # escapes such as "\U7fffffff" raise ValueError
        raise UserError(f"not valid YAML: {' '.join(str(error).split())}", where=where) from None


def _read_text(path: Path, where: str) -> str:
    try:
        if path.is_dir():
            raise UserError("is a folder, not a study file", where=where)
        data = read_bytes(path, 2 * MAX_BYTES) if path.stat().st_size <= MAX_BYTES else None
    except FileNotFoundError:
        raise UserError("no such study file", where=where) from None
    except (OSError, ValueError) as error:
        raise UserError(f"cannot be read: {error}", where=where) from None
    if data is None or len(data) > MAX_BYTES:
        raise UserError(f"too large: a study has at most {MAX_BYTES // 1024} KiB", where=where)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise UserError("not a text file in UTF-8", where=f"{where}:{line}") from None


class _Loader(yaml.SafeLoader):
    """Composes the nodes of one document; refuses tags, further documents and nesting that is too deep to process."""

    def __init__(self, text: str, where: str) -> None:
        super().__init__(text)
        self._where, self._depth = where, 0

    def get_single_node(self) -> yaml.Node | None:
        self.get_event()  # the start of the stream
        node = None if self.check_event(yaml.StreamEndEvent) else self.compose_document()
        if not self.check_event(yaml.StreamEndEvent):
            self._refuse("more than one YAML document (---); a study is one document")
        return node

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event = self.peek_event()
        tag = getattr(event, "tag", None)
        if tag is not None:
            self._refuse("YAML tags are not used in studies", shown(tag))
        nested = isinstance(event, yaml.CollectionStartEvent)
        self._depth += nested
        if self._depth > MAX_DEPTH:
            self._refuse(f"nested more than {MAX_DEPTH} levels deep")
        node = super().compose_node(parent, index)
        self._depth -= nested
        return node

    def _refuse(self, problem: str, found: Any = None) -> NoReturn:
        raise UserError(problem, where=f"{self._where}:{_line(self.peek_event())}", found=found)


class _Builder:
    """Converts nodes to plain values and records the line of every place."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.lines: dict[Place, int] = {}
        self._open: set[int] = set()
        self._count = 0

    def build(self, node: yaml.Node, path: Place) -> Any:
        self._count += 1
        if self._count > MAX_VALUES:
            self._refuse(node, path, f"more than {MAX_VALUES} values after its aliases are expanded")
        self.lines.setdefault(path, _line(node))
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        if id(node) in self._open:
            self._refuse(node, path, "an alias inside the value that it refers to")
        if len(path) > MAX_DEPTH:
            self._refuse(node, path, f"nested more than {MAX_DEPTH} levels deep after its aliases are expanded")
        self._open.add(id(node))
        value = self._mapping(node, path) if isinstance(node, yaml.MappingNode) else self._sequence(node, path)
        self._open.discard(id(node))
        return value

    def _sequence(self, node: yaml.Node, path: Place) -> list[Any]:
        return [self.build(item, (*path, i)) for i, item in enumerate(node.value)]

    def _mapping(self, node: yaml.Node, path: Place) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                self._refuse(key_node, path, "a key must be text", UnquotedText(_kind(key_node)))
            key = self._scalar(key_node, path)
            if not isinstance(key, str):
                self._refuse(key_node, path, "a key must be text: quote it", key_node.value)
            if key in values:
                self._refuse(key_node, (*path, key), "the key occurs twice")
            self.lines[*path, key] = _line(key_node)
            values[key] = self.build(value_node, (*path, key))
        return values

    def _scalar(self, node: yaml.ScalarNode, path: Place) -> Any:
        text = node.value
        bad = _CONTROL.search(text)
        if bad:
            self._refuse(node, path, f"the character U+{ord(bad.group()):04X} is not allowed in a study")
        if node.style is not None:
            return text
        if text in _NULL:
            return None
        if text in _BOOLEAN:
            return _BOOLEAN[text]
        for pattern, advice in _TRAPS:
            if pattern.fullmatch(text):
                self._refuse(node, path, advice, text)
        return self._number(node, path)

    def _number(self, node: yaml.ScalarNode, path: Place) -> str | int | float:
        text = node.value
        if _INTEGER.fullmatch(text) or _HEXADECIMAL.fullmatch(text):
            if len(text) > _MAX_DIGITS:
                self._refuse(node, path, "the number has too many digits")
            return int(text, 16 if "x" in text else 10)
        if not _FLOAT.fullmatch(text):
            return str(text)
        value = float(text)
        if not math.isfinite(value):
            self._refuse(node, path, "not a finite number", text)
        return value

    def _refuse(self, node: yaml.Node, path: Place, problem: str, found: str | None = None) -> NoReturn:
        raise UserError(
            problem,
            where=f"{self.where}:{_line(node)}",
            field=shorten(spell(path)) or None,
            found=shown(found),
        )


def _line(part: yaml.Event | yaml.Node) -> int:
    return part.start_mark.line + 1 if part.start_mark else 1


def _kind(node: yaml.Node) -> str:
    if isinstance(node, yaml.MappingNode):
        return "a mapping"
    return "a list" if isinstance(node, yaml.SequenceNode) else "a single value"
