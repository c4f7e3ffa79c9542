"""Chains and diagnostics in the notes of a cell; scores do not depend on them."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from ep_bench import methods
from ep_bench.results import curves, store
from ep_bench.runner import fit_notes
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
    return fit_notes.of(SimpleNamespace(**found), np.zeros((2, 1)))


def test_a_cell_keeps_chains_and_diagnostics(tmp_path: Path) -> None:
    record = run_cell(jobs_of(tmp_path, "{use: walk, chains: 3, draws: 1000}")[0])
    assert record.row["status"] == "ok"
    level = record.notes["chains"]["level"]
    assert level["draws"] == 1000
    assert [len(values) for values in level["values"]] == [fit_notes.DRAWS] * 3
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
    monkeypatch.setattr(fit_notes, "of", lambda *_: {})
    plain = run_cell(job)
    assert "chains" in whole.notes
    assert "chains" not in plain.notes
    assert {k: v for k, v in whole.row.items() if k not in MEASURED_COLUMNS} == {
        k: v for k, v in plain.row.items() if k not in MEASURED_COLUMNS
    }


def test_other_methods_have_no_chains(tmp_path: Path) -> None:
    record = run_cell(jobs_of(tmp_path, "{use: pbp, epochs: 1}")[0])
    assert record.row["status"] == "ok"
    assert not record.notes.keys() & {"chains", "diagnostics"}


def test_curves_json_combines_the_cells(tmp_path: Path) -> None:
    jobs = jobs_of(tmp_path, "walk")
    records = [run_cell(job) for job in jobs]
    for record in records:
        store.write_record(tmp_path / "r", record)
    found = curves.collect(tmp_path / "r", [record.row for record in records])
    (entry,), (traces,) = found.chains, found.traces
    assert entry["splits"] == traces["splits"] == [0, 1]
    assert entry["chains"].keys() == {"level", "log_joint"}
    assert entry["diagnostics"]["r_hat_level"] == [r.notes["diagnostics"]["r_hat_level"] for r in records]


def test_rounded_values_resolve_the_chain_with_the_smallest_range() -> None:
    rng = np.random.default_rng(0)
    table = -123_456.0 + np.array([[1.0], [100.0]]) * rng.normal(size=(2, 200))
    values = kept(chains_={"log_joint": table})["chains"]["log_joint"]["values"]
    error = np.abs(np.array(values) - table)
    assert error.max() <= 1e-3 * np.ptp(table[0])
    assert len(json.dumps(values)) < 14 * 400  # unrounded values have about 20 digits each


@pytest.mark.parametrize("value", [0.0, 2.5, 1e-300, -1e300])
def test_constant_chains(value: float) -> None:
    values = kept(chains_={"a": np.full((2, 5), value)})["chains"]["a"]["values"]
    np.testing.assert_allclose(values, value)


def test_non_finite_values_become_none() -> None:
    table = np.array([[1.0, np.nan, 3.0], [np.inf, -np.inf, 2.0]])
    found = kept(chains_={"a": table, "undefined": np.full((2, 3), np.nan)}, diagnostics_={"r": np.inf, "n": 3})
    assert found["chains"]["a"]["values"] == [[1.0, None, 3.0], [None, None, 2.0]]
    assert found["chains"]["undefined"]["values"] == [[None] * 3] * 2
    assert found["diagnostics"] == {"r": None, "n": 3.0}


def test_other_shapes_are_ignored() -> None:
    assert kept(chains_=[1, 2], diagnostics_=None) == {}
    found = kept(
        chains_={"flat": np.arange(3.0), "empty": np.ones((2, 0)), "words": [["a"]], "good": np.ones((1, 2))},
        diagnostics_={"word": "none", "array": np.ones(3), "good": 1},
    )
    assert found["chains"].keys() == {"good"}
    assert found["diagnostics"] == {"word": None, "array": None, "good": 1.0}
