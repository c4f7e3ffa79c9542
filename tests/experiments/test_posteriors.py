"""Reference posteriors and the distances from them, from the study to the report."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import ttest_1samp

import ep_bench
from ep_bench.errors import UserError
from ep_bench.experiments import figures, problems
from ep_bench.experiments.posteriors.bands import compute as bands
from ep_bench.experiments.posteriors.fidelity import pairs
from ep_bench.experiments.posteriors.fidelity.compute import Approximation, Config, calls, combine
from ep_bench.experiments.posteriors.reference import compute
from ep_bench.experiments.record import ExperimentResults
from ep_bench.results import store
from ep_bench.results.references import STEPS
from tests.experiments.support import run_experiment

ROOT = Path(__file__).parents[2]
KNOWN = {"use": "hmc", "dataset": "cubic", "noise_variance": 0.05, "prior_variance": 0.5}
SHORT = {"warmup": 60, "samples": 80, "steps": 20}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with short reference posteriors of the cubic toy data, and the distances of two methods from them."""
    folder = tmp_path_factory.mktemp("results")
    entries = [{**KNOWN, **SHORT, "label": "relu", "hidden": [5]},
               {**KNOWN, **SHORT, "label": "probit", "hidden": [3], "activation": "probit"}]  # fmt: skip
    options = {"posteriors": entries, "chains": 2, "draws": 100}
    run_experiment("reference", options, 0, folder / "reference-cubic", "reference-cubic")
    methods = [
        {"use": "pbp", "label": "PBP", "hidden": [5], "epochs": 3},
        {"use": "laplace", "label": "LA, full", "network": "probit", "activation": "probit", "hidden": [3]},
        {"use": "dropout", "label": "dropout", "hidden": [5], "epochs": 2, "passes": 20},
    ]  # fmt: skip
    fidelity = {"datasets": ["cubic"], "methods": methods, "results": str(folder)}
    run_experiment("fidelity", fidelity, 0, folder / "fidelity", "fidelity")
    return folder


def test_a_reference_is_loaded_with_its_diagnostics(results: Path) -> None:
    found = ep_bench.load_reference("cubic", results=results)
    assert found.draws.shape == (2, 50, 2)
    assert found.pooled.shape == (100, 2)
    assert found.r_hat.shape == found.ess_bulk.shape == (2,)
    assert (found.noise_variance, found.prior_variance) == (0.05, 0.5)
    y = ep_bench.load_dataset("cubic").y
    assert found.noise_deviation == pytest.approx(0.05**0.5 * y[ep_bench.standard_split(len(y), 0)[0]].std())
    assert np.abs(found.pooled.mean(axis=0)).max() < 1.5 * np.abs(y).max()
    assert found.provenance["environment"]
    assert repr(found).startswith("<ReferencePosterior of cubic, split 0: 2 chains of 50 draws at 2 test inputs, R-hat")


def test_stored_draws_are_every_second_one_up_to_rounding(tmp_path: Path) -> None:
    options = {"posteriors": [{**KNOWN, **SHORT, "label": "relu", "hidden": [5]}], "chains": 2, "draws": 100}
    for stored in (100, 50):
        folder = tmp_path / str(stored) / "reference-cubic"
        run_experiment("reference", {**options, "stored": stored}, 0, folder, "reference-cubic")
    every, second = (ep_bench.load_reference("cubic", results=tmp_path / str(stored)) for stored in (100, 50))
    np.testing.assert_array_equal(every.r_hat, second.r_hat)
    difference = np.abs(every.draws[:, ::2] - second.draws) / every.pooled.std(axis=0)
    assert 1e-6 < difference.max() < 1.2 / STEPS
    chain = compute.decoded(compute.part(*compute.calls(compute.Config.model_validate(options), 0)[0]))
    assert (np.abs(every.draws[0] - chain) / every.pooled.std(axis=0)).max() < 0.501 / STEPS


def test_a_missing_reference_is_reported_with_those_that_exist(results: Path) -> None:
    with pytest.raises(UserError, match=r"no such reference posterior.*relu/cubic/1.*probit/cubic/0"):
        ep_bench.load_reference("cubic", 1, results=results)


