"""Studies from text and from mappings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from ep_bench.errors import UnquotedText, UserError, spell
from ep_bench.spec.models import Catalogue, Study
from ep_bench.spec.read import check_document
from ep_bench.spec.yaml_source import parse_document


def parse_study(text: str, path: Path, catalogue: Catalogue) -> Study:
    """Return the study in YAML text that belongs, or will belong, to a file; raises as `read_study` does."""
    return check_document(parse_document(text, str(path)), path, catalogue)


def read_mapping(values: Mapping[str, Any], catalogue: Catalogue) -> Study:
    """Return the study in a mapping with the keys of a study file; its paths are relative to the current folder.

    The mapping is checked as its YAML text is. Lines in messages are those of that text. Raises UserError as
    `read_study` does, and if a value cannot be written as YAML.
    """
    try:
        text = yaml.safe_dump(dict(values), sort_keys=False, allow_unicode=True)
    except yaml.YAMLError:
        raise _not_plain(values) from None
    return parse_study(text, Path("study"), catalogue)


def _not_plain(values: Mapping[str, Any]) -> UserError:
    """Return the error for the first value that cannot be written as YAML."""
    entries = _entries(dict(values), ())
    path, value = next(((path, value) for path, value in entries if not _is_plain(value)), ((), None))
    found = f"class {value.__name__}" if isinstance(value, type) else f"object of type {type(value).__name__}"
    return UserError(
        "is not plain text, number, list or mapping",
        where="study",
        field=spell(path) or None,
        found=UnquotedText(found),
        allowed="for a class 'package.module:Class' or './file.py:Class', for an array a list, for a NumPy number or "
        "text float(...), int(...) or str(...)",
    )


def _entries(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Yield the keys and single values of nested mappings and lists, with their places."""
    if type(value) is dict:  # YAML has no other mappings, such as an OrderedDict
        for key, entry in value.items():
            yield (*path, str(key)), key
            yield from _entries(entry, (*path, str(key)))
    elif type(value) in {list, tuple}:
        for index, entry in enumerate(value):
            yield from _entries(entry, (*path, index))
    else:
        yield path, value


def _is_plain(value: Any) -> bool:
    try:
        yaml.safe_dump(value)
    except yaml.YAMLError:
        return False
    return True
