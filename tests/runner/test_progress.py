"""Progress messages of a run."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from ep_bench.runner import progress
from ep_bench.runner.progress import Progress
from ep_bench.types import Cell, Record


def record(key: str, status: str = "ok") -> Record:
    row = {"method": "m", "dataset": "d", "split": 1, "status": status, "reason": "why" * (status != "ok"), "cell": key}
    return Record(row, {})


def job(key: str, split: int) -> Any:
    return SimpleNamespace(cell=Cell("m", "d", split, 0, {}, key))


def lines_of(monkeypatch: pytest.MonkeyPatch, *, quiet: bool = False) -> list[str]:
    monkeypatch.setattr(progress, "_PLAIN_INTERVAL", 0.0)
    out = io.StringIO()
    with Progress({"a": 1.0, "b": 1.0, "c": 2.0}, 2, quiet=quiet, stream=out) as shown:
        for key, status in (("a", "ok"), ("b", "failed"), ("c", "ok")):
            shown.finished(record(key, status))
    return out.getvalue().splitlines()


def test_progress_is_shown_to_a_person_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert not progress.is_interactive()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=None)))
    assert progress.is_interactive()


def test_plain_lines_count_and_name_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = lines_of(monkeypatch)
    assert lines[0].startswith("1/3 cells, 0 not ok, 2 running, ")
    assert lines[1] == "failed: m on d, split 1: why"
    assert lines[2].startswith("2/3 cells, 1 not ok, 1 running")
    assert lines[3].startswith("3/3 cells, 1 not ok, 0 running, 0 s left")


def test_plain_lines_name_the_cells_that_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_PLAIN_INTERVAL", 0.0)
    out = io.StringIO()
    with Progress({"a": 90.0, "b": 1000.0, "c": 110.0}, 2, stream=out) as shown:
        for key, split in (("a", 0), ("b", 7)):
            shown.started(job(key, split))
        shown.finished(record("a"))
    first, second = out.getvalue().splitlines()
    assert (
        first == "0/3 cells, 0 not ok, 2 running, about 10 min 00 s left by the plan: m on d, split 0; m on d, split 7"
    )
    assert second.endswith("left by the plan; last: m on d, split 1; running: m on d, split 7")


def test_quiet_prints_cells_that_are_not_ok_only(monkeypatch: pytest.MonkeyPatch) -> None:
    assert lines_of(monkeypatch, quiet=True) == ["failed: m on d, split 1: why"]


def test_lines_name_the_seed_of_a_study_with_several(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_PLAIN_INTERVAL", 0.0)
    out = io.StringIO()
    with Progress({"a": 1.0}, 1, seeds=True, stream=out) as shown:
        shown.started(SimpleNamespace(cell=Cell("m", "d", 1, 0, {"seed": 2}, "a")))  # type: ignore[arg-type]
        shown.finished(Record(record("a").row, {"seed": 2}))
    first, second = out.getvalue().splitlines()
    assert first.endswith(": m on d, split 1, seed 2")
    assert second.endswith("last: m on d, split 1, seed 2")
