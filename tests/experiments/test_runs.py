"""Parts of an experiment run as cells do: they are stored, selected, limited, retried, locked and sent to a cluster."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from ep_bench import experiments
from ep_bench.experiments import storage
from ep_bench.experiments.storage import SUPERSEDED, failures
from ep_bench.results import store
from ep_bench.types import Record
from tests.commands import ep_bench

OWN = """
import time
from pathlib import Path

FOLDER = Path(__file__).parent

class Quick:
    def fit(self, X, y):
        with (FOLDER / "fits").open("a") as file:
            file.write("fit\\n")
        return self
    def predict(self, X, return_std=False):
        return X[:, 0], 1.0 + X[:, 0] ** 2

class Fails(Quick):
    def fit(self, X, y):
        super().fit(X, y)
        if not (FOLDER / "ready").exists():
            raise RuntimeError("not ready")

class Waits(Quick):
    def fit(self, X, y):
        super().fit(X, y)
        while not (FOLDER / "ready").exists():
            time.sleep(0.05)
"""
REPETITIONS = 3


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes a study, with a part per class and repetition, and two fits per part."""
    (tmp_path / "own.py").write_text(OWN)

    def written(*classes: str, **limits: float) -> Path:
        methods = [{"use": f"./own.py:{name}", "label": name} for name in classes]
        sizes = {"train": 8, "test": 20, "additions": 1, "repetitions": REPETITIONS}
        options = {"datasets": ["yacht"], "methods": methods, **sizes}
        study = {"study": "s", "experiment": "active_learning", "options": options}
        (tmp_path / "s.yaml").write_text(yaml.safe_dump(study | ({"limits": limits} if limits else {})))
        return tmp_path / "s.yaml"

    return written


def run(study: Path, *more: str) -> subprocess.CompletedProcess[str]:
    return ep_bench("run", study, "--results", study.parent / "results", *more)


def fits(study: Path) -> int:
    return len((study.parent / "fits").read_text().splitlines())


def folder_of(study: Path) -> Path:
    return study.parent / "results" / "s"


