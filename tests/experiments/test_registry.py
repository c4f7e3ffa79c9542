"""The registry of experiments, and what every record must have."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from docs.site.committed_results import committed_folders
from ep_bench import experiments
from ep_bench.errors import UserError
from ep_bench.experiments import figures
from ep_bench.experiments.ep_nn_2014 import network_fits
from ep_bench.experiments.gp_t_2011.conflict_tilted import compute as tilted
from ep_bench.experiments.gp_t_2011.conflict_tilted import figure as tilted_figure
from ep_bench.experiments.storage import ExperimentSetup
from ep_bench.results import store
from tests.commands import ep_bench
from tests.experiments.support import run_experiment

COMMITTED = [folder for folder in committed_folders() if "experiment" in (store.read_lock(folder) or {})]
SETUP = ExperimentSetup("conflict_tilted", {}, 3)


@pytest.mark.parametrize("name", experiments.REGISTRY)
def test_a_record_is_complete(name: str) -> None:
    experiment = experiments.get(name)
    assert experiment.name == name
    assert experiment.caption
    assert experiment.config.model_config["frozen"]
    assert callable(experiment.optional("compute") or experiment.optional("combine"))
    assert callable(experiment._load("figure").draw)


@pytest.mark.parametrize("folder", COMMITTED, ids=lambda folder: folder.name)
def test_the_options_of_a_committed_study_are_valid_and_its_figures_have_no_overlapping_texts(
    folder: Path, no_overlap: Callable[[Figure], None]
) -> None:
    study = store.read_study(folder)
    assert experiments.problems(study.lock["experiment"], study.lock["options"]) == []
    section = figures.section(study)
    assert section.pictures
    assert section.tables
    for picture in section.pictures:
        no_overlap(picture.figure)


def test_every_experiment_has_committed_results() -> None:
    assert {store.read_study(folder).lock["experiment"] for folder in COMMITTED} == experiments.REGISTRY.keys()


INVALID = [
    ("additive_effects", {"half_widht": 5}, ("half_widht",), "half_width"),
    ("alpha_linear", {"alphas": [0.5, 2.0]}, ("alphas", 1), "below 2"),
    ("alpha_linear", {"elipses": [1.0]}, ("elipses",), "ellipses"),
    ("ard_overfitting", {"row": 5}, ("row",), "rows"),
    ("ard_overfitting", {"methods": [{"use": "gp", "kernal": "nn"}]}, ("methods", 0), "did you mean 'kernel'"),
    ("calibration", {"replication": 3}, ("replication",), "replications"),
    ("calibration", {"cases": [{"label": "a", "activation": "relo"}]}, ("cases", 0, "activation"), "relu"),
    ("calibration", {"cases": [{"label": "a", "prior": "ard", "prior_scales": "layer"}]}, ("cases", 0), "gaussian"),
    ("conflict_convergence", {"schemes": [{"label": "a", "stages": []}]}, ("schemes", 0, "stages"), ""),
    ("conflict_evidence", {"fractions": [0.0]}, ("fractions", 0), "above 0"),
    ("conflict_posteriors", {"methods": [{"use": "gp_tt"}]}, ("methods", 0), "did you mean 'gp_t'"),
    ("conflict_tilted", {"fractions": [1.5]}, ("fractions", 0), "1"),
    ("cubic_toy", {"poins": 3}, ("poins",), "points"),
    ("discontinuity", {"point": 500}, ("point",), "points"),
    ("fixed_predictions", {"dataset": "bostn"}, ("dataset",), "boston"),
    ("fixed_times", {"datasets": [{"name": "bostn"}]}, ("datasets", 0, "name"), "boston"),
    ("fixed_times", {"methods": [{"use": "gp", "tune": {}}, {"use": "gp_t"}]}, ("methods", 0), "without tune"),
    ("mountain_car", {"row": 5}, ("row",), "rows"),
    ("network_convergence", {"sweeps": [20, 10]}, ("sweeps",), "must increase"),
    ("network_convergence", {"dataset": "bosten"}, ("dataset",), "boston"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "options", "path", "words"), INVALID)
def test_an_invalid_option_is_reported_with_its_location(
    name: str, options: dict[str, Any], path: tuple[str | int, ...], words: str
) -> None:
    (problem,) = experiments.problems(name, options)
    assert problem.path == path
    assert words in str(problem.error())


@pytest.mark.parametrize("name", ["additive_effects", "ard_overfitting", "discontinuity"])
def test_fits_that_fail_are_counted_with_their_reason(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = network_fits.NetworkFit(None, 0.1, "no fixed point")
    monkeypatch.setattr(
        import_module(f"ep_bench.experiments.ep_nn_2014.{name}.compute"), "fitted", lambda *_, **__: failed
    )
    experiment = experiments.get(name)
    arrays, rows = experiment.compute(experiment.config(methods=[{"use": "gp"}], draws=2), 0)
    assert (rows[-1]["failed"], rows[-1]["reason"]) == (2, "no fixed point")
    assert all(
        count == 0 for key, count in rows[-1].items() if key.startswith(("lowest", "least_", "converged", "pruned"))
    )
    scores = {
        key: value for key, value in rows[-1].items() if key in {"rmse", "width", "width_median", "share", "ll_median"}
    }
    assert scores
    assert not any(scores.values())
    assert np.isnan(arrays["mean_0"]).all()


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
        "[e._load('figure') for e in map(experiments.get, experiments.REGISTRY)];"
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
