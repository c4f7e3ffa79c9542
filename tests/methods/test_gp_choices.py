"""The covariance of the highest evidence, hyperparameters from a subset, and predictions in single precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from ep_bench import methods
from ep_bench.covariances.from_options import CANDIDATES
from ep_bench.methods import gp
from ep_bench.types import Rows
from tests.methods.support import wave

FIXED: dict[str, Any] = {"optimize": False, "lengthscale": 0.7, "magnitude": 1.0, "noise_variance": 0.04}
PROCESSES: dict[str, dict[str, Any]] = {
    "gp": {},
    "sgp": {"inducing": 6},
    "sgp vfe": {"inducing": 6, "approximation": "vfe"},
}


def fit(name: str, rows: Rows, **options: Any) -> tuple[Any, dict[str, list[float]]]:
    method = methods.get(name[:3].strip())
    return method.fit(rows, method.config(**{**PROCESSES[name], **options}), np.random.default_rng(0))


def steps() -> Rows:
    """A rough function, for which a Matern covariance is better."""
    rows = wave(n=80, d=1, noise=0.0)
    return Rows(rows.X, np.sign(np.sin(3.0 * rows.X[:, 0])))


@pytest.mark.parametrize("name", PROCESSES)
class TestKernelByEvidence:
    def test_it_is_the_best_of_separate_fits(self, name: str) -> None:
        fits = {kernel: fit(name, steps(), kernel=kernel, starts=2) for kernel in CANDIDATES}
        best = min(CANDIDATES, key=lambda kernel: fits[kernel][1]["objective"][-1])
        state, trace = fit(name, steps(), kernel="evidence", starts=2)
        assert state.covariance.kind == best
        assert best != "se" or name == "sgp vfe"  # its bound with few inducing inputs prefers a smooth function
        assert trace == fits[best][1]
        np.testing.assert_array_equal(state.theta, fits[best][0].theta)

    def test_fixed_hyperparameters_are_refused(self, name: str) -> None:
        fixed = {"lengthscale": 1.0, "magnitude": 1.0, "noise_variance": 0.1}
        for options in (fixed, {"optimize": False}):
            with pytest.raises(ValidationError, match="compares kernels with learned hyperparameters"):
                fit(name, steps(), kernel="evidence", **options)


class TestSubset:
    rows, test = wave(n=90), wave(n=20, seed=5)

    def test_all_points_are_the_usual_fit(self) -> None:
        usual, _ = fit("gp", self.rows)
        for count in (90, 1000):
            state, _ = fit("gp", self.rows, subset=count)
            np.testing.assert_array_equal(state.theta, usual.theta)
            np.testing.assert_array_equal(gp.latent(state, self.test.X), gp.latent(usual, self.test.X))

    def test_some_points_learn_and_all_predict(self) -> None:
        state, _ = fit("gp", self.rows, subset=30)
        rng = np.random.default_rng(0)
        some = np.sort(rng.permutation(90)[:30])
        learned, _ = gp.fit(Rows(self.rows.X[some], self.rows.y[some]), gp.Config(), rng)
        np.testing.assert_array_equal(state.theta, learned.theta)
        whole = gp._state(gp.problem_of(self.rows, gp.Config()), learned.theta, 0, True)
        assert state.log_evidence == whole.log_evidence
        np.testing.assert_array_equal(gp.latent(state, self.test.X), gp.latent(whole, self.test.X))


class TestSinglePrecision:
    @pytest.mark.parametrize("kernel", ["se", "matern32", {"sum": ["se", "linear"]}], ids=str)
    @pytest.mark.parametrize("duplicates", ["keep", "merge"])
    def test_2000_points(self, kernel: Any, duplicates: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("ep_bench.covariances.exact_evidence.BLOCK", 2000 * 150)
        rows, test = wave(n=1990), wave(n=50, seed=5)
        rows = Rows(np.append(rows.X, rows.X[:10], axis=0), np.append(rows.y, rows.y[:10] + 0.1))
        options = {**FIXED, "kernel": kernel, "duplicates": duplicates}
        (state, _), (single, _) = (fit("gp", rows, **options, precision=one) for one in ("double", "single"))
        assert single.factor.dtype == np.float32
        assert single.log_evidence == pytest.approx(state.log_evidence, abs=0.05)
        expected, found = gp.predict(state, test.X, None), gp.predict(single, test.X, None)
        np.testing.assert_allclose(found.mean(), expected.mean(), atol=2e-3)
        np.testing.assert_allclose(found.std(), expected.std(), rtol=1e-4)

    def test_a_small_noise_is_refused(self) -> None:
        with pytest.raises(FloatingPointError, match=r"noise_variance is 0.0001, single precision needs .*double"):
            fit("gp", wave(), **{**FIXED, "noise_variance": 1e-4}, precision="single")
