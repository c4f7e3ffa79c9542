"""Linear regression on two data points by black-box alpha (supplement, figures 1 to 4).

There are two data sets of two data points with targets 0. In example 1, x = (1, 0) and (0, 1), the family of diagonal
Gaussians contains the posterior. In example 2, x = (1, -1) and (-1, 1), it does not. The experiment compares the fitted
variance with the closed forms of sections B.2.2 and B.4.2, and the fitted distributions with the posterior.

Deviation: none. The paper names only alpha = 1e-6 of the ellipses in figures 2 and 4; the other values are ours.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from ep_bench.experiments.method_entries import Options
from ep_bench.methods.bb_alpha.linear import fit_linear
from ep_bench.types import Array

INPUTS = (np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[1.0, -1.0], [-1.0, 1.0]]))
LIMIT = 2.0  # alpha is below the number of data points

Alpha = Annotated[float, Field(gt=0, lt=LIMIT)]


class Config(Options):
    """Options of the experiment."""

    noise_variance: float = Field(1.0, gt=0, description="sigma^2 (figures 1 to 4: 1)")
    alphas: tuple[Alpha, ...] = Field(
        (1e-6, *(i / 10 for i in range(1, 20)), 1.99), min_length=1, description="alphas to fit (figures 1 and 3)"
    )
    ellipses: tuple[Alpha, ...] = Field(
        (1e-6, 0.5, 1.0, 1.5), min_length=1, max_length=5, description="alphas of the ellipses (figures 2 and 4)"
    )
    points: int = Field(199, ge=3, description="points of the closed forms' curves")


def compute(config: Config, seed: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:  # noqa: ARG001 no random numbers
    """Return the arrays of the figures, and one summary row per example and alpha.

    ``grid`` (G,): alphas of the curves. ``alphas`` (A,): fitted alphas. ``ellipses`` (E,): alphas of the ellipses. For
    example i, 1 or 2: ``curve_<i>`` (G,) and ``fitted_<i>`` (A,), a diagonal element of the covariance;
    ``full_<i>`` (A, 2, 2), fits of a full covariance (section B.1); ``mean_<i>`` (E, 2) and ``covariance_<i>`` (E, 2,
    2) of the fits; ``posterior_mean_<i>`` (2,), ``posterior_covariance_<i>`` (2, 2).
    """
    noise = config.noise_variance
    grid = np.linspace(0.0, LIMIT, config.points + 2)[1:-1]
    arrays: dict[str, Any] = {"grid": grid, "alphas": np.array(config.alphas), "ellipses": np.array(config.ellipses)}
    summary = []
    for example, X in enumerate(INPUTS, start=1):
        fitted = [_fit(X, alpha, noise)[1] for alpha in config.alphas]
        full = [_fit(X, alpha, noise, covariance="full")[1] for alpha in config.alphas]
        drawn = [_fit(X, alpha, noise) for alpha in config.ellipses]
        arrays |= {
            f"curve_{example}": np.array([closed_form(example, alpha, noise) for alpha in grid]),
            f"fitted_{example}": np.array([covariance[0, 0] for covariance in fitted]),
            f"full_{example}": np.array(full),
            f"mean_{example}": np.array([mean for mean, _ in drawn]),
            f"covariance_{example}": np.array([covariance for _, covariance in drawn]),
            f"posterior_mean_{example}": np.zeros(2),
            f"posterior_covariance_{example}": np.linalg.inv(np.eye(2) + X.T @ X / noise),
        }
        summary += [_row(example, *pair, noise) for pair in zip(config.alphas, fitted, strict=True)]
    return arrays, summary


def closed_form(example: int, alpha: float, noise: float) -> float:
    """Return a diagonal element of the fitted covariance, 1 / (1 + 2 lambda), by section B.2.2 or B.4.2.

    The printed lambda is (root - shift) / (2 sigma^2 (2 - alpha)), where root^2 - shift^2 = 2 k sigma^2 (2 - alpha) and
    k is the number of the example. Therefore lambda = k / (root + shift), which avoids cancellation for a positive
    shift.
    """
    shift = example * alpha + noise - example
    product = 2.0 * noise * (LIMIT - alpha)
    root = math.sqrt(shift * shift + example * product)
    return 1.0 / (1.0 + 2.0 * (example / (root + shift) if shift > 0.0 else (root - shift) / product))


def _fit(
    X: Array, alpha: float, noise: float, covariance: Literal["diagonal", "full"] = "diagonal"
) -> tuple[Array, Array]:
    fit = fit_linear(X, np.zeros(2), alpha=alpha, prior_variance=1.0, noise_variance=noise, covariance=covariance)
    return fit.mean, fit.covariance


def _row(example: int, alpha: float, covariance: Array, noise: float) -> dict[str, Any]:
    """Return a row of the summary; the relative difference is the larger one of both diagonal elements."""
    expected = closed_form(example, alpha, noise)
    difference = float(np.abs(np.diagonal(covariance) / expected - 1.0).max())
    return {
        "example": example,
        "alpha": alpha,
        "variance": float(covariance[0, 0]),
        "closed_form": expected,
        "relative_difference": difference,
    }
