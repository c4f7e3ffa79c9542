"""Studies from text and from mappings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from ep_bench.errors import UnquotedText, UserError
from ep_bench.spec.models import Study
from ep_bench.spec.read import check_document
from ep_bench.spec.yaml_source import parse_document


def parse_study(text: str, path: Path) -> Study:
    """Return the study in YAML text that belongs, or will belong, to a file; raises as `read_study` does."""
    return check_document(parse_document(text, str(path)), path)


def read_mapping(values: Mapping[str, Any]) -> Study:
    """Return the study in a mapping with the keys of a study file; its paths are relative to the current folder.

    The mapping is checked as its YAML text is. Lines in messages are those of that text. Raises UserError as
    `read_study` does, and if a value cannot be written as YAML.
    """
    text = ""
    for key, value in values.items():
        try:
            text += yaml.safe_dump({key: value}, sort_keys=False, allow_unicode=True)
        except yaml.YAMLError as error:
            wrong = error.args[-1]
            found = f"class {wrong.__name__}" if isinstance(wrong, type) else f"object of type {type(wrong).__name__}"
            raise UserError(
                "has a value that is not plain text, number, list or mapping",
                where="study",
                field=str(key),
                found=UnquotedText(found),
                allowed="for a class 'package.module:Class' or './file.py:Class', for an array a list, for a number or "
                "text of NumPy float(...), int(...) or str(...)",
            ) from None
    return parse_study(text, Path("study"))
