"""The registry of experiments, and what every record must have."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ep_bench import experiments
from ep_bench.errors import UserError
from ep_bench.experiments import figures
from ep_bench.experiments.gp_t_2011.conflict_tilted import compute as tilted
from ep_bench.experiments.gp_t_2011.conflict_tilted import figure as tilted_figure
from ep_bench.experiments.storage import ExperimentSetup
from ep_bench.results import store
from tests.commands import ep_bench
from tests.experiments.support import run_experiment

SETUP = ExperimentSetup("conflict_tilted", {}, 3)


@pytest.mark.parametrize("name", experiments.REGISTRY)
def test_a_record_is_complete(name: str) -> None:
    experiment = experiments.get(name)
    assert experiment.name == name
    assert experiment.caption
    assert experiment.config.model_config["frozen"]
    assert all(map(callable, (experiment.compute, experiment.draw, experiment.tables)))


def test_an_experiment_may_have_no_summary(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tilted, "compute", lambda *_: ({"x": np.zeros(2)}, []))
    folder = run_experiment("conflict_tilted", {}, 3, tmp_path / "none", "none")
    assert SETUP.is_computed(folder)
    monkeypatch.setattr(tilted_figure, "draw", lambda _: [])
    assert not figures.section(store.read_study(folder)).tables


def test_altered_files_are_recognised(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tilted, "compute", lambda *_: ({"x": np.zeros(2)}, [{"mean": 0.25}]))
    folder = run_experiment("conflict_tilted", {}, 3, tmp_path / "none", "none")
    assert len(store.read_intact(folder).lock["files"]) == 2
    for name in experiments.FILES:
        whole = (folder / name).read_bytes()
        (folder / name).write_bytes(whole[:-1])
        assert not SETUP.is_computed(folder)
        with pytest.raises(UserError, match=f"1 file was altered or removed after the run: {name}: the file does not"):
            store.read_intact(folder)
        assert f"altered or removed after the run: {name}" in ep_bench("status", folder).stdout
        (folder / name).write_bytes(whole)
    (folder / experiments.ARRAYS).unlink()
    with pytest.raises(UserError, match=f"{experiments.ARRAYS}: the file is absent"):
        store.read_intact(folder)
    run_experiment("conflict_tilted", {}, 3, folder, "none")
    assert store.read_intact(folder).finished.suspect == []


def test_figures_load_no_numba_and_no_scikit_learn() -> None:
    code = (
        "import sys, json; from ep_bench import experiments; from ep_bench.experiments import figures;"
        "[(e.draw, e.tables) for e in map(experiments.get, experiments.REGISTRY)];"
        "print(json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {name.split(".")[0] for name in json.loads(done.stdout)} & {"numba", "sklearn", "optuna", "joblib"}


def test_the_folder_of_a_study_with_cells_is_refused(tmp_path: Path) -> None:
    store.write_lock(tmp_path, {"study": "s", "groups": []})
    before = (tmp_path / store.LOCK).read_bytes()
    with pytest.raises(UserError, match=f"{tmp_path}: is the folder of a study with cells; choose another name"):
        run_experiment("conflict_tilted", {}, 3, tmp_path, "s")
    assert (tmp_path / store.LOCK).read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == [store.LOCK]
