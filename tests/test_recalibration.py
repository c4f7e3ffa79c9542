"""Recalibration: coverage on exchangeable data, densities, the identity for calibrated methods, and cells."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

import ep_bench
from ep_bench.errors import UserError
from ep_bench.predictions import PointPrediction, Predictive, QuantilePrediction
from ep_bench.recalibration import RecalibratedModel, conformal, held_out_parts, isotonic
from ep_bench.runner.plan import plan_of_cells
from ep_bench.spec.read import read_study

STUDY = """
study: recalibrated
datasets: [yacht]
splits: {count: 1}
methods:
"""


class Fixed:
    """A method with a constant Gaussian; it keeps the points that it is fitted to."""

    def __init__(self, std: float = 1.0, kind: str = "density") -> None:
        self.std, self.kind, self.trace_, self.converged_ = std, kind, {}, None

    def fit(self, X, y):
        self.X = X
        return self

    def predict_dist(self, X):
        n = len(X)
        if self.kind == "points":
            return PointPrediction(np.zeros(n))
        if self.kind == "quantiles":
            levels = np.array([0.025, 0.05, 0.25, 0.5, 0.75, 0.95, 0.975])
            return QuantilePrediction(levels, np.tile(self.std * norm.ppf(levels)[:, None], n))
        return Predictive.gaussian(np.zeros(n), np.full(n, self.std**2))


def recalibrated(kind: str, y, std: float = 1.0, what: str = "density", cross: bool | None = False):
    X = np.arange(len(y), dtype=np.float64)[:, None]
    return RecalibratedModel(lambda: Fixed(std, what), kind, 0.5, 0, cross).fit(X, y)


@pytest.mark.parametrize("what", ["density", "points", "quantiles"])
@pytest.mark.parametrize("held_out", [60, 199])
def test_conformal_intervals_cover_new_points_as_often_as_guaranteed(what: str, held_out: int) -> None:
    rng, alpha, repetitions = np.random.default_rng(1), 0.1, 2000
    hits = np.empty(repetitions)
    for i in range(repetitions):  # the guarantee is for the mean over training and test points
        y = rng.standard_t(3, 2 * held_out + 20)  # no method knows this distribution
        found = recalibrated("conformal", y[:-20], 0.3, what).predict_dist(np.zeros((20, 1)))
        low, high = found.quantile(alpha / 2), found.quantile(1 - alpha / 2)
        hits[i] = np.mean((low <= y[-20:]) & (y[-20:] <= high))
    error = 4 * hits.std() / np.sqrt(repetitions)
    assert 1 - alpha - error <= hits.mean() <= 1 - alpha + 1 / (held_out + 1) + error


@pytest.mark.parametrize("n", [39, 60, 150, 199, 1000])
def test_ranks_of_central_intervals_meet_the_guarantee_exactly(n: int) -> None:
    for alpha in (0.05, 0.1, 0.13, 0.5):
        low, high = conformal._ranks(np.array([alpha / 2, 1 - alpha / 2]), n)
        assert 1 - alpha - 1e-9 <= (high - low) / (n + 1) <= 1 - alpha + 1 / (n + 1) + 1e-9


def test_levels_that_the_points_cannot_have_are_left_out() -> None:
    found = recalibrated("conformal", np.random.default_rng(0).standard_normal(40)).predict_dist(np.zeros((3, 1)))
    assert not found.answers(0.025)
    assert found.answers(0.05)


def test_cross_conformal_intervals_cover() -> None:
    rng = np.random.default_rng(2)
    hits = []
    for _ in range(300):
        y = rng.standard_normal(120)
        found = recalibrated("conformal", y[:-20], 2.0, cross=True).predict_dist(np.zeros((20, 1)))
        hits.append(np.mean((found.quantile(0.05) <= y[-20:]) & (y[-20:] <= found.quantile(0.95))))
    assert 0.87 <= np.mean(hits) <= 0.94


@pytest.mark.parametrize("std", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("cross", [False, True])
def test_isotonic_density_integrates_to_one_and_agrees_with_its_quantiles_and_moments(std: float, cross: bool) -> None:
    y = np.random.default_rng(3).standard_normal(600)
    found = recalibrated("isotonic", y, std, cross=cross).predict_dist(np.zeros((1, 1)))
    grid = np.linspace(-12.0 * max(std, 1.0), 12.0 * max(std, 1.0), 200_001)
    density = np.exp([found.logpdf(np.array([x]))[0] for x in grid[::10]])
    step = 10 * (grid[1] - grid[0])
    assert density.sum() * step == pytest.approx(1.0, abs=2e-3)
    mean = (density * grid[::10]).sum() * step
    assert found.mean()[0] == pytest.approx(mean, abs=5e-3)
    assert found.variance()[0] == pytest.approx((density * (grid[::10] - mean) ** 2).sum() * step, rel=0.02)
    for p in (1e-6, 0.025, 0.3, 0.5, 0.975, 0.999):
        assert found.cdf(found.quantile(p))[0] == pytest.approx(p, abs=1e-6)


def test_isotonic_recalibration_of_a_calibrated_method_becomes_the_identity() -> None:
    at, differences = np.linspace(-2.5, 2.5, 21), []
    for n in (400, 40_000):
        y = np.random.default_rng(4).standard_normal(n)
        found = recalibrated("isotonic", y).predict_dist(np.zeros((21, 1)))
        differences.append(np.abs(found.logpdf(at) - norm.logpdf(at)).mean())
    assert differences[1] < 0.05
    assert differences[1] < 0.5 * differences[0]


@pytest.mark.parametrize("std", [0.4, 10.0])
def test_isotonic_recalibration_mends_widths(std: float) -> None:
    rng = np.random.default_rng(5)
    found = recalibrated("isotonic", rng.standard_normal(4000), std).predict_dist(np.zeros((4000, 1)))
    y = rng.standard_normal(4000)
    for p in (0.025, 0.25, 0.75, 0.975):
        assert np.mean(y <= found.quantile(p)) == pytest.approx(p, abs=0.04)


def test_isotonic_recalibration_survives_pit_values_of_0_and_1() -> None:
    curve = isotonic.PitCurve(np.clip(np.repeat([0.0, 0.5, 1.0], 50), 1e-12, 1 - 1e-12))
    assert np.all(np.diff(curve.knots) > 0.0)
    assert np.all(np.diff(curve.levels) > 0.0)


def test_isotonic_recalibration_of_quantiles_is_refused_with_the_remedy() -> None:
    with pytest.raises(TypeError, match="conformal"):
        recalibrated("isotonic", np.zeros(20), what="quantiles")


@pytest.mark.parametrize("cross", [False, True])
def test_no_model_is_fitted_to_points_that_calibrate_it(cross: bool) -> None:
    for fitting, held_out in held_out_parts(300, 0.2, 7, cross):
        assert not np.intersect1d(fitting, held_out).size
        np.testing.assert_array_equal(np.union1d(fitting, held_out), np.arange(300))


def test_few_points_are_cross_validated() -> None:
    assert len(held_out_parts(900, 0.2, 0)) == 5
    assert len(held_out_parts(1000, 0.2, 0)) == 1
    held_out = [held for _, held in held_out_parts(900, 0.2, 0)]
    np.testing.assert_array_equal(np.sort(np.concatenate(held_out)), np.arange(900))


@pytest.mark.parametrize("kind", ["isotonic", "conformal"])
@pytest.mark.parametrize("cross", [False, True])
def test_with_refit_a_model_of_all_points_is_mapped_by_the_held_out_points(kind: str, cross: bool) -> None:
    y = np.random.default_rng(8).standard_normal(300)
    X = np.arange(300.0)[:, None]
    model = RecalibratedModel(lambda: Fixed(2.0), kind, 0.2, 0, cross, refit=True).fit(X, y)
    (predicts,) = model.models_
    np.testing.assert_array_equal(predicts.X, X)
    module = {"isotonic": isotonic, "conformal": conformal}[kind]
    parts = held_out_parts(300, 0.2, 0, cross)
    assert len(parts) == (5 if cross else 1)
    given = [Fixed(2.0).predict_dist(X[held_out]) for _, held_out in parts]
    expected = np.concatenate(
        [module.evidence(one, y[held]) for one, (_, held) in zip(given, parts, strict=True)], axis=-1
    )
    np.testing.assert_array_equal(model.evidences_[0], expected)
    found = model.predict_dist(np.zeros((5, 1)))
    once = module.recalibrate([Fixed(2.0).predict_dist(np.zeros((5, 1)))], [expected])
    np.testing.assert_array_equal(found.quantile(0.75), once.quantile(0.75))


def test_the_regressor_is_one_of_scikit_learn() -> None:
    from sklearn.base import clone
    from sklearn.linear_model import BayesianRidge

    data = ep_bench.load_dataset("yacht")
    model = clone(ep_bench.Recalibrated(BayesianRidge(), "conformal", random_state=0)).fit(data.X, data.y)
    low, high = (model.predict_dist(data.X).quantile(p) for p in (0.05, 0.95))
    assert np.mean((low <= data.y) & (data.y <= high)) == pytest.approx(0.9, abs=0.03)
    assert model.predict(data.X).shape == data.y.shape


def plan(tmp_path: Path, *entries: str):
    text = STUDY + "".join(f"  - {entry}\n" for entry in entries)
    (tmp_path / "study.yaml").write_text(text)
    return plan_of_cells(read_study(tmp_path / "study.yaml"), tmp_path)


def test_recalibration_is_a_factor_of_its_own_cells_only(tmp_path: Path) -> None:
    flat = "{use: bp, label: b, recalibrate: isotonic, fraction: 0.3}"
    nested = "{use: bp, label: c, recalibrate: {method: isotonic, fraction: 0.3}}"
    plain, first, second = (one.job.cell for one in plan(tmp_path, "bp", flat, nested).cells)
    assert "recalibrate" not in plain.factors
    assert plain.key != first.key
    assert first.key == second.key


def test_estimates_count_the_fits_of_all_models(tmp_path: Path) -> None:
    kinds = ["{method: isotonic}", "{method: isotonic, fraction: 0.5}", "{method: isotonic, cross: false}"]
    entries = [f"{{use: bp, label: b{i}, recalibrate: {kind}}}" for i, kind in enumerate(kinds)]
    alone, *others = (one.job.estimate for one in plan(tmp_path, "bp", *entries).cells)
    np.testing.assert_allclose(np.divide(others, alone), [4.0, 1.0, 0.8], rtol=0.02)  # five folds, two, one model


def test_fraction_that_may_be_an_option_of_the_method_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="may also be an option of gp_t"):
        plan(tmp_path, "{use: gp_t, recalibrate: conformal, fraction: 0.3}")


def test_search_with_cross_validated_recalibration_is_refused(tmp_path: Path) -> None:
    entry = "{use: bp, recalibrate: {method: isotonic, cross: true}, tune: {trials: 2}}"
    with pytest.raises(UserError, match="not possible with tune"):
        plan(tmp_path, entry)


@pytest.mark.parametrize("kind", ["isotonic", "conformal"])
def test_recalibrated_cells_run_for_own_and_external_methods_and_with_a_search(tmp_path: Path, kind: str) -> None:
    entries = [
        f"{{use: bp, epochs: 20, recalibrate: {kind}}}",
        f"{{use: bp, label: tuned, recalibrate: {kind}, tune: {{trials: 2, space: {{epochs: [10, 20]}}}}}}",
        f'{{use: "sklearn.linear_model:BayesianRidge", recalibrate: {kind}}}',
    ]
    (tmp_path / "study.yaml").write_text(STUDY + "".join(f"  - {entry}\n" for entry in entries))
    rows = ep_bench.run(tmp_path / "study.yaml", results=tmp_path / "results")
    assert list(rows.status) == ["ok"] * 3, list(rows.reason)
    assert rows.ll.notna().all() == (kind == "isotonic")
    assert rows.coverage90.between(0.6, 1.0).all()


@pytest.mark.parametrize("kind", ["isotonic", "conformal"])
def test_test_targets_calibrate_nothing(tmp_path: Path, kind: str) -> None:
    """Wider errors at the test points alone change no width of an interval."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=100)
    y = X + 0.1 * rng.normal(size=100)
    _, test = ep_bench.standard_split(100, 0)
    widths = []
    for name, change in (("a", 0.0), ("b", 5.0)):
        y[test] += change
        lines = "".join(f"{one},{other}\n" for one, other in zip(X, y, strict=True))
        (tmp_path / f"{name}.csv").write_text("x,y\n" + lines)
        rows = ep_bench.run(
            {
                "study": name,
                "datasets": [{"name": "mine", "csv": str(tmp_path / f"{name}.csv"), "target": "y"}],
                "splits": {"count": 1},
                "methods": [{"use": "sklearn.linear_model:BayesianRidge", "recalibrate": kind}],
            },
            results=tmp_path / "results",
        )
        assert list(rows.status) == ["ok"], list(rows.reason)
        widths.append((rows.width90[0], rows.rmse[0]))
    assert widths[0][0] == widths[1][0]
    assert widths[1][1] > 4.0 > widths[0][1]