def test_a_data_set_without_references_is_reported_with_those_that_have_some(results: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no reference posteriors; found 'cubi'; allowed: cubic; did you mean 'cubic'"):
        ep_bench.load_reference("cubi", results=results)
    with pytest.raises(UserError, match="no folder reference-<data set>; give the folder `results`"):
        ep_bench.load_reference("cubic", results=tmp_path)


def test_distances_of_a_users_draws_are_those_of_the_study(results: Path) -> None:
    reference = ep_bench.load_reference("cubic", results=results)
    cubic = ep_bench.load_dataset("cubic")
    train, test = ep_bench.standard_split(len(cubic.y), 0)
    known = {"noise_variance": 0.05, "prior_variance": 0.5}
    model = ep_bench.Estimator("pbp", hidden=[5], epochs=3, random_state=0, **known).fit(cubic.X[train], cubic.y[train])
    prediction = model.predict_dist(cubic.X[test])
    found = ep_bench.posterior_distances(prediction, reference)
    rows = {row["method"]: row for row in figures.read(store.read_study(results / "fidelity")).summary}
    for name in ("mean_error", "wasserstein_2", "kl", "pair_kl"):
        assert found[name].mean() == pytest.approx(float(rows["PBP"][name]), rel=1e-4)
    deviation = np.sqrt(prediction.std() ** 2 - reference.noise_deviation**2)
    draws = prediction.mean() + deviation * np.random.default_rng(0).normal(size=(20_000, len(test)))
    np.testing.assert_allclose(
        ep_bench.posterior_distances(draws, reference)["wasserstein_2"], found["wasserstein_2"], rtol=0.03
    )
    noise = np.full(2, reference.noise_deviation**2)
    wrong = {r"N = 2 test inputs; found \(2, 20000\)": draws.T, r"found \(2,\)": draws[0], r"found \(0, 2\)": draws[:0],
             "not finite": np.where(draws > draws.max() - 1e-9, np.nan, draws),
             "found tuple": (draws.mean(axis=0), draws.std(axis=0)),
             "below the known noise": ep_bench.Predictive.gaussian(draws[0], 0.5 * noise)}  # fmt: skip
    for message, one in wrong.items():
        with pytest.raises(ValueError, match=message):
            ep_bench.posterior_distances(one, reference)


def test_the_example_of_the_page_runs_as_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "posteriors.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```py\n(.*?)```", page, flags=re.DOTALL)
    monkeypatch.chdir(ROOT)
    names: dict[str, Any] = {}
    exec(example, names)  # noqa: S102
    reference, found = names["reference"], names["found"]
    assert names["target"].scale_[0] * reference.noise_variance**0.5 == pytest.approx(reference.noise_deviation)
    assert found["wasserstein_2"].shape == (reference.draws.shape[2],)
    assert 0.1 < found["std_ratio"].mean() < 1.0 < found["mean_error"].mean() < 10.0  # too simple a model


def test_a_method_with_another_network_is_a_failure(results: Path, tmp_path: Path) -> None:
    methods = [{"use": "pbp", "label": "wide", "hidden": [6], "epochs": 3},
               {"use": "laplace", "label": "rectified", "network": "probit", "hidden": [3]},
               {"use": "dropout", "label": "dropout", "hidden": [6], "epochs": 2, "passes": 20}]  # fmt: skip
    fidelity = {"datasets": ["cubic"], "methods": methods, "results": str(results)}
    run_experiment("fidelity", fidelity, 0, tmp_path / "fidelity", "fidelity")
    rows = {row["method"]: row["failure"] for row in figures.read(store.read_study(tmp_path / "fidelity")).summary}
    assert "are ('relu', [6]), those of the posterior ('relu', [5])" in rows["wide"]
    assert "are ('relu', [3]), those of the posterior ('probit', [3])" in rows["rectified"]
    assert not rows["dropout"]
    tables = figures.section(store.read_study(tmp_path / "fidelity")).tables
    assert {row[0] for table in tables[:2] for row in table.rows} == {
        pairs.FLOOR, "wide (0 of 1 fits)", "rectified (0 of 1 fits)", "dropout*"
    }  # fmt: skip


CLASS = """
import numpy as np

import ep_bench


class Exact:
    '''The posterior of a linear model.'''

    def __init__(self, noise_variance, prior_variance, kind="gaussian"):
        self.noise_variance, self.prior_variance, self.kind = noise_variance, prior_variance, kind

    def fit(self, X, y):
        A = np.column_stack([X, np.ones(len(X))])
        self.covariance = np.linalg.inv(A.T @ A / self.noise_variance + np.eye(A.shape[1]) / self.prior_variance)
        self.weights = self.covariance @ A.T @ y / self.noise_variance
        return self

    def predict_dist(self, X):
        A = np.column_stack([X, np.ones(len(X))])
        if self.kind == "laplace":
            from scipy.stats import laplace

            return laplace(A @ self.weights, 1.0)
        variance = ((A @ self.covariance) * A).sum(axis=1)
        return ep_bench.Predictive.gaussian(A @ self.weights, variance + self.noise_variance)
"""


