"""The table of finished cells that ``status`` prints."""

from __future__ import annotations

from types import SimpleNamespace

from ep_bench.cli.output.study import _coverage, _not_ok_lines
from tests.commands import lines_of


def test_missing_cells_and_those_left_out_differ() -> None:
    planned = [{"method": m, "dataset": d} for m, d in [("one", "big"), ("one", "small"), ("two", "small")] * 2]
    rows = [{"method": "one", "dataset": "small", "status": status} for status in ("ok", "ok", "failed")]
    left_out = [{"method": "two", "dataset": "big", "reason": "weeks"}]
    study = SimpleNamespace(lock={"left_out": left_out})
    lines = lines_of([_coverage(study, rows, planned)])  # type: ignore[arg-type]
    found = [line.split("  ") for line in lines]
    assert [[word.strip() for word in line if word] for line in found] == [
        ["ok cells", "big", "small"],
        ["one", "0/2", "2"],
        ["two", "left out", "0/2"],
    ]


def test_cells_that_are_not_ok_have_their_seed_if_the_study_has_several() -> None:
    row = {"method": "m", "dataset": "d", "split": 3, "cell": "a", "status": "failed", "reason": "why"}
    assert list(_not_ok_lines([row], {"a": 2})) == ["failed: m on d, split 3, seed 2: why"]
    assert list(_not_ok_lines([row])) == ["failed: m on d, split 3: why"]