@pytest.mark.usefixtures("in_process")
def test_an_interrupted_run_continues_with_the_stored_parts(
    write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    study, written = write("Quick"), store.write_record

    def write_then_interrupt(folder: Path, record: Record) -> None:
        written(folder, record)
        if len(store.stamps(folder)) == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(store, "write_record", write_then_interrupt)
        assert run(study).returncode == 130
    status = ep_bench("status", folder_of(study))
    assert (status.returncode, fits(study)) == (3, 4)
    assert "s: experiment, not finished: 2 parts ok, 0 not ok; `ep-bench run` continues" in status.stdout
    assert "3 parts, 1 to run" in ep_bench("plan", study, "--results", study.parent / "results").stdout
    again = run(study)
    assert (again.returncode, fits(study)) == (0, 6)
    assert "s: 1 parts run; 3 ok" in again.stdout
    assert ep_bench("status", folder_of(study)).stdout == "s: experiment active_learning: done\n"
    before = {path: path.read_bytes() for path in folder_of(study).rglob("*") if path.is_file()}
    assert "s: 0 parts run; 3 ok" in run(study).stdout
    assert {path: path.read_bytes() for path in folder_of(study).rglob("*") if path.is_file()} == before


@pytest.mark.usefixtures("in_process")
def test_a_study_with_more_methods_computes_the_parts_of_these_only(write: Callable[..., Path]) -> None:
    assert run(write("Quick")).returncode == 0
    more = run(study := write("Quick", "Fails"))
    assert "s: 3 parts run; 3 ok, 3 failed" in more.stdout
    assert fits(study) == 6 + 3
    (study.parent / "own.py").write_text(OWN + "\n")  # another version of both methods
    assert "s: 6 parts run" in run(study).stdout


@pytest.mark.usefixtures("in_process")
def test_selected_parts_are_run_and_the_results_are_those_of_all(write: Callable[..., Path]) -> None:
    study = write("Quick")
    some = run(study, "--select", "split=[02]")
    assert (some.returncode, fits(study)) == (0, 4)
    assert "s: 2 parts run; 2 ok" in some.stdout
    assert "next: " not in some.stdout
    assert not (folder_of(study) / experiments.SUMMARY).exists()
    assert "no cell matches" in run(study, "--select", "split=7").stderr
    last = run(study, "--select", "split=1")
    assert "next: ep-bench report" in last.stdout
    with np.load(folder_of(study) / experiments.ARRAYS) as arrays:
        assert arrays["rmse"].shape == (1, 1, REPETITIONS, 2)
        assert np.isfinite(arrays["rmse"]).all()


@pytest.mark.usefixtures("in_process")
def test_failed_parts_are_kept_and_run_again_on_request(write: Callable[..., Path]) -> None:
    study = write("Fails")
    stopped = run(study, "--fail-fast")
    assert (stopped.returncode, fits(study)) == (3, 1)
    assert "stopped: one of the parts is not ok" in stopped.stderr
    failed = run(study)
    assert (failed.returncode, fits(study)) == (3, 3)
    assert "s: 2 parts run; 3 failed" in failed.stdout
    assert "--retry-failed runs them again" in failed.stderr
    assert "s: 0 parts run; 3 failed" in run(study).stdout
    status = ep_bench("status", folder_of(study))
    assert status.returncode == 3
    assert status.stdout.startswith("s: experiment active_learning: done, 3 parts failed\n")
    assert "Fails on yacht, repetition 0, fit 0: RuntimeError: not ready (own.py:19)" in status.stdout
    (study.parent / "ready").touch()
    again = run(study, "--retry-failed")
    assert (again.returncode, fits(study)) == (0, 9)
    assert "s: 3 parts run; 3 ok" in again.stdout
    assert failures(folder_of(study)) == []


@pytest.mark.usefixtures("in_process")
def test_failed_parts_of_another_machine_are_explained(write: Callable[..., Path]) -> None:
    """A fresh clone has no stored parts."""
    study = write("Fails")
    run(study)
    for path in (folder_of(study) / store.CELLS).glob("*.json"):
        path.unlink()
    assert "s: 0 parts run; 3 failed" in run(study).stdout
    refused = run(study, "--retry-failed")
    assert refused.returncode == 2
    assert "the parts of this experiment are not stored" in refused.stderr


@pytest.mark.usefixtures("in_process")
def test_results_of_other_options_are_kept(write: Callable[..., Path]) -> None:
    study = write("Quick")
    assert run(study).stderr.count("other options") == 0
    kept = {name: (folder_of(study) / name).read_bytes() for name in (*experiments.FILES, store.LOCK)}
    study.write_text(study.read_text() + "seed: 1\n")
    some = run(study, "--select", "split=0")
    assert "has results of other options or versions; a run keeps them in" in some.stderr
    assert "next: " not in some.stdout
    assert some.stdout.endswith(f"-> {folder_of(study)}\n")
    assert "s: experiment, not finished" in ep_bench("status", folder_of(study)).stdout
    assert "other options" not in run(study).stderr
    assert run(study).stderr == ""
    (place,) = (folder_of(study) / SUPERSEDED).iterdir()
    assert {path.name: path.read_bytes() for path in place.iterdir()} == kept
    assert (folder_of(study) / experiments.ARRAYS).read_bytes() != kept[experiments.ARRAYS]


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize(("module", "name"), [(storage, "csv_text"), (store, "write_lock")])
def test_results_that_were_not_written_as_a_whole_are_none(
    write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, module: Any, name: str
) -> None:
    study = write("Quick")

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, name, interrupt)
        assert run(study).returncode == 130
    assert "s: experiment, not finished: 3 parts ok" in ep_bench("status", folder_of(study)).stdout
    assert "summary.csv" in run(study).stdout
    assert (ep_bench("status", folder_of(study)).returncode, fits(study)) == (0, 6)


@pytest.mark.slow
def test_a_part_that_never_ends_has_a_limit_and_the_others_their_results(write: Callable[..., Path]) -> None:
    study = write("Quick", "Waits", seconds=1.0)
    limited = run(study, "--jobs", "2")
    assert limited.returncode == 3
    assert "3 ok, 3 timeout" in limited.stdout or "3 timeout, 3 ok" in limited.stdout
    with np.load(folder_of(study) / experiments.ARRAYS) as arrays:
        finite = np.isfinite(arrays["rmse"][0]).all(axis=(1, 2))
    assert finite.tolist() == [True, False]
    assert failures(folder_of(study))[0] == "Waits on yacht, repetition 0, fit 0: over the limit of 1 seconds"


@pytest.mark.slow
def test_parts_run_on_a_cluster(write: Callable[..., Path]) -> None:
    pytest.importorskip("distributed")
    study = write("Quick")
    found = run(study, "--backend", "dask")
    assert found.returncode == 0, found.stderr
    assert "s: 3 parts run; 3 ok" in found.stdout