def test_a_class_gets_the_variances_of_the_reference(results: Path, tmp_path: Path) -> None:
    path = tmp_path / "exact.py"
    path.write_text(CLASS, encoding="utf-8")
    entry = {"use": f"{path}:Exact", "standardize": True}
    methods = [{**entry, "label": "mine"}, {**entry, "label": "other density", "kind": "laplace"}]
    fidelity = {"datasets": ["cubic"], "methods": methods, "results": str(results)}
    run_experiment("fidelity", fidelity, 0, tmp_path / "fidelity", "fidelity")
    rows = {row["method"]: row for row in figures.read(store.read_study(tmp_path / "fidelity")).summary}
    assert rows["mine"]["same_posterior"] == "true"
    assert "expected an array of draws (S, N) or an ep_bench.Predictive" in rows["other density"]["failure"]
    reference, cubic = ep_bench.load_reference("cubic", results=results), ep_bench.load_dataset("cubic")
    train, test = ep_bench.standard_split(len(cubic.y), 0)
    shift, scale = cubic.X[train].mean(axis=0), cubic.X[train].std(axis=0)
    A, B = (np.column_stack([(cubic.X[rows] - shift) / scale, np.ones(len(rows))]) for rows in (train, test))
    center, unit = cubic.y[train].mean(), cubic.y[train].std()
    covariance = np.linalg.inv(A.T @ A / 0.05 + np.eye(2) / 0.5)
    mean = center + unit * B @ covariance @ A.T @ (cubic.y[train] - center) / unit / 0.05
    variance = unit**2 * (((B @ covariance) * B).sum(axis=1) + 0.05)
    found = ep_bench.posterior_distances(ep_bench.Predictive.gaussian(mean, variance), reference)
    assert float(rows["mine"]["wasserstein_2"]) == pytest.approx(found["wasserstein_2"].mean(), rel=1e-4)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([{"use": "pbp", "noise_variance": 0.1}], "noise_variance is fixed at the value of the posterior"),
        ([{"use": "ep_nn", "network": "probit", "output_scale": 1.0}], "output_scale is fixed"),
        ([{"use": "pbp"}, {"use": "pbp", "epochs": 3}], "two methods are called 'pbp, relu'"),
        ([{"use": "{path}:Exact"}], "are for standardised data; add standardize: true"),
        ([{"use": "{path}:Exact", "standardize": True, "kin": "gaussian"}], "no such option.*did you mean 'kind'"),
        ([{"use": "{path}:Wrong"}], "has no 'Wrong'"),
    ],
)
def test_entries_that_cannot_be_compared_are_refused(
    entries: list[dict[str, Any]], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "exact.py"
    path.write_text(CLASS, encoding="utf-8")
    methods = [{**entry, "use": entry["use"].replace("{path}", str(path))} for entry in entries]
    (problem,) = problems("fidelity", {"methods": methods})
    assert re.search(message, str(problem.error()))


@pytest.mark.parametrize("experiment", ["bands", "evidence"])
def test_two_entries_of_one_name_are_refused(experiment: str) -> None:
    (problem,) = problems(experiment, {"methods": [{"use": "vi"}, {"use": "vi", "hidden": [20]}]})
    assert "two methods are called 'vi, relu'" in str(problem.error())


def test_a_split_that_is_named_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="a part is named twice; remove repeated values, such as a split"):
        run_experiment("fidelity", {"datasets": ["step"], "splits": [0, 0]}, 0, tmp_path / "twice")


def test_the_summary_has_every_method_and_the_floor(results: Path) -> None:
    section = figures.section(store.read_study(results / "fidelity"))
    assert len(section.pictures) == 1
    assert [len(table.rows) for table in section.tables[:2]] == [2, 3]
    assert section.tables[1].rows[0][0] == pairs.FLOOR
    assert any(row[0] == "dropout*" for row in section.tables[1].rows)
    rows = figures.read(store.read_study(results / "fidelity")).summary
    assert {row["method"] for row in rows} == {"PBP", "LA, full", "dropout", pairs.FLOOR}
    assert all(float(row["wasserstein_2"]) > 0.0 for row in rows)
    assert figures.section(store.read_study(results / "reference-cubic")).pictures


