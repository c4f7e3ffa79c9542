"""Calibration over draws from the prior, reference values on boston, and the result of a run without convergence."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ep_bench import data
from ep_bench.estimator import Estimator
from ep_bench.experiments.sbc_2018.calibration.compute import QUANTITIES, Config, compute, judge
from ep_bench.methods import hmc
from ep_bench.methods.hmc import hyperparameters
from ep_bench.methods.hmc.draws import draw_joint, draw_outputs
from ep_bench.methods.hmc.model import NetworkModel
from ep_bench.runner.cell import run_cell
from ep_bench.types import Rows
from tests.experiments.support import run_experiment
from tests.methods.hmc_support import TOLERANCE, by_chain, small_model, standard_error
from tests.runner.support import jobs_of

QUICK = {"replications": 60, "thin": 8, "warmup": 60}
RECTIFIED = {"cases": [{"label": "one"}]}


class TestJudge:
    def test_uniform_ranks_pass_and_others_do_not(self):
        rng = np.random.default_rng(0)
        assert judge(rng.integers(20, size=400), 19)["p_value"] > 0.01
        assert judge(rng.integers(18, size=400), 19)["p_value"] < 1e-3
        assert judge(rng.integers(3, 20, size=400), 19)["shift"] > 5
        assert judge(rng.integers(4, 16, size=400), 19)["spread"] < -5

    def test_p_values_are_uniform(self):
        rng = np.random.default_rng(1)
        found = np.array([list(judge(rng.integers(10, size=300), 9).values()) for _ in range(500)])
        assert abs(np.mean(found[:, 1] < 0.1) - 0.1) < 0.05
        np.testing.assert_allclose(found[:, 2:].std(axis=0), 1.0, atol=0.15)


def test_draws_from_the_joint_distribution():
    """Under IG(5, 4), with mean 1, second moments are 1 for weights and E f^2 + 1 for targets."""
    model, rng = small_model(weight_prior=(5.0, 4.0), noise_prior=(5.0, 4.0)), np.random.default_rng(0)
    drawn = [draw_joint(model, model.rows.X, rng) for _ in range(4000)]
    for values in (
        [d.noise - 1.0 for d, _ in drawn], [np.mean(d.w**2) - 1.0 for d, _ in drawn],
        [np.mean((d.y - d.predictions) ** 2) - 1.0 for d, _ in drawn], [np.mean(d.w) for d, _ in drawn],
    ):  # fmt: skip
        assert abs(np.mean(values)) < TOLERANCE * np.std(values) / np.sqrt(len(values))
    assert all(m.rows.y is d.y and isinstance(m, NetworkModel) for d, m in drawn)
    assert all(np.isfinite(d.log_joint) for d, _ in drawn)


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("cases", [RECTIFIED, {}], ids=["one", "all"])
def test_ranks_are_uniform(cases):
    config = Config(**QUICK, **cases)
    arrays, summary = compute(config, 3)
    assert arrays["ranks"].shape == (len(config.cases), 60, len(QUANTITIES))
    assert arrays["ranks"].min() >= 0
    assert arrays["ranks"].max() <= 19
    assert len(summary) == len(config.cases) * len(QUANTITIES)
    assert min(row["p_value"] for row in summary) > 0.01 / 20
    assert max(max(abs(row["shift"]), abs(row["spread"])) for row in summary) < 4


@pytest.mark.exhaustive
@pytest.mark.parametrize("activation", ["relu", "probit"])
def test_ranks_with_known_variances_are_uniform(activation):
    """The sampler of the reference posteriors, whose variances are fixed: ranks of the outputs at two inputs."""
    config = hmc.Config(
        hidden=(3,), activation=activation, noise_variance=0.1, prior_variance=1.0, warmup=80, samples=190, steps=15
    )
    ranks = []
    for rng in np.random.default_rng(5).spawn(150):
        X, further = rng.standard_normal((8, 2)), rng.standard_normal((2, 2))
        truth, model = draw_joint(hmc.model_of(Rows(X, np.zeros(8)), config), further, rng)
        draws, _ = draw_outputs(Rows(X, model.rows.y), config, further, 19, rng)
        ranks.append(np.sum(draws < truth.predictions, axis=0))
    for of in np.array(ranks).T:
        found = judge(of, 19)
        assert found["p_value"] > 0.01 / 4
        assert max(abs(found["shift"]), abs(found["spread"])) < 3.5


def test_known_variances_are_not_ranked():
    options = {**RECTIFIED, "replications": 20, "warmup": 10, "thin": 1, "draws": 4, "steps": 2}
    arrays, summary = compute(Config(**options, variances=((0.1, 1.0),)), 0)
    assert [row["quantity"] for row in summary] == ["first output", "second output", "log joint"]
    assert arrays["ranks"].shape == (1, 20, 3)
    with pytest.raises(ValueError, match="one pair per case, 5"):
        Config(variances=((0.1, 1.0),))


@pytest.mark.exhaustive
def test_a_wrong_noise_is_detected(monkeypatch):
    right = hyperparameters.draw_variance
    wrong = Config(**QUICK, **RECTIFIED)

    def halved(shape, rate, rng):
        return right(shape if np.ndim(shape) or shape == wrong.noise_prior[0] else 0.5 * shape, rate, rng)

    monkeypatch.setattr(hyperparameters, "draw_variance", halved)
    noise = compute(wrong, 3)[1][QUANTITIES.index("noise deviation")]
    assert noise["p_value"] < 1e-4
    assert noise["shift"] < -4


def test_files(tmp_path: Path):
    options = {**RECTIFIED, "replications": 20, "warmup": 10, "thin": 1, "draws": 4, "steps": 2}
    folder = run_experiment("calibration", options, 0, tmp_path / "c", "c")
    with np.load(folder / "arrays.npz", allow_pickle=False) as arrays:
        assert arrays["ranks"].shape == (1, 20, 5)
        assert int(arrays["draws"]) == 4
        again = compute(Config(**options), 0)[0]["ranks"]
        np.testing.assert_array_equal(arrays["ranks"], again)
    assert (
        (folder / "summary.csv").read_text().startswith("case,quantity,replications,chi_square,p_value,shift,spread\n")
    )


def test_the_reason_of_a_cell_without_convergence(tmp_path: Path):
    text = (
        "study: s\ndatasets: [cubic]\nsplits: {scheme: standard, count: 1}\n"
        "methods: [{use: hmc, hidden: [5], samples: 10, warmup: 0, steps: 1}]\n"
    )
    (one,) = jobs_of(tmp_path, text)
    row = run_cell(one).row
    assert row["status"] == "ok"
    assert row["reason"].startswith("not converged: R-hat of predictions ")
    assert np.isfinite(row["ll"])


def score_series(distribution, y):
    """Return RMSE and log-likelihood, each with the first-order contributions (S,) of the draws, of mean 0."""
    errors = distribution.mean() - y
    rmse = np.sqrt(np.mean(errors**2))
    by_draw = (distribution.means - distribution.mean()) @ errors / (len(y) * rmse)
    densities = np.exp(-0.5 * (distribution.means - y) ** 2 / distribution.variances) / np.sqrt(distribution.variances)
    ratios = densities / densities.mean(axis=0)
    return (rmse, by_draw), (distribution.logpdf(y).mean(), ratios.mean(axis=1) - 1.0)


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_reference_values_of_boston():
    """Pooled draws of other programs give RMSE 2.292 and log-likelihood -2.232 under the same priors."""
    boston = data.load_dataset("boston")
    train, test = data.standard_split(len(boston.y), 0)
    options = {"chains": 2, "samples": 800, "warmup": 200, "steps": 300, "stored": 1600}
    model = Estimator("hmc", **options, random_state=0).fit(boston.X[train], boston.y[train])
    scores = score_series(model.predict_dist(boston.X[test]), boston.y[test])
    for (found, by_draw), expected, limit in zip(scores, (2.292, -2.232), (0.02, 0.01), strict=True):
        error = standard_error(by_chain(model.state_, by_draw))
        assert error < limit  # otherwise the comparison is too weak
        assert abs(found - expected) < 4 * error, (found, expected, error)
