"""The tilted distribution of two contradicting observations in expectation propagation (figure 2).

The data are those of example 1 of ``conflict_examples``, at a lengthscale with a bimodal posterior. From empty sites,
all other sites are updated once, sequentially and without damping, which gives q(f1, f2 | y3, ..., yn). The tilted
distribution of the two latent values is q times both likelihoods to the power eta. Then the two sites are updated
sequentially, and all sites once more. As the paper describes, the first site gets a large precision and the second site
a negative one. In the second sweep the cavity of the first site is improper, so that this site does not change. After a
parallel update from the same q, both precisions are positive.

Deviation: the example and its hyperparameters are ours. The hyperparameters are those of highest density under flat
priors, rounded, except for the lengthscale, which is the paper's.
"""

from __future__ import annotations

from itertools import islice
from typing import Annotated, Any, NamedTuple

import numpy as np
from pydantic import Field, PositiveFloat
from scipy.special import gammaln

from ep_bench.experiments.gp_t_2011.conflict_examples import Example, ExampleHyperparameters, covariances, example
from ep_bench.experiments.method_entries import Options
from ep_bench.methods.gp_t import sweeps
from ep_bench.methods.gp_t.sites import SiteModel, empty, sites
from ep_bench.types import Array

PAIR = 2  # contradicting observations, which come first

Power = Annotated[float, Field(gt=0, le=1)]


class Config(Options):
    """Options of the experiment."""

    fractions: tuple[Power, ...] = Field(
        (1.0, 0.5), min_length=1, max_length=3, description="powers eta of the two likelihoods (figure 2: 1 and 0.5)"
    )
    lengthscale: PositiveFloat = Field(0.9, description="of the squared exponential (figure 2: 0.9)")
    magnitude: PositiveFloat = Field(4.3, description="variance of the squared exponential; ours")
    scale: PositiveFloat = Field(0.095, description="sigma of the Student-t; ours")
    nu: PositiveFloat = Field(1.2, description="degrees of freedom; ours")
    half_width: PositiveFloat = Field(4.0, description="distance from the mean of q to the ends of the grid; ours")
    points: int = Field(121, ge=5, description="points of the grid per dimension; ours")


class SiteUpdates(NamedTuple):
    """Results of undamped updates of the pair's sites."""

    precisions: Array  # (2,) after the first sweep over all sites, which updates the pair last
    again: Array  # (2,) after the second sweep
    cavity: float  # precision of the first site's cavity after the second sweep
    together: Array  # (2,) precisions after a parallel update of the pair in the first sweep instead


