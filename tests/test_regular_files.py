"""Named pipes, devices, loops of links and deep nesting are errors, at once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ep_bench import regular_files
from ep_bench.report.score_table_formats import plain_markdown
from ep_bench.results.forms import RowScores, problem
from ep_bench.results.spreadsheets import harmless, original


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "device").symlink_to("/dev/zero")
    for name in ("pipe", "loop", "device", ".", "absent"):
        with pytest.raises(OSError):
            regular_files.read_bytes(tmp_path / name)
    (tmp_path / "large").write_bytes(bytes(11))
    assert len(regular_files.read_bytes(tmp_path / "large", 11)) == 11
    with pytest.raises(ValueError, match="more than 10 bytes"):
        regular_files.read_bytes(tmp_path / "large", 10)


@pytest.mark.parametrize("text", ["[" * 100_000, '"\\ud800"', "{", "1" * 5000])
def test_json_that_no_reader_can_use(text: str) -> None:
    with pytest.raises(ValueError):
        regular_files.parse_json(text)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"format": 1, "cells": {"a": {"ll": [1, 2.0]}}, "other": None}, ""),
        ({"format": 1, "cells": {"a": {"ll": [1, None]}}}, "cells.a.ll[1]: Input should be a valid number, found None"),
        ({"format": 1, "cells": {"a": {"ll": [True]}}}, "cells.a.ll[0]: Input should be a valid number, found True"),
        ({"format": "1", "cells": {}}, "format: Input should be a valid integer, found '1'"),
        ({"format": 1}, "cells is missing"),
        ([], "the content: Input should be a valid dictionary or instance of RowScores, found []"),
    ],
)
def test_forms_name_the_place_of_a_difference(value: object, message: str) -> None:
    assert problem(value, RowScores) == message


@pytest.mark.parametrize("text", ["=1+1", "+x", "-PBP", "@x", "'=x", "''", "plain", "", "-", "'"])
def test_a_formula_becomes_a_text_and_is_read_back(text: str) -> None:
    assert not harmless(text).startswith(tuple("=+-@"))
    assert original(harmless(text)) == text
    assert harmless("-1.5") == "-1.5"
    assert harmless(-1.5) == -1.5


def test_markdown_has_no_markup_of_labels() -> None:
    assert plain_markdown("<img src=x> & &lt; [x](y)") == "&lt;img src=x> & &amp;lt; [x]\\(y)"
