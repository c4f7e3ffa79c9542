"""Two contradicting observations: the examples, their tilted distribution, and sweeps of expectation propagation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from ep_bench import Estimator
from ep_bench.experiments.gp_t_2011 import MIDPOINT, conflict_examples
from ep_bench.experiments.gp_t_2011.conflict_convergence import compute as conflict_convergence
from ep_bench.experiments.gp_t_2011.conflict_tilted import compute as conflict_tilted
from ep_bench.experiments.gp_t_2011.conflict_tilted.figure import measures
from ep_bench.experiments.record import ExperimentResults


@pytest.mark.parametrize("number", [1, 2])
def test_the_pair_is_alone_in_a_gap_and_contradictory(number: int) -> None:
    data = conflict_examples.example(number)
    x, y = data
    assert np.all((x[:2] > 1.0) & (x[:2] < 3.0))
    assert not np.any((x[2:] > 1.0) & (x[2:] < 3.0))
    assert x[0] + x[1] == pytest.approx(2 * MIDPOINT)
    off = y - conflict_examples.truth(number, x)
    assert off[0] * off[1] < 0.0
    assert np.abs(off[:2]).min() > 3.0 * np.median(np.abs(off[2:]))
    left, right = np.sort(x[x < x[0]])[-1], np.sort(x[x > x[1]])[0]
    assert x[2:4].tolist() == [left, right]
    assert len(np.unique(x)) == len(x)


def test_the_second_example_is_closer_and_more_nonlinear() -> None:
    apart = [np.ptp(conflict_examples.example(number).x[:2]) for number in (1, 2)]
    assert apart == pytest.approx([1.0, 0.5])
    grid = np.linspace(-5.0, 0.0, 101)
    bends = [np.abs(np.diff(conflict_examples.truth(number, grid), 2)).max() for number in (1, 2)]
    assert bends[1] > 2.0 * bends[0]


# The tilted distribution


RUN = "conflict_tilted", {"points": 81}, "tilted"


def test_the_tilted_distribution_is_the_product_and_has_two_modes(results: ExperimentResults) -> None:
    arrays, rows = results.arrays, results.summary
    first, second = arrays["first"], arrays["second"]
    q = stats.multivariate_normal(arrays["mean"], arrays["covariance"])
    np.testing.assert_allclose(arrays["marginal"][7, 60], q.pdf([first[7], second[60]]))
    for i, eta in enumerate(arrays["fractions"]):
        f = np.array([first[30], second[55]])
        likelihoods = stats.t(1.2, loc=arrays["y"], scale=0.095).pdf(f) ** eta
        np.testing.assert_allclose(arrays[f"likelihoods_{i}"][[0, 1], [30, 55]], likelihoods)
        product = arrays["marginal"] * np.outer(*arrays[f"likelihoods_{i}"])
        weights = product / product.sum()
        row = rows[i]
        assert float(row["mean_1"]) == pytest.approx(weights.sum(axis=1) @ first, abs=1e-6)
        assert float(row["mean_2"]) == pytest.approx(weights.sum(axis=0) @ second, abs=1e-6)
        cell = (first[1] - first[0]) * (second[1] - second[0])
        assert float(row["log_normaliser"]) == pytest.approx(np.log(product.sum() * cell), abs=1e-6)
    assert [int(row["modes"]) >= 2 for row in rows] == [True, True]


def test_undamped_updates_of_the_pair_are_as_in_the_paper(results: ExperimentResults) -> None:
    plain = {key: float(value) for key, value in results.summary[0].items()}
    assert plain["site_1"] > 5.0
    assert plain["site_2"] < -0.5
    assert plain["again_1"] == plain["site_1"]  # the cavity is improper, so that the site does not change
    assert plain["cavity_1"] < 0.0
    assert plain["together_1"] > 0.0
    assert plain["together_2"] > 0.0


def test_half_of_the_likelihoods_flatten_the_tilted_distribution(results: ExperimentResults) -> None:
    arrays, f = results.arrays, np.linspace(-6.0, 10.0, 8001)

    def variance(site: int, eta: float) -> float:
        cavity = stats.norm(arrays["mean"][site], np.sqrt(arrays["covariance"][site, site])).pdf(f)
        weights = cavity * stats.t(1.2, loc=arrays["y"][site], scale=0.095).pdf(f) ** eta
        return float(np.cov(f, aweights=weights, ddof=0))

    found = {name.partition(", η = 0.5")[0]: value for name, value in measures(results).items()}
    largest = max(variance(site, 0.5) / variance(site, 1.0) for site in (0, 1))
    assert found["largest variance of a one-dimensional tilted distribution"] == pytest.approx(largest, rel=0.05)
    half, whole = ([float(row[f"together_{i}"]) for i in (1, 2)] for row in reversed(results.summary))
    smallest = min(half[0] / whole[0], half[1] / whole[1])
    assert found["smallest precision of a site after a parallel update"] == pytest.approx(smallest)
    assert 0.0 < found["peak of the tilted distribution"] < 1.0


def test_the_sweep_over_the_other_sites_agrees_with_plain_formulas() -> None:
    data, hyper = conflict_examples.example(1), conflict_examples.ExampleHyperparameters(0.9, 4.3, 0.095, 1.2)
    K = hyper.magnitude * np.exp(-0.5 * (np.subtract.outer(data.x, data.x) / hyper.lengthscale) ** 2)
    tau, b = np.zeros(len(data.x)), np.zeros(len(data.x))
    grid = np.linspace(-12.0, 12.0, 40001)
    for i in range(2, len(data.x)):
        Sigma = np.linalg.inv(np.linalg.inv(K) + np.diag(tau))
        variance, mean = Sigma[i, i], (Sigma @ b)[i]
        precision, shift = 1.0 / variance - tau[i], mean / variance - b[i]
        density = np.exp(shift * grid - 0.5 * precision * grid**2) * stats.t(1.2, data.y[i], 0.095).pdf(grid)
        density /= density.sum()
        m = density @ grid
        v = density @ (grid - m) ** 2
        tau[i], b[i] = 1.0 / v - precision, m / v - shift
    Sigma = np.linalg.inv(np.linalg.inv(K) + np.diag(tau))
    mean, covariance = conflict_tilted.marginal(data, hyper)
    np.testing.assert_allclose(mean, (Sigma @ b)[:2], rtol=1e-4)
    np.testing.assert_allclose(covariance, Sigma[:2, :2], rtol=1e-4)


def test_modes_are_counted() -> None:
    x = np.linspace(-4.0, 4.0, 81)
    bump = np.exp(-0.5 * np.add.outer((x - 2.0) ** 2, x**2) / 0.3)
    assert conflict_tilted.modes(bump) == 1
    assert conflict_tilted.modes(bump + 0.5 * bump[::-1]) == 2
    assert conflict_tilted.modes(bump + 0.005 * bump[::-1]) == 1


# Convergence


AT_THREE = conflict_convergence.Config(magnitude=3.0, orders=1)  # faster than the paper's magnitude


@pytest.fixture(scope="module")
def convergence() -> tuple[dict[str, Any], list[dict[str, Any]]]:
    return conflict_convergence.compute(AT_THREE, 0)


def test_schemes_fail_and_converge_as_in_the_paper(convergence: Any) -> None:
    arrays, summary = convergence
    found = {row["scheme"]: row for row in summary}
    oscillating = [found["sequential, δ = 0.8"], found["parallel, δ = 0.5"]]
    assert all(row["mismatch"] > 0.1 and row["undefined"] > 10 for row in oscillating)
    assert found["sequential, δ = 0.5"]["mismatch"] < 1e-3
    for label in ("double loop", "double loop, Newton"):
        assert found[label]["mismatch"] < 1e-3
        assert found[label]["undefined"] == 0
        assert found[label]["log_evidence"] == pytest.approx(found["sequential, δ = 0.5"]["log_evidence"], abs=1e-5)
    assert np.shape(arrays["order_mismatch"]) == (2, 1)
    assert found["parallel, δ = 1, η = 0.5"]["mismatch"] < 1e-6
    assert found["parallel, δ = 1, η = 0.5"]["undefined"] == 0
    for i in range(len(summary)):
        undefined = ~np.isfinite(arrays[f"log_evidence_{i}"])
        np.testing.assert_array_equal(undefined, np.isinf(arrays[f"mismatch_{i}"]))


def test_a_scheme_ends_at_the_fixed_point_of_the_method(convergence: Any) -> None:
    arrays, _ = convergence
    config = AT_THREE
    data = conflict_examples.example(2)
    hyper = conflict_examples.ExampleHyperparameters(config.lengthscale, config.magnitude, config.scale, config.nu)
    given = {"optimize": False, "standardize": False, "fraction": 0.5}
    fractional = Estimator("gp_t", **hyper._asdict(), **given).fit(data.x[:, None], data.y)
    last = list(arrays["labels"]).index("parallel, δ = 1, η = 0.5")
    assert arrays[f"log_evidence_{last}"][-1] == pytest.approx(fractional.log_evidence_, abs=1e-7)
    np.testing.assert_allclose(arrays[f"precisions_{last}"][-1], fractional.site_precisions_[:4], rtol=1e-5)


def test_a_stage_starts_from_the_final_state_of_the_previous_one() -> None:
    def stage(sweeps: int) -> dict[str, Any]:
        return {"updates": "parallel", "damping": 0.5, "sweeps": sweeps}

    schemes = [{"label": "a", "stages": [stage(7)]}, {"label": "b", "stages": [stage(3), stage(4)]}]
    arrays, _ = conflict_convergence.compute(conflict_convergence.Config(schemes=schemes), 0)
    np.testing.assert_allclose(arrays["precisions_0"], arrays["precisions_1"], rtol=1e-9)
    assert arrays["stage_1"].tolist() == [0, 0, 0, 1, 1, 1, 1]
