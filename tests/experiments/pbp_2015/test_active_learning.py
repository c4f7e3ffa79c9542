"""Active learning: divisions, acquisitions, targets of the pool, failures, figures."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from scipy import integrate, stats

from ep_bench import data, experiments, methods, published
from ep_bench.errors import UserError
from ep_bench.estimator import Estimator
from ep_bench.experiments import figures
from ep_bench.experiments.as_cells import as_cells
from ep_bench.experiments.pbp_2015.active_learning import acquisition, compute, figure, paired
from ep_bench.experiments.study_folder import relative_to
from ep_bench.predictions import PointPrediction, Predictive
from ep_bench.report import merge
from ep_bench.report.context import ReportContext
from ep_bench.report.sections import all_sections
from ep_bench.results import store
from tests.commands import ep_bench
from tests.experiments.support import run_experiment

ROOT = Path(__file__).parents[3]
RIDGE = {"use": "sklearn.linear_model:BayesianRidge", "standardize": True}
SMALL: dict[str, Any] = {
    "datasets": ["yacht"],
    "train": 8,
    "test": 20,
    "additions": 3,
    "repetitions": 3,
    "methods": [RIDGE | {"label": "ridge-A"}, RIDGE | {"label": "ridge-R", "acquisition": "random"}],
}
RECORDER = """
import json
from pathlib import Path
import numpy as np

class Recorder:
    def fit(self, X, y):
        with Path(__file__).with_name("calls.txt").open("a") as out:
            out.write(json.dumps([X.tolist(), y.tolist()]) + "\\n")
        self.mean = float(np.mean(y))
        return self
    def predict(self, X, return_std=False):
        return np.full(len(X), self.mean), 1.0 + np.abs(X[:, 0])
