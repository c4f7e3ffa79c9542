"""All kinds of predictions of external methods, compared with the distributions that they describe."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from ep_bench import adapters, scoring
from ep_bench.predictions import (
    ASKED_LEVELS,
    DensityPrediction,
    PointPrediction,
    Predictive,
    QuantilePrediction,
    missing_density,
)
from tests.adapters.kinds import Line

HERE = Path("/")
KINDS = "tests.adapters.kinds:"
rng = np.random.default_rng(0)
X = rng.normal(5.0, 3.0, (40, 2))
y = 100.0 + 20.0 * X[:, 0] + rng.normal(0.0, 4.0, size=40)
FIT = Line().fit(X, y)
MEAN, SCALE = FIT.line(X), FIT.scale
RESCALED = pytest.mark.parametrize("standardize", [False, True])


def ask(name: str, *, standardize: bool = False, **options: Any) -> Any:
    given = {**options, "standardize": standardize}
    return adapters.build(KINDS + name, given, HERE).fit(X, y).predict_dist(X)


def assert_is(found: Any, expected: Any) -> None:
    """Hold a density against scipy's: everything that a prediction answers."""
    assert isinstance(found, DensityPrediction)
    for name in ("mean", "std"):
        np.testing.assert_allclose(getattr(found, name)(), getattr(expected, name)(), rtol=1e-9)
    np.testing.assert_allclose(found.variance(), expected.var(), rtol=1e-9)
    for name in ("logpdf", "cdf"):
        np.testing.assert_allclose(getattr(found, name)(y), getattr(expected, name)(y), rtol=1e-8, atol=1e-12)
    for p in (1e-6, 0.025, 0.5, 0.9):
        np.testing.assert_allclose(found.quantile(p), expected.ppf(p), rtol=1e-9)


@RESCALED
@pytest.mark.parametrize("name", ["Frozen", "Density", "Boosted", "Tabular"])
def test_a_laplace_distribution_by_every_road(name: str, standardize: bool) -> None:
    assert_is(ask(name, standardize=standardize), stats.laplace(loc=MEAN, scale=SCALE))


@RESCALED
@pytest.mark.parametrize("name", ["Frozen", "Boosted"])
@pytest.mark.parametrize(("family", "shapes"), [("t", (3.0,)), ("logistic", ()), ("gumbel_r", ()), ("lognorm", (0.5,))])
def test_families_of_scipy(name: str, family: str, shapes: tuple[float, ...], standardize: bool) -> None:
    expected = getattr(stats, family)(*shapes, loc=MEAN, scale=SCALE)
    found = ask(name, family=family, shapes=shapes, standardize=standardize)
    if family == "lognorm":  # no density left of its location
        np.testing.assert_array_equal(np.isfinite(found.logpdf(y)), y > MEAN)
        np.testing.assert_allclose(found.logpdf(MEAN + 1.0), expected.logpdf(MEAN + 1.0), rtol=1e-9)
        np.testing.assert_allclose(found.quantile(0.9), expected.ppf(0.9))
    else:
        assert_is(found, expected)


@RESCALED
@pytest.mark.parametrize("name", ["Frozen", "Boosted"])
def test_a_normal_distribution_stays_a_gaussian(name: str, standardize: bool) -> None:
    found = ask(name, family="norm", standardize=standardize)
    assert isinstance(found, Predictive)
    np.testing.assert_allclose(found.logpdf(y), stats.norm(MEAN, SCALE).logpdf(y), rtol=1e-12)


@RESCALED
def test_an_object_with_the_fewest_methods(standardize: bool) -> None:
    assert_is(ask("Bare", standardize=standardize), stats.logistic(loc=MEAN, scale=SCALE))


def test_an_infinite_variance_is_reported() -> None:
    found = ask("Boosted", family="t", shapes=(1.5,))
    assert np.all(np.isinf(found.variance()))
    scores = scoring.score(found, y)
    assert {"ll", "crps", "coverage95", "width95", "rmse"} <= scores.keys()
    assert "ll_gaussian" not in scores
    assert np.isfinite(list(scores.values())).all()
    assert np.all(np.isinf(ask("Boosted", family="cauchy").variance()))  # scipy has it as nan


@RESCALED
def test_whole_numbers_have_quantiles_and_no_density(standardize: bool) -> None:
    sampled = ask("Sampled", standardize=standardize)
    assert isinstance(sampled, QuantilePrediction)
    np.testing.assert_allclose(sampled.quantile(0.025), stats.laplace(MEAN, SCALE).ppf(0.025))
    counts = type("Counts", (), {"predict_dist": lambda _, X: stats.poisson(np.full(len(X), 8.0))})()
    found = adapters.ExternalRegressor(counts)
    counts.fit = lambda _X, _y: None
    answer = found.fit(X, y).predict_dist(X)
    assert isinstance(answer, QuantilePrediction)
    np.testing.assert_array_equal(answer.quantile(0.5), 8.0)
    np.testing.assert_array_equal(answer.mean(), 8.0)


@RESCALED
@pytest.mark.parametrize("name", ["QuantileOption", "QuantileMethod", "TabularQuantiles"])
def test_quantiles_by_every_road(name: str, standardize: bool) -> None:
    found = ask(name, standardize=standardize)
    assert isinstance(found, QuantilePrediction)
    np.testing.assert_array_equal(found.levels, ASKED_LEVELS)
    np.testing.assert_allclose(found.values, stats.norm.ppf(np.array(ASKED_LEVELS)[:, None], MEAN, SCALE), rtol=1e-10)
    np.testing.assert_allclose(found.mean(), MEAN)
    assert missing_density(found) == "no log-likelihood: the method gives quantiles only"


