"""Expectation propagation for networks sweep by sweep and beyond convergence, and Monte Carlo by time.

Fits with increasing numbers of sweeps have the same seed. Except for its last ten sweeps, which are never shortened, a
fit with fewer sweeps is the beginning of a longer one; its test scores are those of the longer fit at that sweep. The
tolerance of the entries is far below the default of the method, so that sweeps continue after convergence. Chains of
increasing length, half of which is warm-up, are separate fits.

Seconds are processor time without compilation. Log densities are means over the test data in original units, squared
errors are in variances of the training targets.

The paper's chains took 110 times as long as its expectation propagation on Housing (table 1).
"""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
from pydantic import Field, PositiveInt, field_validator

from ep_bench import data
from ep_bench.estimator import warm_up
from ep_bench.experiments.dataset_entries import SetName
from ep_bench.experiments.ep_nn_2014 import CLOSE
from ep_bench.experiments.ep_nn_2014.network_fits import NetworkFit, fitted, rounded
from ep_bench.experiments.method_entries import ExperimentMethod, Options
from ep_bench.types import Array, Dataset, SplitScheme


class Config(Options):
    """Options of the experiment."""

    dataset: SetName = Field("boston", description="regression data set (section 4.4: Housing)")
    folds: PositiveInt = Field(10, description="folds of the scheme (section 4.4: 10)")
    shown: PositiveInt = Field(2, description="number of folds that are computed; ours")
    methods: tuple[ExperimentMethod, ...] = Field(
        (
            ExperimentMethod.named("ep_nn", "NN-EP-LA", hidden=[10], prior="laplace", tolerance=1e-12),
            ExperimentMethod.named("ep_nn", "NN-EP-ARD", hidden=[10], prior="ard", tolerance=1e-12),
        ),
        min_length=1,
        max_length=3,
        description="method entries with the option sweeps",
    )
    sweeps: tuple[PositiveInt, ...] = Field(
        (5, 10, 20, 30, 40, 50, 60, 80, 110, 150, 200, 280, 400),
        min_length=2,
        description="sweeps of the fits; ours",
    )
    chains: ExperimentMethod = Field(
        ExperimentMethod.named(
            "hmc", "NN-MC", hidden=[10], activation="tanh", prior="ard", weight_prior=[0.25, 0.000625],
            noise_prior=[0.25, 0.000625], chains=2, steps=600, masses="per weight",
        ),
        description="method entry with the options samples and warmup",
    )  # fmt: skip
    samples: tuple[PositiveInt, ...] = Field(
        (2, 5, 10, 20, 50, 100, 200), min_length=2, description="draws per chain, after as many draws of warm-up; ours"
    )

    @field_validator("sweeps", "samples")
    @classmethod
    def _increasing(cls, numbers: tuple[int, ...]) -> tuple[int, ...]:
        if list(numbers) != sorted(set(numbers)):
            raise ValueError(f"numbers must increase; found {list(numbers)}")
        return numbers