"""


def mixture_entropy(weights: list[float], means: list[float], variances: list[float]) -> float:
    def density(y: float) -> float:
        return float(np.dot(weights, stats.norm.pdf(y, means, np.sqrt(variances))))

    return float(integrate.quad(lambda y: -density(y) * np.log(density(y)), -15, 15, limit=500, points=means)[0])


def test_mutual_information_is_that_of_quadrature() -> None:
    weights, means, variances = [0.3, 0.7], [0.0, 1.0], [0.1, 2.0]
    one = Predictive(weights, np.array([means]).T, np.array([variances]).T)
    within = np.dot(weights, 0.5 * np.log(2 * np.pi * np.e * np.array(variances)))
    assert acquisition.mutual_information(one) == pytest.approx(
        [mixture_entropy(weights, means, variances) - within], abs=1e-8
    )


def test_mutual_information_of_very_different_widths_is_that_of_quadrature() -> None:
    wide_and_narrow = Predictive([0.5, 0.5], [[0.0], [0.0]], [[1.0], [1e-6]])
    assert acquisition.mutual_information(wide_and_narrow) == pytest.approx([0.6846], abs=1e-4)
    two_narrow = Predictive([0.5, 0.5], [[-5.0], [5.0]], [[1e-6], [1e-6]])
    assert acquisition.mutual_information(two_narrow) == pytest.approx([np.log(2.0)], abs=1e-4)


def test_acquisitions_need_what_they_use() -> None:
    gaussian = Predictive.gaussian([0.0, 0.0], [1.0, 2.0])
    assert acquisition.values_of("variance", gaussian).tolist() == [1.0, 2.0]
    points = PointPrediction(np.zeros(2))
    with pytest.raises(ValueError, match="no variance; use random"):
        acquisition.values_of("variance", points)
    for without_components in (points, gaussian):
        with pytest.raises(ValueError, match="mixture of at least two Gaussians; use variance"):
            acquisition.values_of("mutual_information", without_components)


@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_mutual_information_is_refused_for_mixtures_over_the_noise_scale(shift: float) -> None:
    means = np.tile(shift + np.linspace(0.0, 1.0, 4), (3, 1))
    noise_scales = Predictive([0.2, 0.3, 0.5], means, np.array([[0.1], [1.0], [9.0]]) * np.ones(4))
    with pytest.raises(acquisition.UnsuitableAcquisitionError, match="differ in the variance only; use variance"):
        acquisition.values_of("mutual_information", noise_scales)
    means[1, 2] += 0.1
    different = Predictive(noise_scales.weights, means, noise_scales.variances)
    assert np.isfinite(acquisition.values_of("mutual_information", different)).all()


@pytest.mark.parametrize("variance", [0.0, np.inf])
def test_mutual_information_needs_finite_variances_above_0(variance: float) -> None:
    mixture = Predictive([0.5, 0.5], [[0.0, 0.0], [1.0, 1.0]], [[1.0, variance], [1.0, 1.0]])
    with pytest.raises(ValueError, match="finite variances above 0"):
        acquisition.values_of("mutual_information", mixture)


@pytest.mark.filterwarnings("ignore:ep_nn|gp_t")
@pytest.mark.parametrize("use", ["ep_nn", "gp_t"])
def test_predictions_of_methods_with_noise_scales_have_equal_means(use: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 2))
    options = {**methods.get(use).warmup, **({"nu": 4.0} if use == "gp_t" else {})}
    predicted = Estimator(use, **options, random_state=0).fit(X, X[:, 0]).predict_dist(X)
    with pytest.raises(acquisition.UnsuitableAcquisitionError, match="differ in the variance only"):
        acquisition.values_of("mutual_information", predicted)


def test_a_division_has_every_point_once() -> None:
    found = compute.divide(50, compute.Sizes(5, 10, 3), np.random.default_rng(0))
    assert [len(part) for part in found] == [5, 10, 35]
    assert sorted(np.concatenate(found)) == list(range(50))


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_experiment("active_learning", SMALL, 0, tmp_path_factory.mktemp("r") / "learn", "learn")


def test_accepted_differences_are_stored_and_replaced(tmp_path: Path) -> None:
    accept = [{"method": "ridge-A", "dataset": "yacht", "metric": "rmse", "reason": "Known."}]
    options = SMALL | {"repetitions": 1, "additions": 1}
    folder = run_experiment("active_learning", options, 0, tmp_path / "s", "s", accept=accept)
    lock = store.read_lock(folder) or {}
    assert lock["accept"] == accept
    run_experiment("active_learning", options, 0, folder, "s")
    assert store.read_lock(folder) == {key: value for key, value in lock.items() if key != "accept"}


def test_both_rules_start_from_the_same_fit(done: Path) -> None:
    with np.load(done / experiments.ARRAYS) as arrays:
        rmse = arrays["rmse"]
    assert rmse.shape == (1, 2, 3, 4)
    assert np.isfinite(rmse).all()
    np.testing.assert_array_equal(rmse[0, 0, :, 0], rmse[0, 1, :, 0])
    assert not np.array_equal(rmse[0, 0, :, 1:], rmse[0, 1, :, 1:])


def test_the_summary_has_the_documented_columns(done: Path) -> None:
    rows = (done / experiments.SUMMARY).read_text().splitlines()
    documented = "dataset,method,additions,rmse,rmse_stderr,ll,ll_stderr,repetitions"
    assert rows[0].split(",")[:8] == documented.split(",")
    assert len(rows) == 1 + 2 * 4


def test_the_report_has_scores_and_the_paired_test(done: Path) -> None:
    section = figures.section(store.read_study(done))
    assert len(section.pictures) == 2
    final, paired = section.tables
    assert len(final.rows) == 2
    assert [row[:3] for row in final.rows] == [["yacht", "ridge-A", "variance"], ["yacht", "ridge-R", "random"]]
    assert paired.rows[0][:3] == ["yacht", "ridge-A", "ridge-R"]
    with np.load(done / experiments.ARRAYS) as arrays:
        last = arrays["rmse"][0, :, :, -1]
    assert paired.rows[0][5]["value"] == pytest.approx(np.mean(last[0] - last[1]))
    assert paired.rows[0][6]["value"] == pytest.approx(stats.wilcoxon(last[0] - last[1]).pvalue)


def test_every_two_acquisitions_of_a_method_are_compared_and_look_different() -> None:
    rules = ("random", "mutual_information", "variance")
    entries = [{"use": use, "acquisition": rule} for use in ("pbp", "hmc") for rule in rules]
    assert list(figure._pairs(entries)) == [(1, 0), (1, 2), (2, 0), (4, 3), (4, 5), (5, 3)]
    lines = [figure._line(figure.Look("blue", "o", rule)) for rule in rules]
    assert len({(str(line["linestyle"]), line["fillstyle"], line["markerfacecolor"]) for line in lines}) == 3


def test_rounding_errors_are_no_differences() -> None:
    first = np.array([1.0, 2.0, 3.0, 4.0, np.nan, 5.0])
    found = paired.compare(first, first + np.array([1e-12, 0.0, -0.5, 0.1, 0.0, -1e-13]))
    assert found == paired.PairedComparison(pytest.approx(0.08), found.stderr, 1.0, 5, 2)
    equal = paired.compare(first, first * (1.0 - 1e-12))
    assert (equal.mean, equal.p, equal.differing) == (0.0, 1.0, 0)
    assert paired.compare(np.array([np.nan]), np.array([1.0])).repetitions == 0


def test_the_test_counts_the_differing_repetitions_only() -> None:
    first = np.arange(1.0, 9.0)
    second = first + np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.0, 1e-13, 0.0])
    arrays = {"labels": ["a", "b"], "datasets": ["yacht"], "rmse": np.array([[first, second]])[..., None]}
    found = figure._comparison(arrays, [(0, 1)])
    assert [one["value"] for one in found.rows[0][-3:]] == [stats.wilcoxon(second[:5] - first[:5]).pvalue, 8, 5]
    arrays["rmse"] = np.array([[first, first + 1e-12]])[..., None]
    assert [one["text"] for one in figure._comparison(arrays, [(0, 1)]).rows[0][5:]] == ["0", "1.0000", "8", "0"]


def test_methods_share_the_divisions_and_the_random_order(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "own.py").write_text(RECORDER)
    methods = [{"use": f"./{name}/own.py:Recorder", "label": name, "acquisition": "random"} for name in ("one", "two")]
    with relative_to(tmp_path):
        run_experiment("active_learning", SMALL | {"methods": methods}, 0, tmp_path / "r", "r")
    first, second = ((tmp_path / name / "calls.txt").read_text().splitlines() for name in ("one", "two"))
    assert first == second
    starts = [json.loads(line)[0] for line in first[:: SMALL["additions"] + 1]]
    assert len(starts) == 3
    assert starts[0] != starts[1]


def stored(folder: Path, final: list[float], **options: Any) -> store.StudyResults:
    """Return the results of PBP-A and PBP-R on boston with forty repetitions around two means."""
    rng = np.random.default_rng(0)
    noise = rng.permutation(np.linspace(-1.0, 1.0, 40))[:, None] * np.ones(10)
    rmse = np.array([[mean + noise for mean in final]])
    folder.mkdir()
    labels = ["PBP-A", "PBP-R"]
    names = {"datasets": ["boston"], "labels": labels, "acquisitions": ["variance", "random"]}
    np.savez(folder / experiments.ARRAYS, rmse=rmse, ll=-rmse, **{key: np.array(value) for key, value in names.items()})
    rules = zip(labels, names["acquisitions"], strict=True)
    methods = [{"use": "pbp", "label": label, "acquisition": rule, "hidden": [10]} for label, rule in rules]
    given = {"train": 20, "test": 100, "additions": 9, "methods": methods} | options
    lock = {"study": "s", "experiment": "active_learning", "options": given}
    return store.StudyResults(folder, "s", lock, [])


def test_final_scores_are_compared_with_table_2(tmp_path: Path) -> None:
    study = stored(tmp_path / "s", [5.5, 9.0])
    study.lock["accept"] = [{"method": "PBP-R", "dataset": "boston", "metric": "rmse", "reason": "Known."}]
    found = published.check(pd.DataFrame(as_cells(study)[0]), as_cells(study)[1])
    assert found["method"].tolist() == ["PBP-A", "PBP-R"]
    assert found["verdict"].tolist() == ["reproduced", "worse"]
    assert found["published_mean"].tolist() == [5.480, 6.716]
    assert found["mean"].tolist() == pytest.approx([5.5, 9.0])
    assert found["n_splits"].tolist() == [40, 40]
    assert found["reason"].tolist() == ["", "accepted: Known."]


def test_the_report_has_the_verdicts(tmp_path: Path) -> None:
    study = stored(tmp_path / "s", [5.5, 9.0])
    store.write_lock(study.folder, study.lock | {"files": store.file_checksums(study.folder, [experiments.ARRAYS])})
    found = {section.id: section for section in all_sections(ReportContext(merge.merge([study.folder])))}
    assert list(found) == ["experiment-s", "published", "run"]
    assert found["published"].lines[0] == "2 numbers: 1 worse, 1 reproduced."


def test_a_failed_repetition_leaves_the_comparison_incomplete(tmp_path: Path) -> None:
    study = stored(tmp_path / "s", [5.5, np.nan])
    found = published.check(pd.DataFrame(as_cells(study)[0]), as_cells(study)[1])
    assert found["verdict"].tolist() == ["reproduced", "incomplete"]


@pytest.mark.parametrize(
    "change", [{"use": "hmc"}, {"acquisition": "random"}, {"hidden": [50]}, {"epochs": 20}, {"label": "other"}]
)
def test_entries_of_other_methods_or_options_are_not_compared(tmp_path: Path, change: dict[str, Any]) -> None:
    study = stored(tmp_path / "s", [5.5, 9.0])
    study.lock["options"]["methods"][0].update(change)
    assert list(figure.columns(figures.read(study))) == ["PBP-R"]
    found = published.check(pd.DataFrame(as_cells(study)[0]), as_cells(study)[1])
    assert found["method"].tolist() == ["PBP-R"]


@pytest.mark.parametrize(("additions", "drawn"), [(9, True), (4, False)])
def test_printed_means_are_drawn_for_the_sizes_of_the_paper_only(tmp_path: Path, additions: int, drawn: bool) -> None:
    results = figures.read(stored(tmp_path / "s", [5.5, 9.0], additions=additions))
    assert figure._printed(results, "boston") == ({0: 5.48, 1: 6.716} if drawn else {})
    assert ("table 2" in figure.draw(results)[0].caption) == drawn


def test_only_targets_of_training_points_reach_a_method(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(RECORDER)
    options = SMALL | {"repetitions": 1, "methods": [{"use": "./own.py:Recorder", "label": "own"}]}
    with relative_to(tmp_path):
        run_experiment("active_learning", options, 0, tmp_path / "r", "r")
    calls = [json.loads(line) for line in (tmp_path / "calls.txt").read_text().splitlines()]
    assert [len(y) for _, y in calls] == [8, 9, 10, 11]
    yacht = data.load_dataset("yacht")
    known = {tuple(x): y for x, y in zip(yacht.X.tolist(), yacht.y.tolist(), strict=True)}
    assert [known[tuple(x)] for x in calls[-1][0]] == calls[-1][1]
    added = [X[-1] for X, _ in calls[1:]]
    assert abs(added[0][0]) == np.abs(yacht.X[:, 0]).max()  # the acquisition of this class is its standard deviation
    for (before, _), (after, _) in itertools.pairwise(calls):
        assert after[:-1] == before


def test_own_classes_are_relative_to_the_study(tmp_path: Path) -> None:
    """Also in other processes, from a folder that is not the current one."""
    (tmp_path / "own.py").write_text(RECORDER)
    methods = [{"use": "./own.py:Recorder", "label": name, "acquisition": name} for name in ("variance", "random")]
    study = {"study": "own", "experiment": "active_learning", "options": SMALL | {"methods": methods}}
    (tmp_path / "own.yaml").write_text(yaml.safe_dump(study))
    done = ep_bench("run", str(tmp_path / "own.yaml"), "--results", str(tmp_path / "results"), "--jobs", "2")
    assert (done.returncode, "6 parts run; 6 ok" in done.stdout) == (0, True), done.stderr
    assert len((tmp_path / "calls.txt").read_text().splitlines()) == 6 * (SMALL["additions"] + 1)


def test_the_plan_has_the_number_of_parts_and_an_estimate(tmp_path: Path) -> None:
    methods = [{"use": "pbp", "label": "a"}, RIDGE | {"label": "b"}]
    options = SMALL | {"methods": methods, "repetitions": 2}
    study = {"study": "s", "experiment": "active_learning", "options": options}
    (tmp_path / "s.yaml").write_text(yaml.safe_dump(study))
    printed = ep_bench("plan", str(tmp_path / "s.yaml"), "--results", str(tmp_path)).stdout
    assert "4 parts, 4 to run; less than 1 s with --jobs 1, and 2 parts of unknown time" in printed


FAILING = """
import sys