@RESCALED
def test_intervals_are_quantiles(standardize: bool) -> None:
    found = ask("TabularInterval", standardize=standardize)
    np.testing.assert_allclose(found.levels, [0.025, 0.05, 0.25, 0.75, 0.95, 0.975])
    np.testing.assert_allclose(found.quantile(0.95), stats.norm.ppf(0.95, MEAN, SCALE))
    np.testing.assert_allclose(found.mean(), MEAN)
    scores = scoring.score(found, y)
    assert {"coverage50", "coverage90", "coverage95", "width90"} <= scores.keys()
    assert not {"crps", "ll", "pit_error"} & scores.keys()


@RESCALED
@pytest.mark.parametrize("name", ["Points", "Keywords", "Refuses", "OddInterval"])
def test_points(name: str, standardize: bool) -> None:
    found = ask(name, standardize=standardize)
    assert isinstance(found, PointPrediction)
    np.testing.assert_allclose(found.mean(), MEAN)
    assert missing_density(found) == "no log-likelihood: the method gives points only"


@RESCALED
@pytest.mark.parametrize("name", ["Deviation", "Forwards"])
def test_a_standard_deviation_is_that_of_a_gaussian(name: str, standardize: bool) -> None:
    found = ask(name, standardize=standardize)
    np.testing.assert_allclose(found.std(), SCALE)
    assert not missing_density(found)


@RESCALED
def test_mixtures(standardize: bool) -> None:
    assert isinstance(ask("Mixture", standardize=standardize), Predictive)


def test_a_classifiers_probabilities_are_no_distribution() -> None:
    with pytest.raises(TypeError, match=r"predict_proba returned an array of shape \(40, 2\), like a classifier"):
        ask("Classifier")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("def predict_dist(self, X):\n        return stats.laplace(0.0, 1.0)", r"shape \(\), expected \(40,\)"),
        (
            "def predict(self, X, return_std=False):\n        return np.zeros(len(X))",
            "expected means and standard deviations",
        ),
        (
            "def predict_quantiles(self, X, q):\n        return np.zeros((len(q), len(X)))",
            r"quantiles of shape \(105, 40\)",
        ),
        ("def predict_interval(self, X, coverage):\n        return np.zeros((len(X), 2))", "a frame with columns"),
    ],
)
def test_invalid_predictions_are_reported(tmp_path: Path, body: str, message: str) -> None:
    (tmp_path / "m.py").write_text(
        f"import numpy as np\nfrom scipy import stats\nclass C:\n    def fit(self, X, y):\n        pass\n    {body}\n"
    )
    with pytest.raises((TypeError, ValueError), match=message):
        adapters.build("./m.py:C", {}, tmp_path).fit(X, y).predict_dist(X)


# scikit-learn's wrappers

STEP = {"use": "sklearn.preprocessing:StandardScaler"}


def pipeline(last: dict[str, Any], *steps: dict[str, Any]) -> Any:
    named = [[f"step{i}", step] for i, step in enumerate((*steps, last))]
    return adapters.build("sklearn.pipeline:Pipeline", {"steps": named}, HERE).fit(X, y)


@pytest.mark.parametrize("steps", [(), (STEP,), (STEP, STEP)])
def test_a_pipeline_answers_as_its_last_step(steps: tuple[dict[str, Any], ...]) -> None:
    found = pipeline({"use": "sklearn.linear_model:BayesianRidge"}, *steps)
    mean, std = found.model.predict(X, return_std=True)
    np.testing.assert_allclose(found.predict_dist(X).logpdf(y), stats.norm(mean, std).logpdf(y))
    assert isinstance(
        pipeline({"use": "sklearn.linear_model:LinearRegression"}, *steps).predict_dist(X), PointPrediction
    )
    assert_is(pipeline({"use": KINDS + "Boosted"}, *steps).predict_dist(X), stats.laplace(loc=MEAN, scale=SCALE))
    inner = {"use": "sklearn.pipeline:Pipeline", "steps": [["a", STEP], ["b", {"use": KINDS + "QuantileOption"}]]}
    assert isinstance(pipeline(inner, *steps).predict_dist(X), QuantilePrediction)


def test_an_option_may_be_a_class_or_function_itself() -> None:
    options = {
        "regressor": {"use": "sklearn.linear_model:LinearRegression"},
        "func": {"object": "numpy:log1p"},
        "inverse_func": {"object": "numpy:expm1"},
    }
    use = "sklearn.compose:TransformedTargetRegressor"
    assert list(adapters.problems(use, options, HERE)) == []
    assert adapters.version(use, HERE, options).startswith("scikit-learn 1.")
    assert "; numpy " in adapters.version(use, HERE, options)
    found = adapters.build(use, options, HERE)
    assert found.model.func is np.log1p
    assert np.isfinite(found.fit(X, np.abs(y)).predict_dist(X).mean()).all()
    wrong = list(adapters.problems(use, {**options, "func": {"object": "numpy:lgo1p"}}, HERE))
    assert [(problem.path, "did you mean 'log1p'" in str(problem.error())) for problem in wrong] == [
        (("func", "object"), True)
    ]
