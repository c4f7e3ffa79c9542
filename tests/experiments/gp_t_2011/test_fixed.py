"""Approximations at fixed hyperparameters: predictions in folds compared with chains, and times."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ep_bench import data
from ep_bench.estimator import Estimator
from ep_bench.experiments.gp_t_2011.fixed_predictions import compute as fixed_predictions
from ep_bench.experiments.gp_t_2011.fixed_times import compute as fixed_times
from ep_bench.experiments.gp_t_2011.posterior_means import ChainOptions, posterior_means
from ep_bench.types import Rows, SplitScheme

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # short chains

SHORT = {"chains": 1, "warmup": 8, "samples": 8}


@pytest.fixture(scope="module")
def predictions() -> tuple[dict[str, Any], list[dict[str, Any]]]:
    chain = {
        "use": "gp_t",
        "label": "MCMC",
        "inference": "mcmc",
        "chains": 1,
        "warmup": 20,
        "samples": 300,
        "stored": 300,
    }
    methods = [chain, *({"use": "gp_t", "label": name, "inference": name} for name in ("ep", "vb", "fvb"))]
    options = {"dataset": "boston", "rows": 40, "folds": 2, "chains": SHORT, "methods": methods}
    return fixed_predictions.compute(fixed_predictions.Config(**options), 0)


def test_every_point_is_predicted_by_a_fit_without_it(predictions: Any) -> None:
    arrays, summary = predictions
    whole = data.load_dataset("boston")
    X, y = whole.X[:40], whole.y[:40]
    X = np.where(X.std(axis=0) > 0, (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0), 0.0)
    y = (y - y.mean()) / y.std()
    fixed = {
        name: arrays["hyperparameters"][arrays["names"] == name] for name in ("lengthscale", "magnitude", "scale", "nu")
    }
    scalars = {name: float(values[0]) for name, values in fixed.items() if name != "lengthscale"}
    parts = np.array_split(_order(40, 2), 2)
    for test in parts:
        train = np.setdiff1d(np.arange(40), test)
        model = Estimator("gp_t", optimize=False, standardize=False, lengthscale=tuple(fixed["lengthscale"]), **scalars)
        mean, variance = model.fit(X[train], y[train]).latent(X[test])
        np.testing.assert_allclose(arrays["mean_1"][test], mean, atol=1e-7)
        np.testing.assert_allclose(arrays["deviation_1"][test] ** 2, variance, atol=1e-7)
        log_density = model.predict_dist(X[test]).logpdf(y[test])
        np.testing.assert_allclose(arrays["log_density_1"][test], log_density, atol=1e-6)
    assert [row["failed"] for row in summary] == [0] * 4
    assert 0.9 < summary[0]["r_hat"] < 1.5
    assert np.isnan([row["r_hat"] for row in summary[1:]]).all()


def _order(n: int, folds: int) -> np.ndarray:
    from dataclasses import replace

    whole = data.load_dataset("boston")
    scheme = data.resolve_scheme(SplitScheme("kfold", folds=folds), whole.card)
    cut = replace(whole, X=whole.X[:n], y=whole.y[:n])
    return np.concatenate([data.make_split(scheme, cut, index).test for index in range(folds)])


def test_the_summary_agrees_with_the_arrays(predictions: Any) -> None:
    arrays, summary = predictions
    reference, ep, vb, fvb = summary
    assert (reference["mean_rms"], reference["deviation_ratio"], reference["log_density_rms"]) == (0.0, 1.0, 0.0)
    apart = arrays["mean_1"] - arrays["mean_0"]
    assert ep["mean_rms"] == pytest.approx(np.sqrt(np.mean(apart**2)), abs=1e-6)
    assert ep["log_density"] == pytest.approx(arrays["log_density_1"].mean(), abs=1e-6)
    assert ep["mean_rms"] < vb["mean_rms"]  # EP is closest to the chains
    assert vb["deviation_ratio"] < 0.97  # bounds are overconfident
    # At fixed hyperparameters both bounds have the same optimum.
    assert {k: v for k, v in vb.items() if k not in {"seconds", "r_hat"}} | {"method": "fvb"} == pytest.approx(
        {k: v for k, v in fvb.items() if k not in {"seconds", "r_hat"}}, abs=2e-6
    )


def test_a_failed_method_has_no_predictions(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(use: str, options: Any, *rest: Any) -> Any:
        if options["inference"] == "laplace":
            raise FloatingPointError("no mode")
        return np.ones((3, len(rest[2]))), 1.02

    monkeypatch.setattr(fixed_predictions, "_predicted", fails)
    methods = [{"use": "gp_t", "label": name, "inference": name} for name in ("ep", "laplace")]
    config = fixed_predictions.Config(rows=20, folds=2, chains=SHORT, methods=methods)
    arrays, summary = fixed_predictions.compute(config, 0)
    assert np.isnan(arrays["mean_1"]).all()
    assert (summary[1]["failed"], summary[1]["reason"]) == (2, "no mode")
    assert np.isnan(summary[1]["mean_rms"])


def test_posterior_means_are_those_of_the_logarithms() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 2))
    rows = Rows(X, np.sin(X[:, 0]))
    means, r_hat = posterior_means(rows, ChainOptions(chains=2, warmup=10, samples=12), 3)
    model = Estimator(
        "gp_t",
        inference="mcmc",
        nu="optimize",
        standardize=False,
        chains=2,
        warmup=10,
        samples=12,
        stored=24,
        random_state=3,
    ).fit(rows.X, rows.y)
    theta = model.state_.theta
    assert theta.shape[0] == 24
    np.testing.assert_allclose(
        np.log([*means["lengthscale"], means["magnitude"], means["scale"], means["nu"]]), theta.mean(axis=0)
    )
    assert r_hat >= 0.9


# Times


@pytest.fixture(scope="module")
def times() -> tuple[dict[str, Any], list[dict[str, Any]]]:
    methods = [{"use": "gp_t", "label": "LA1", "inference": "laplace"}, {"use": "gp", "label": "GA"}]
    options = {"datasets": [{"name": "cubic", "folds": 2}], "methods": methods, "chains": SHORT}
    return fixed_times.compute(fixed_times.Config(**options), 0)


def test_there_are_28_configurations_and_relative_times(times: Any) -> None:
    arrays, summary = times
    seconds = arrays["seconds"]
    assert seconds.shape == (1, 2, 28)
    whole = np.isfinite(seconds[0]).all(axis=0)
    means = seconds[0][:, whole].mean(axis=1)
    assert [row["relative"] for row in summary] == pytest.approx([1.0, means[1] / means[0]], rel=1e-3)
    assert all(row["configurations"] == whole.sum() for row in summary)


def test_configurations_are_the_mean_and_all_combinations_around_it() -> None:
    mean = {"lengthscale": (1.0, 2.0), "magnitude": 2.0, "scale": 0.2, "nu": 3.0}
    config = fixed_times.Config(spread=0.5)
    first, *others = fixed_times.configurations_around(mean, config, 2, np.random.default_rng(0))
    assert first == mean
    found = {(round(one["nu"], 9), round(one["scale"], 9), round(one["magnitude"], 9)) for one in others}
    assert found == {(nu, s, m) for nu in (1.5, 3.0, 6.0) for s in (0.1, 0.2, 0.4) for m in (0.5, 2.0, 8.0)}
    logs = np.log([one["lengthscale"] for one in others]) - 0.5 * np.log(2)
    assert len(np.unique(logs)) == 54
    assert logs.std() == pytest.approx(0.5, rel=0.3)


def test_a_configuration_without_solution_is_excluded_for_all_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter([1.0] * 28 + [2.0, float("nan"), *[2.0] * 26])
    monkeypatch.setattr(fixed_times, "_timed", lambda *_: next(seconds))
    methods = [{"use": "gp_t", "label": "LA1", "inference": "laplace"}, {"use": "gp_t", "label": "EP1"}]
    config = fixed_times.Config(datasets=[{"name": "cubic", "folds": 2}], methods=methods, chains=SHORT)
    _, (first, second) = fixed_times.compute(config, 0)
    assert (first["relative"], second["relative"]) == (1.0, 2.0)
    assert (first["configurations"], second["without_solution"]) == (27, 1)
