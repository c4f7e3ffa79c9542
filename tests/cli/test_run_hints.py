"""The last lines of a run that is not complete."""

from __future__ import annotations

from pathlib import Path

import pytest

from ep_bench.results import cell_files
from tests.commands import cells_in_this_process, ep_bench

STUDY = """
study: hints
datasets: [cubic]
splits: {scheme: standard, count: 2}
methods: [{use: "./bad.py:Bad", label: bad}]
"""
BAD = """
class Bad:
    def fit(self, X, y):
        raise RuntimeError("no luck")
    def predict(self, X):
        return X[:, 0]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "my study.yaml").write_text(STUDY)
    (tmp_path / "bad.py").write_text(BAD)
    return tmp_path


def test_a_run_that_stopped_at_a_failure_can_be_continued(folder: Path) -> None:
    with cells_in_this_process():
        first = ep_bench("run", "my study.yaml", "--fail-fast", cwd=folder)
        assert "1 cells run; " in first.stdout
        assert first.stderr.endswith("stopped: one of the cells is not ok; the same command continues\n")
        assert "--retry-failed" not in first.stderr
        second = ep_bench("run", "my study.yaml", "--fail-fast", cwd=folder)
    assert "1 cells run; 2 failed" in second.stdout


def test_a_run_reads_finished_cell_files_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with cells_in_this_process():
        ep_bench("run", "my study.yaml", cwd=folder)
    read, opened = cell_files.read_record, []
    monkeypatch.setattr(cell_files, "read_record", lambda path: opened.append(path) or read(path))
    assert "0 cells run; 2 failed" in ep_bench("run", "my study.yaml", cwd=folder).stdout
    assert len(opened) == 2
