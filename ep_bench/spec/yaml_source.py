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
from ep_bench.spec.problems import Place, shorten, shown

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLEAN = {word: value for value in (True, False) for word in (str(value), str(value).lower(), str(value).upper())}
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]{0,308})")  # more digits are a float, which is not finite
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_OTHER_NUMBER = re.compile(r"[-+]?0[0-9o][0-9]*")  # numbers of YAML 1.2 that PyYAML reads as text
_DIFFER = "YAML readers differ on its meaning: quote it to mean text, or write true, false or a finite decimal number"


@dataclass
class Document:
    """A study file: its text, its values, and the line (from 1) of each place in it."""

    where: str
    text: str
    values: dict[str, Any]
    lines: dict[Place, int] = field(default_factory=dict)


def read_document(path: Path) -> Document:
    """Return the mapping in a YAML file.

    Raises UserError if the file is not valid YAML in UTF-8, is not one mapping, or has a value on which YAML readers
    disagree.
    """
    where = str(path)
    return parse_document(_read_text(path, where), where)


def parse_document(text: str, where: str) -> Document:
    """Return the mapping in YAML text; ``where`` names it in messages. Raises UserError as `read_document` does."""
    builder = _Builder(where)
    values = builder.read(text)
    if values is None and () not in builder.lines:
        raise UserError("the file is empty; a study is a mapping with study, datasets and methods", where=where)
    if not isinstance(values, dict):
        found = UnquotedText("a list" if isinstance(values, list) else "a single value")
        raise UserError(
            "a study is a mapping with study, datasets and methods", where=f"{where}:{builder.lines[()]}", found=found
        )
    return Document(where, text, values, builder.lines)


def read_value(text: str, where: str) -> Any:
    """Return the value of YAML text outside a file, such as an option of a command. Raises UserError."""
    return _Builder(where).read(text)


def _read_text(path: Path, where: str) -> str:
    data = path.read_bytes()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise UserError("not a text file in UTF-8", where=f"{where}:{line}") from None


class _Loader(yaml.SafeLoader):
    """Composes the nodes of one document without tags."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event = self.peek_event()
        if getattr(event, "tag", None) is not None:
            raise yaml.MarkedYAMLError(problem="tags are not used in studies", problem_mark=event.start_mark)
        return super().compose_node(parent, index)


class _Builder:
    """Converts nodes to plain values and records the line of every place."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.lines: dict[Place, int] = {}

    def read(self, text: str) -> Any:
        """Return the value of YAML text, None if it has none."""
        try:
            node = yaml.compose(text, Loader=_Loader)
            return None if node is None else self.build(node, ())
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
            parts = [getattr(error, "context", None), getattr(error, "problem", None)] if mark else [str(error)]
            where = f"{self.where}:{mark.line + 1}" if mark else self.where
            raise UserError(f"not valid YAML: {' '.join(' '.join(filter(None, parts)).split())}", where=where) from None

    def build(self, node: yaml.Node, path: Place) -> Any:
        self.lines.setdefault(path, _line(node))
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        return [self.build(item, (*path, i)) for i, item in enumerate(node.value)]

    def _mapping(self, node: yaml.Node, path: Place) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = self._scalar(key_node, path) if isinstance(key_node, yaml.ScalarNode) else None
            if not isinstance(key, str):
                self._refuse(key_node, path, "a key must be text: quote it")
            if key in values:
                self._refuse(key_node, (*path, key), "the key occurs twice")
            self.lines[*path, key] = _line(key_node)
            values[key] = self.build(value_node, (*path, key))
        return values

    def _scalar(self, node: yaml.ScalarNode, path: Place) -> Any:
        text = node.value
        if node.style is not None:
            return text
        if text in _NULL:
            return None
        if text in _BOOLEAN:
            return _BOOLEAN[text]
        if _INTEGER.fullmatch(text):
            return int(text)
        if _FLOAT.fullmatch(text) and math.isfinite(float(text)):
            return float(text)
        is_text = node.tag.endswith(":str") and not _OTHER_NUMBER.fullmatch(text) and not _FLOAT.fullmatch(text)
        return text if is_text else self._refuse(node, path, _DIFFER, text)

    def _refuse(self, node: yaml.Node, path: Place, problem: str, found: str | None = None) -> NoReturn:
        raise UserError(
            problem,
            where=f"{self.where}:{_line(node)}",
            field=shorten(spell(path)) or None,
            found=shown(found),
        )


def _line(node: yaml.Node) -> int:
    return node.start_mark.line + 1 if node.start_mark else 1
