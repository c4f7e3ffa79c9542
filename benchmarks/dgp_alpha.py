"""The power alpha of `dgp_ep`: validation scores on five data sets, and the evidence of 30 data points.

A fifth of the training points of standard splits 0 to 4 are validation points. Test points are not used. The fits have
no hidden layer, or one of two dimensions. Rows that the file has are not computed again.

The 30 data points are y = sin(2 x) + 0.3 e with x uniform on (-3, 3), 10 inducing inputs and no hidden layer. The
evidence of untied power EP is that at the parameters of the fit; for alpha = 1 it is the evidence of FITC.

    python -m benchmarks.dgp_alpha validation docs/figures/dgp-alpha.csv
    python -m benchmarks.dgp_alpha hidden docs/figures/dgp-alpha-hidden.csv
    python -m benchmarks.dgp_alpha thirty docs/figures/dgp-alpha-thirty.csv
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from itertools import chain, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy.linalg import solve_triangular
from scipy.spatial.distance import cdist
from scipy.stats import multivariate_normal

from benchmarks.vi_depth import points
from ep_bench import Estimator
from ep_bench.methods import dgp_ep
from ep_bench.methods.dgp_ep.layout import layers
from ep_bench.methods.dgp_ep.outputs import JITTER
from ep_bench.types import Array, Rows

DATASETS = ("boston", "concrete", "energy", "wine", "yacht")
ALPHAS = (1.0, 0.5, 0.1, 0.0)
SPLITS, SEEDS = 5, 5


def measured(train: Rows, validation: Rows, alpha: float, hidden: tuple[int, ...]) -> dict[str, Any]:
    """Return validation scores, energy (nats per data point) and noise of a fit, standardised units."""
    state, trace = dgp_ep.fit(train, dgp_ep.Config(hidden=hidden, alpha=alpha), np.random.default_rng(0))
    found: Any = dgp_ep.predict(state, validation.X, np.random.default_rng(1))
    densities = found.logpdf(validation.y)
    return {
        "ll": round(float(densities.mean()), 4),
        "ll_median": round(float(np.median(densities)), 4),
        "ll_min": round(float(densities.min()), 3),
        "rmse": round(float(np.sqrt(np.mean((found.mean() - validation.y) ** 2))), 4),
        "energy": round(-state.log_evidence / len(train.y), 4),
        "noise_deviation": round(trace["noise_deviation"][-1], 4),
    }


def of_split(split: int, dataset: str, alpha: float, hidden: tuple[int, ...]) -> dict[str, Any]:
    """Return the row of a fit."""
    warnings.simplefilter("ignore")  # most fits with a hidden layer have not converged
    row = {"dataset": dataset, "split": split, "alpha": alpha}
    return row | measured(*points(dataset, split), alpha, hidden)


def fits(hidden: tuple[int, ...], done: int) -> Iterator[dict[str, Any]]:
    """Yield the row of each fit after the first ``done``."""
    tasks = list(product(range(SPLITS), DATASETS, ALPHAS))[done:]
    yield from Parallel(n_jobs=-1, return_as="generator")(delayed(of_split)(*task, hidden) for task in tasks)


def untied_evidence(state: dgp_ep.State, alpha: float, x: Array, y: Array) -> float:
    """Return the log evidence of power EP with one factor per data point x (n, 1), y (n,), nats."""
    layer = layers(state.structure, state.theta)[0]
    noise, s2 = np.exp(2.0 * layer.log_noise[0]), np.exp(2.0 * layer.log_magnitude[0])
    Z, inputs = layer.inputs[0] / np.exp(layer.log_lengthscales), x / np.exp(layer.log_lengthscales)
    L = np.linalg.cholesky(s2 * np.exp(-0.5 * cdist(Z, Z, "sqeuclidean")) + JITTER * np.eye(len(Z)))
    V = solve_triangular(L, s2 * np.exp(-0.5 * cdist(Z, inputs, "sqeuclidean")), lower=True)
    rest = s2 - (V**2).sum(axis=0)  # variance of f given u
    fitted = multivariate_normal.logpdf(y, cov=V.T @ V + np.diag(noise + alpha * rest))
    correction = rest / noise if alpha == 0.0 else (1.0 - alpha) / alpha * np.log1p(alpha * rest / noise)
    return float(fitted - 0.5 * correction.sum())


def thirty(seed: int) -> Iterator[dict[str, Any]]:
    """Yield noise, evidence and test scores of each alpha and of the exact process on 30 data points."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-3, 3, 1030)[:, None]
    y = np.sin(2 * x[:, 0]) + 0.3 * rng.standard_normal(1030)
    entries: dict[str, dict[str, Any]] = {
        f"{alpha:g}": {"name": "dgp_ep", "hidden": [], "inducing": 10, "alpha": alpha} for alpha in ALPHAS
    }
    entries |= {"FITC": {"name": "sgp", "inducing": 10, "starts": 5}, "exact": {"name": "gp", "starts": 5}}
    for label, options in entries.items():
        model = Estimator(**options, random_state=seed).fit(x[:30], y[:30])
        row = {"seed": seed, "model": label, "log_evidence": round(float(model.log_evidence_), 2)}
        if options["name"] == "dgp_ep":
            noise = float(model.hyperparameters_["noise_deviation_1"][0])
            rows = model.x_scaling_.apply(x[:30]), model.y_scaling_.apply(y[:30, None])[:, 0]
            row["untied"] = round(untied_evidence(model.state_, options["alpha"], *rows), 2)
        else:
            noise = float(model.hyperparameters_["noise_variance"]) ** 0.5
        row["noise_deviation"] = round(noise * y[:30].std(), 4)
        yield row | {"test_ll": round(float(model.predict_dist(x[30:]).logpdf(y[30:]).mean()), 3)}


def main(study: str, path: str) -> None:
    """Write one row per fit to the file ``path``; ``study`` is validation, hidden or thirty."""
    warnings.simplefilter("ignore")
    rows: list[Any] = pd.read_csv(path).to_dict("records") if study != "thirty" and Path(path).exists() else []
    hidden = (2,) if study == "hidden" else ()
    for row in chain.from_iterable(map(thirty, range(SEEDS))) if study == "thirty" else fits(hidden, len(rows)):
        rows.append(row)
        pd.DataFrame(rows).to_csv(path, index=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
