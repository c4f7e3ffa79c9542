"""Figures of an earlier report are taken over if their inputs, and the code that draws, are the same.

``drawn.json`` next to the figures lists the figures of each call of a drawing function: a hash of its arguments, and
the name, caption, description and checksum of each figure. It has a hash of the code too. After any change of code,
arguments or SVG file, the figure is drawn again. The names of all figures and tables of the report are there too, so
that those that a later report does not have are removed.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from ep_bench.plotting.page import Picture

FILE = "drawn.json"
_OF_REPORT = re.compile(r"figures/[\w-][^/\\]*\.svg|tables/[\w-][^/\\]*\.(csv|md|tex)")  # files that a report writes
CODE = ("plotting", "report", "experiments", "convergence.py")  # of ep_bench; decides how figures look
Drawn = TypeVar("Drawn", bound="Picture | Sequence[Picture]")
Entry = Mapping[str, str]  # name, caption, alt, svg (its checksum)


class _Hash(Protocol):
    def update(self, data: bytes, /) -> None: ...
    def hexdigest(self) -> str: ...


class StoredFigures:
    """The figures in a folder by the hash of the call that drew them, and those of the current report."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.code = code_hash()
        self.new: dict[str, list[Entry]] = {}
        self.known, self.written = self._read()

    def _read(self) -> tuple[dict[str, list[Entry]], frozenset[str]]:
        """Return the figures by call, and the names of all figures and tables of the earlier report."""
        try:
            stored = json.loads((self.folder / FILE).read_text(encoding="utf-8"))
            written = frozenset(name for name in map(str, stored.get("written", ())) if _OF_REPORT.fullmatch(name))
            return dict(stored["figures"]) if stored["code"] == self.code else {}, written
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            return {}, frozenset()  # no file, or one of another form: all figures are drawn

    def find(self, key: str) -> list[Picture] | None:
        """Return the figures of a call, None if some of them are not there as they were written."""
        pictures = []
        for entry in self.known.get(key, ()):
            try:
                svg = (self.folder / f"{entry['name']}.svg").read_text(encoding="utf-8")
            except OSError:
                return None
            if _checksum(svg) != entry["svg"]:
                return None
            pictures.append(Picture(entry["name"], entry["caption"], svg, None, entry["alt"]))
        return pictures or None

    def add(self, key: str, pictures: Sequence[Picture]) -> None:
        """Note the figures of a call."""
        self.new[key] = [
            {"name": one.name, "caption": one.caption, "alt": one.alt, "svg": _checksum(one.svg)} for one in pictures
        ]

    def text(self, written: Iterable[str]) -> str:
        """Return the content of ``drawn.json`` for the current report, whose figures and tables are ``written``."""
        content = {"code": self.code, "figures": self.new, "written": sorted(written)}
        return json.dumps(content, indent=0, sort_keys=True, ensure_ascii=False) + "\n"


_CURRENT: ContextVar[StoredFigures | None] = ContextVar("stored_figures", default=None)


@contextmanager
def taking_over(stored: StoredFigures) -> Iterator[None]:
    """Take over unchanged figures within the context."""
    token = _CURRENT.set(stored)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def drawn_if_changed(function: Callable[..., Drawn]) -> Callable[..., Drawn]:
    """Decorate a drawing function whose figures depend on its arguments only."""

    @functools.wraps(function)
    def found_or_drawn(*args: Any, **options: Any) -> Drawn:
        stored = _CURRENT.get()
        if stored is None:
            return function(*args, **options)
        key = input_hash((function.__module__, function.__qualname__, args, options))
        known = stored.find(key)
        if known is not None:
            stored.new[key] = stored.known[key]
            return known[0] if stored.known[key] and _is_single(function) else known  # type: ignore[return-value]
        result = function(*args, **options)
        stored.add(key, [result] if isinstance(result, Picture) else result)
        return result

    return found_or_drawn


def _is_single(function: Callable[..., Any]) -> bool:
    return function.__annotations__.get("return") in {"Picture", Picture}


def input_hash(value: Any) -> str:
    """Return a hash of nested mappings, sequences, records, arrays and tables.

    Raises TypeError for an object of another kind, whose content is unknown.
    """
    found = hashlib.sha256()
    _feed(found, value)
    return found.hexdigest()[:32]


def _feed(found: _Hash, value: Any) -> None:
    if isinstance(value, np.ndarray):
        found.update(f"{value.dtype.str}{value.shape}".encode())
        if value.dtype == object:
            _feed(found, value.tolist())
        else:
            found.update(np.ascontiguousarray(value).tobytes())
    elif value is None or isinstance(value, str | bytes | bool | int | float | np.generic | Enum | Path):
        found.update(f"{type(value).__name__}:{value!r};".encode())
    elif dataclasses.is_dataclass(value) or hasattr(value, "_fields"):
        names = getattr(value, "_fields", None) or [field.name for field in dataclasses.fields(value)]
        found.update(type(value).__name__.encode())
        _feed(found, {name: getattr(value, name) for name in names})
    elif isinstance(value, Mapping):
        _feed(found, list(value.items()))
    elif isinstance(value, Sequence | AbstractSet):
        found.update(f"{type(value).__name__}{len(value)}(".encode())
        for one in sorted(value, key=repr) if isinstance(value, AbstractSet) else value:
            _feed(found, one)
    elif hasattr(value, "to_numpy"):  # tables, columns and indices of pandas
        found.update(type(value).__name__.encode())
        for part in (value.to_numpy(), *(getattr(value, name).to_numpy() for name in _labels(value))):
            _feed(found, part)
    else:
        raise TypeError(f"no hash of {type(value).__name__} {value!r}")


def _labels(table: Any) -> list[str]:
    return [name for name in ("index", "columns") if hasattr(table, name)]


@functools.cache
def code_hash() -> str:
    """Return a hash of the code that decides how figures look, and of the version of matplotlib."""
    import matplotlib as mpl

    root = Path(__file__).parents[1]
    found = hashlib.sha256(mpl.__version__.encode())
    for name in CODE:
        paths = sorted((root / name).rglob("*.py")) if (root / name).is_dir() else [root / name]
        for path in paths:
            found.update(path.read_bytes())
    return found.hexdigest()[:32]


def _checksum(svg: str) -> str:
    return hashlib.sha256(svg.encode()).hexdigest()[:16]