def compute(config: Config, seed: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the arrays of both figures, and one summary row per method and fold.

    ``labels`` (M,) name the methods, ``chains`` the sampler; ``sweeps`` (S,) and ``samples`` (H,). For method i on fold
    f: ``scores_<i>_<f>`` (3, S), seconds, log density (nats) and squared error; ``steps_<i>_<f>`` (G, T), relative
    steps of the ``groups`` of sites after every sweep; ``log_z_<i>_<f>`` and ``log_evidence_<i>_<f>`` (T,), nats;
    ``close_<i>_<f>``, the first sweep with all steps below 1e-4, 0 for none; ``usual_<i>_<f>`` (3,), the scores of a
    fit with that tolerance. For the sampler: ``sampled_<f>`` (3, H).
    """
    arrays: dict[str, Any] = {
        "labels": np.array([entry.name for entry in config.methods]), "chains": np.array(config.chains.name),
        "sweeps": np.array(config.sweeps), "samples": np.array(config.samples), "folds": np.array(config.shown),
        "dataset": np.array(config.dataset),
    }  # fmt: skip
    summary = []
    whole = data.load_dataset(config.dataset)
    scheme = data.resolve_scheme(SplitScheme("kfold", folds=config.folds), whole.card)
    for f in range(config.shown):
        split = data.make_split(scheme, whole, f)
        for i, entry in enumerate(config.methods):
            fits = [_timed(entry, {"sweeps": number}, whole, split, seed) for number in config.sweeps]
            history = _history(fits[-1][0])
            found = np.array([values for _, values in fits]).T
            usual = _timed(entry, {"sweeps": config.sweeps[-1], "tolerance": CLOSE}, whole, split, seed)[1]
            arrays |= {f"{name}_{i}_{f}": values for name, values in history.items()} | {f"scores_{i}_{f}": found}
            arrays[f"usual_{i}_{f}"] = usual
            summary.append({"method": entry.name, "fold": f, **_of_sweeps(found, usual, history, config.sweeps)})
        numbers: list[dict[str, float]] = [{"samples": number, "warmup": number} for number in config.samples]
        found = np.array([_timed(config.chains, number, whole, split, seed)[1] for number in numbers]).T
        arrays[f"sampled_{f}"] = found
        summary.append({"method": config.chains.name, "fold": f, **_of_chains(found, config.samples)})
    arrays["groups"] = np.array(_groups(fits[-1][0]))
    return arrays, summary


def _timed(
    entry: ExperimentMethod, numbers: dict[str, float], whole: Dataset, split: Any, seed: int
) -> tuple[NetworkFit, Array]:
    """Return a fit with these numbers of sweeps or samples, and its seconds, log density and squared error (3,)."""
    one = entry.model_copy(update=numbers)
    warm_up(one.use, {**(one.model_extra or {}), "standardize": True})
    begun = time.process_time()
    fit = fitted(one, whole.X[split.train], whole.y[split.train], standardize=True, seed=seed)
    taken = time.process_time() - begun
    if fit.model is None:
        return fit, np.array([taken, math.nan, math.nan])
    predicted, y = fit.model.predict_dist(whole.X[split.test]), whole.y[split.test]
    rmse, ll = float(np.sqrt(np.mean((predicted.mean() - y) ** 2))), float(np.mean(predicted.logpdf(y)))
    return fit, np.array([taken, ll, (rmse / whole.y[split.train].std()) ** 2])


def _groups(fit: NetworkFit) -> list[str]:
    return [name.removeprefix("step_") for name in getattr(fit.model, "trace_", {}) if name.startswith("step_")]


def _history(fit: NetworkFit) -> dict[str, Array]:
    """Return the convergence history of a fit."""
    trace = getattr(fit.model, "trace_", {})
    steps = np.array([trace[f"step_{group}"] for group in _groups(fit)])
    near = np.flatnonzero(steps.max(axis=0) < CLOSE) if len(steps) else np.empty(0, dtype=np.intp)
    return {
        "steps": steps, "close": np.array(near[0] + 1 if len(near) else 0),
        "log_z": np.array(trace.get("sum_log_z", [])), "log_evidence": np.array(trace.get("log_evidence", [])),
    }  # fmt: skip


def _of_sweeps(found: Array, usual: Array, history: dict[str, Array], sweeps: tuple[int, ...]) -> dict[str, Any]:
    """Return a summary of scores (3, S): at convergence, at the last sweep, and the best."""
    close = int(history["close"])
    at = usual if close else np.full(3, math.nan)
    steps = history["steps"]
    return {
        "converged_after": close or "",
        "seconds_at_convergence": rounded(at[0]), "ll_at_convergence": rounded(at[1]),
        "mse_at_convergence": rounded(at[2]), "ended_after": steps.shape[-1], "seconds": rounded(found[0, -1]),
        "ll": rounded(found[1, -1]), "mse": rounded(found[2, -1]), **_best(found[1], sweeps),
        "last_step": rounded(steps[:, -1].max()) if steps.size else "",
        "least_step": rounded(steps.max(axis=0).min()) if steps.size else "",
    }  # fmt: skip


def _of_chains(found: Array, samples: tuple[int, ...]) -> dict[str, Any]:
    """Return the same summary for a sampler, by the draws of a chain."""
    blank = dict.fromkeys(("converged_after", "seconds_at_convergence", "ll_at_convergence", "mse_at_convergence"), "")
    return blank | {
        "ended_after": samples[-1], "seconds": rounded(found[0, -1]), "ll": rounded(found[1, -1]),
        "mse": rounded(found[2, -1]), **_best(found[1], samples), "last_step": "", "least_step": "",
    }  # fmt: skip


def _best(ll: Array, numbers: tuple[int, ...]) -> dict[str, Any]:
    """Return the highest log density, and its number of sweeps or draws."""
    place = int(np.argmax(np.where(np.isfinite(ll), ll, -math.inf)))
    return {"ll_best": rounded(ll[place]), "ll_best_after": numbers[place]}