def compute(config: Config, seed: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:  # noqa: ARG001 no random numbers
    """Return the arrays of the figure, and one summary row per power.

    ``first`` and ``second`` (P,): values of f1 and f2. On their grid (P, P), with f1 along the first axis, ``marginal``
    is the density q(f1, f2 | y3, ..., yn). ``likelihoods_<i>`` (2, P): likelihoods of f1 and of f2 to the power
    ``fractions`` i. The tilted distribution is proportional to the product of all three. ``y`` (2,): the two
    observations. ``mean`` (2,) and ``covariance`` (2, 2): moments of q.
    """
    data = example(1)
    hyper = ExampleHyperparameters(config.lengthscale, config.magnitude, config.scale, config.nu)
    mean, covariance = marginal(data, hyper)
    first, second = (m + config.half_width * np.linspace(-1.0, 1.0, config.points) for m in mean)
    q = _gaussian(first, second, mean, covariance)
    arrays: dict[str, Any] = {
        "first": first, "second": second, "marginal": q, "mean": mean, "covariance": covariance,
        "y": data.y[:PAIR], "fractions": np.array(config.fractions),
    }  # fmt: skip
    summary = []
    for i, eta in enumerate(config.fractions):
        one, two = (np.exp(eta * log_t(f - y, hyper)) for f, y in zip((first, second), data.y[:PAIR], strict=True))
        arrays[f"likelihoods_{i}"] = np.stack([one, two])
        masses = q * np.outer(one, two) * (first[1] - first[0]) * (second[1] - second[0])
        summary.append(_row(eta, first, second, masses, updates(data, hyper, eta)))
    return arrays, summary


def marginal(data: Example, hyper: ExampleHyperparameters) -> tuple[Array, Array]:
    """Return mean (2,) and covariance (2, 2) of the pair after one sweep over all other sites."""
    model, tau, b = _others(data, hyper, 1.0)
    covariance = np.linalg.inv(np.linalg.inv(model.K) + np.diag(tau))
    return (covariance @ b)[:PAIR], covariance[:PAIR, :PAIR]


def updates(data: Example, hyper: ExampleHyperparameters, eta: float) -> SiteUpdates:
    """Return the results of undamped updates with power eta, in the order y3, ..., yn, y1, y2.

    Raises FloatingPointError if the posterior of the other sites is improper.
    """
    model, tau, b = _others(data, hyper, eta)
    start = sites(model, tau, b)
    if start is None:
        raise FloatingPointError("the posterior of the other sites is improper")
    together = start.tau + start.steps(eta)[0]
    order = np.roll(np.arange(len(data.y)), -PAIR)
    turned = model._replace(K=model.K[np.ix_(order, order)], y=model.y[order])
    first, second = islice(sweeps.sequential(turned, empty(turned), 1.0), 2)
    return SiteUpdates(first.tau[-PAIR:], second.tau[-PAIR:], float(second.cavity[0][-PAIR]), together[:PAIR])


def log_t(residual: Array, hyper: ExampleHyperparameters) -> Array:
    """Return the log density of a residual under the Student-t."""
    nu, scale = hyper.nu, hyper.scale
    constant = gammaln(0.5 * (nu + 1.0)) - gammaln(0.5 * nu) - 0.5 * np.log(nu * np.pi * scale**2)
    return np.asarray(constant - 0.5 * (nu + 1.0) * np.log1p(residual**2 / (nu * scale**2)))


def _others(data: Example, hyper: ExampleHyperparameters, eta: float) -> tuple[SiteModel, Array, Array]:
    """Return the model of all data points, and its sites after one sweep; the sites of the pair are empty."""
    K = covariances(data.x, hyper)
    others = SiteModel(K[PAIR:, PAIR:], data.y[PAIR:], hyper.nu, hyper.scale, eta)
    after = next(sweeps.sequential(others, empty(others), 1.0))
    tau, b = (np.concatenate([np.zeros(PAIR), part]) for part in (after.tau, after.b))
    return SiteModel(K, data.y, hyper.nu, hyper.scale, eta), tau, b


def _gaussian(first: Array, second: Array, mean: Array, covariance: Array) -> Array:
    """Return the density (P, P) of a Gaussian of two variables."""
    away = np.stack(np.meshgrid(first - mean[0], second - mean[1], indexing="ij"))
    squares = np.einsum("iab,ij,jab->ab", away, np.linalg.inv(covariance), away)
    return np.asarray(np.exp(-0.5 * squares) / (2.0 * np.pi * np.sqrt(np.linalg.det(covariance))))


def _row(eta: float, first: Array, second: Array, masses: Array, found: SiteUpdates) -> dict[str, Any]:
    """Return the summary of a power: moments and modes of the tilted distribution, and the site updates."""
    weights = masses / masses.sum()
    one, two = weights.sum(axis=1), weights.sum(axis=0)
    means = float(one @ first), float(two @ second)
    values: dict[str, float] = {
        "log_normaliser": float(np.log(masses.sum())),
        "mean_1": means[0],
        "mean_2": means[1],
        "deviation_1": float(np.sqrt(one @ (first - means[0]) ** 2)),
        "deviation_2": float(np.sqrt(two @ (second - means[1]) ** 2)),
        **{f"site_{i + 1}": float(found.precisions[i]) for i in range(PAIR)},
        **{f"again_{i + 1}": float(found.again[i]) for i in range(PAIR)},
        "cavity_1": found.cavity,
        **{f"together_{i + 1}": float(found.together[i]) for i in range(PAIR)},
    }
    return {"eta": eta, "modes": modes(weights), **{name: round(value, 6) for name, value in values.items()}}


def modes(density: Array) -> int:
    """Return the number of points of a grid (P, Q) above all 8 neighbours and above 1 percent of the maximum."""
    padded = np.pad(density, 1, constant_values=-np.inf)
    rows, columns = density.shape
    around = [
        padded[1 + i : 1 + i + rows, 1 + j : 1 + j + columns]
        for i in (-1, 0, 1)
        for j in (-1, 0, 1)
        if (i, j) != (0, 0)
    ]
    return int(np.sum((density > np.max(around, axis=0)) & (density > 0.01 * density.max())))