def test_parts_of_an_earlier_reference_are_refused(results: Path) -> None:
    config = Config(datasets=("cubic",), methods=(Approximation(use="pbp", label="PBP"),), results=str(results))
    with pytest.raises(
        UserError, match=r"PBP on cubic, split 0: compared with an earlier reference .*cells.*run again"
    ):
        combine(config, [{"reference": "0" * 12}])


def test_more_data_sets_have_their_own_splits_and_networks() -> None:
    methods = [{"use": "pbp"}, {"use": "laplace", "network": "probit"}]
    more = [{"datasets": ["power"], "splits": [0, 1], "networks": ["relu"]}]
    config = Config.model_validate({"datasets": ["boston"], "splits": [3], "more": more, "methods": methods})
    assert [(call[0], call[1], "probit" in call[2]) for call in calls(config, 0)] == [
        ("boston", 3, False), ("boston", 3, True), ("power", 0, False), ("power", 1, False),
    ]  # fmt: skip


def test_data_sets_have_the_same_weight_whatever_their_number_of_splits() -> None:
    found = {("a", "0"): 1.0, ("a", "1"): 1.0, ("a", "2"): 1.0, ("b", "0"): 4.0}
    assert pairs.geometric_mean(found) == pytest.approx(2.0)
    assert pairs.set_means(found) == [1.0, 4.0]


def test_known_variances_have_the_names_of_each_method() -> None:
    entry = {name: Approximation.model_validate({"use": name}) for name in ("pbp", "dropout", "ep_nn", "sgld")}
    assert entry["pbp"].options(0.1, 0.4) == {"noise_variance": 0.1, "prior_variance": 0.4}
    assert entry["dropout"].options(0.1, 0.4) == {}
    assert not entry["dropout"].knows_variances
    assert entry["ep_nn"].options(0.1, 0.4)["output_scale"] == pytest.approx(0.4**0.5)


def test_a_reference_needs_known_variances() -> None:
    (problem,) = problems("reference", {"posteriors": [{**KNOWN, "prior_variance": None}]})
    assert "needs noise_variance and prior_variance" in str(problem.error())


def planted(distances: dict[str, float], sets: int = 1, splits: int = 1) -> ExperimentResults:
    """Return a summary with a distance per method, varied by split; the log-likelihood decreases with it."""
    rng = np.random.default_rng(0)
    rows = [
        {"network": "relu", "dataset": f"set {j}", "split": str(k), "method": method, "same_posterior": "true",
         "wasserstein_2": str(varied), "ll": str(-varied * rng.uniform(0.9, 1.2))}
        for j in range(sets) for k in range(splits) for method, distance in distances.items()
        for varied in [distance * rng.uniform(0.9, 1.1)]
    ]  # fmt: skip
    return ExperimentResults("s", {}, {}, rows)


@pytest.mark.parametrize(
    ("distances", "sets", "splits", "holds", "words"),
    [
        ({"PBP": 1.0, "VI": 2.0}, 1, 3, None, "over 1 data set; a test needs 5"),
        ({"PBP": 1.0, "VI": 2.0}, 4, 5, None, "over 4 data sets; a test needs 5"),
        ({"PBP": 2.0, "VI": 1.0}, 5, 2, False, "over 5 data sets, p = "),
        ({"PBP": 1.0, "VI": 1.0}, 5, 1, None, "over 5 data sets, p = "),
        ({"BB-α 1e-6": 1.0, "BB-α 0.5": 2.0, "BB-α 1": 3.0}, 5, 1, True, "alpha near 0 is"),
        ({"BB-α 1e-6": 3.0, "BB-α 0.5": 2.0, "BB-α 1": 1.0}, 5, 1, True, "alpha near 0 is"),
        ({"BB-α 1e-6": 2.0, "BB-α 0.5": 1.0, "BB-α 1": 2.0}, 5, 1, False, "alpha near 0 is"),
        ({"BB-α 1e-6": 1.0, "BB-α 0.5": 1.0, "BB-α 1": 2.0}, 5, 1, None, "alpha near 0 is"),
    ],
)
def test_claims_find_planted_orders(
    distances: dict[str, float], sets: int, splits: int, holds: bool | None, words: str
) -> None:
    (claim,) = pairs.claims(planted(distances, sets, splits))
    assert claim.holds is holds
    assert words in claim.found
    assert ("It is not decided" in claim.sentence) is (holds is None)


