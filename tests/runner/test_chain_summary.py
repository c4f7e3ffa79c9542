"""Diagnostics of a sampler in the notes of a cell; scores do not depend on them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from ep_bench import methods
from ep_bench.results import curves, store
from ep_bench.runner import method_process
from ep_bench.runner.cell import run_cell
from ep_bench.runner.jobs import Job
from ep_bench.types import MEASURED_COLUMNS
from tests.runner import support


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(methods.REGISTRY, "walk", "tests.sampler")


def jobs_of(folder: Path, method: str) -> list[Job]:
    text = f"study: s\ndatasets: [diabetes]\nsplits: {{scheme: standard, count: 2}}\nmethods: [{method}]\n"
    return support.jobs_of(folder, text)


def kept(**found: object) -> dict[str, object]:
    return method_process.diagnostics(SimpleNamespace(**found), np.zeros((2, 1)))


def test_a_cell_keeps_diagnostics(tmp_path: Path) -> None:
    record = run_cell(jobs_of(tmp_path, "{use: walk, chains: 3, draws: 1000}")[0])
    assert record.row["status"] == "ok"
    assert record.notes["diagnostics"].keys() == {"r_hat_level", "divergences", "ess_bulk_level"}
    assert record.notes["diagnostics"]["ess_bulk_level"] is None  # it was NaN
    assert record.notes["diagnostics"]["divergences"] == 0.0
    store.write_record(tmp_path, record)
    back = store.read_record(tmp_path / store.CELLS / f"{record.key}.json")
    assert back is not None
    assert back.notes == record.notes


def test_scores_do_not_depend_on_the_summary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = jobs_of(tmp_path, "walk")[0]
    whole = run_cell(job)
    monkeypatch.setattr(method_process, "diagnostics", lambda *_: {})
    plain = run_cell(job)
    assert "diagnostics" in whole.notes
    assert "diagnostics" not in plain.notes
    assert {k: v for k, v in whole.row.items() if k not in MEASURED_COLUMNS} == {
        k: v for k, v in plain.row.items() if k not in MEASURED_COLUMNS
    }


def test_curves_json_combines_the_cells(tmp_path: Path) -> None:
    jobs = jobs_of(tmp_path, "walk")
    records = [run_cell(job) for job in jobs]
    for record in records:
        store.write_record(tmp_path / "r", record)
    found = curves.collect(tmp_path / "r", [record.row for record in records])
    assert found.traces[0]["splits"] == [0, 1]
    assert found.diagnostics == {record.key: record.notes["diagnostics"] for record in records}


def test_what_is_no_number_becomes_none() -> None:
    assert kept() == kept(diagnostics_=None) == kept(diagnostics_={}) == {}
    found = kept(diagnostics_={"word": "none", "array": np.ones(3), "infinite": np.inf, "good": 1})
    assert found == {"diagnostics": {"word": None, "array": None, "infinite": None, "good": 1.0}}