class Exits:
    def fit(self, X, y):
        if len(y) > 9:
            sys.exit("no licence")
        return self
    def predict(self, X, return_std=False):
        return X[:, 0], 1.0 + X[:, 0] ** 2
"""


def test_a_fit_that_exits_is_a_failed_part_with_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "exits.py").write_text(FAILING)
    options = SMALL | {"methods": [{"use": "./exits.py:Exits", "label": "exits"}]}
    with relative_to(tmp_path):
        folder = run_experiment("active_learning", options, 0, tmp_path / "r", "r")
    with np.load(folder / experiments.ARRAYS) as arrays:
        failures, tracebacks, rmse = arrays["failures"], arrays["tracebacks"], arrays["rmse"]
    assert len(failures) == len(tracebacks) == 3
    assert failures[0] == "exits on yacht, repetition 0, fit 2: SystemExit: no licence (exits.py:7)"
    assert 'sys.exit("no licence")' in tracebacks[0]
    assert np.isfinite(rmse[..., :2]).all()
    assert np.isnan(rmse[..., 2:]).all()
    assert "0" in (folder / experiments.SUMMARY).read_text().splitlines()[1].split(",")
    assert figures.section(store.read_study(folder)).tables[-1].folded == "3 failures"


@pytest.mark.parametrize(
    "entry",
    [
        {"use": "sklearn.neighbors:KNeighborsRegressor", "label": "points", "acquisition": "variance"},
        RIDGE | {"label": "points", "acquisition": "mutual_information"},
        {"use": "gp", "label": "points", "acquisition": "mutual_information"},
    ],
)
def test_an_unsuitable_acquisition_stops_the_experiment(tmp_path: Path, entry: dict[str, Any]) -> None:
    for _ in range(2):
        with pytest.raises(UserError, match=r"^points on yacht: .*; use (random|variance); the experiment stops"):
            run_experiment("active_learning", SMALL | {"methods": [entry]}, 0, tmp_path / "r", "r")
        assert len(store.stamps(tmp_path / "r")) == 1
    random = entry | {"acquisition": "random"}
    run_experiment("active_learning", SMALL | {"methods": [random]}, 0, tmp_path / "r", "r")
    assert store.read_intact(tmp_path / "r").lock["experiment"] == "active_learning"


def test_a_misspelt_key_of_an_entry_has_the_nearest_key_and_its_line(tmp_path: Path) -> None:
    study = "study: s\nexperiment: active_learning\noptions:\n  datasets: [yacht]\n  methods:\n"
    entries = [f'    - {{use: "{use}", label: {use[0]}, aquisition: random}}\n' for use in ("pbp", RIDGE["use"])]
    (tmp_path / "s.yaml").write_text(study + "".join(entries))
    refused = ep_bench("plan", str(tmp_path / "s.yaml"))
    assert refused.returncode == 2
    for line in (6, 7):
        assert f"s.yaml:{line}: options.methods[{line - 6}]" in refused.stderr
    assert refused.stderr.count("did you mean 'acquisition'?") == 2
    assert "allowed: acquisition, epochs, hidden, label, noise_variance, prior_variance, use" in refused.stderr