def test_claims_are_corrected_for_the_number_of_tests() -> None:
    logs = [-0.1, -0.3, -0.05, -0.4, 0.02, -0.25]  # of the ratios of PBP and VI by data set
    rows = [
        {"network": "relu", "dataset": str(j), "split": "0", "method": method, "same_posterior": "true",
         "wasserstein_2": str(distance), "ll": ""}
        for j, log in enumerate(logs)
        for method, distance in {"PBP": np.exp(log), "VI": 1.0, "VI (Graves)": 3.0}.items()
    ]  # fmt: skip
    p = ttest_1samp(logs, 0.0).pvalue
    (alone,) = pairs.claims(ExperimentResults("s", {}, {}, [row for row in rows if row["method"] != "VI (Graves)"]))
    first, second = pairs.claims(ExperimentResults("s", {}, {}, rows))
    assert (alone.holds, first.holds, second.holds) == (True, None, True)
    assert alone.found.endswith(f"p = {p:.2g}")
    assert first.found.endswith(f"p = {p:.2g} (corrected {2.0 * p:.2g})")


@pytest.mark.parametrize(("sets", "holds"), [(4, None), (6, True)])
def test_distance_and_log_likelihood_are_rank_correlated(sets: int, holds: bool | None) -> None:
    results = planted({"a": 1.0, "b": 1.1, "c": 1.2, "d": 2.0, "e": 4.0}, sets)
    far = {"wasserstein_2": "9.0", "ll": "9.0", "method": "a, sampled"}  # the same fit again, left out
    rows = [*results.summary, *({**row, **far} for row in results.summary if row["method"] == "a")]
    (claim,) = pairs.claims(replace(results, summary=rows))
    assert "higher log-likelihood" in claim.text
    assert claim.holds is holds
    assert "across methods is -0.9" in claim.found


def test_a_line_through_a_gap_connects_both_sides() -> None:
    line = bands.gap_line("energy", 0, 21)
    assert line.inside.sum() > 3
    assert not ((line.X[:, 0] >= line.places[line.inside][0]) & (line.X[:, 0] <= line.places[line.inside][-1])).any()
    middle = line.X[:, 0] > line.places[line.inside].mean()
    for side in (middle, ~middle):
        mean = line.X[side].mean(axis=0)
        at = [np.interp(mean[0], line.places, column) for column in line.inputs.T]
        np.testing.assert_allclose(at, mean, atol=1e-9)


def test_bands_are_compared_in_and_outside_the_gap(tmp_path: Path) -> None:
    methods = [{"use": "pbp", "label": "PBP", "hidden": [5], "epochs": 3},
               {"use": "dropout", "label": "dropout", "hidden": [5], "epochs": 2, "passes": 20}]  # fmt: skip
    options = {"posteriors": [{**KNOWN, **SHORT, "label": "relu", "hidden": [5]}], "methods": methods, "chains": 2,
               "draws": 100, "points": 21}  # fmt: skip
    run_experiment("bands", options, 0, tmp_path / "bands", "bands")
    study = store.read_study(tmp_path / "bands")
    rows = figures.read(study).summary
    assert [row["method"] for row in rows] == [pairs.FLOOR, "PBP", "dropout"]
    assert all(float(row[name]) > 0.0 for row in rows for name in ("std_ratio_gap", "wasserstein_2_outside"))
    assert figures.read(study).arrays["relu/cubic/levels"].shape == (3, bands.LEVELS, 21)
    assert len(figures.section(study).pictures) == 1


def test_evidences_are_compared_with_annealing(tmp_path: Path) -> None:
    methods = [{"use": "vi", "label": "VI", "hidden": [5], "epochs": 5},
               {"use": "laplace", "label": "LA", "hidden": [5], "hessian": "full", "starts": 1}]  # fmt: skip
    posterior = {**KNOWN, "label": "relu", "hidden": [5], "steps": 3}
    options = {"posteriors": [posterior], "methods": methods, "chains": 2, "runs": 1, "temperatures": 100}
    run_experiment("evidence", options, 0, tmp_path / "evidence", "evidence")
    study = store.read_study(tmp_path / "evidence")
    rows = {row["method"]: row for row in figures.read(study).summary}
    assert list(rows) == ["AIS", "AIS, back", "VI", "LA"]
    assert [row["estimate"] for row in rows.values()] == ["", "", "ELBO", "LAPLACE"]
    assert float(rows["LA"]["log_copies"]) == pytest.approx(np.log(120), abs=1e-3)
    assert all(np.isfinite(float(row["difference"])) for row in rows.values())
    assert len(figures.section(study).pictures) == 1
    (problem,) = problems("evidence", {**options, "methods": [{"use": "pbp", "hidden": [5]}]})
    assert "found 'pbp'; allowed: ep_nn, laplace, vi, vi_graves" in str(problem.error())
