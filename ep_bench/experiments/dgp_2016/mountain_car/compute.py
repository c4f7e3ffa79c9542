"""The mountain car's value function from few noisy evaluations (Bui and others 2016, figure 1).

The data are states drawn uniformly. The target is the value, minus the number of steps to the goal
(``dynamics.shortest``), plus Gaussian noise. A Gaussian process has one lengthscale per input for both plain and cliff;
a deep one with a hidden layer of two dimensions can transform the inputs first. Methods are scored on a grid of
held-out states, all of it and near the cliff only: root mean squared error against the true value, and mean log density
of evaluations with new noise.

Deviation: the paper states neither the number of data points nor the noise nor how the values were found; all are
ours.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ep_bench.experiments.dgp_2016.mountain_car import dynamics
from ep_bench.experiments.method_entries import Options, SearchedMethod
from ep_bench.methods.dgp_ep.energy import moments
from ep_bench.methods.dgp_ep.layout import size
from ep_bench.predictions import Predictive
from ep_bench.types import Array

DRIVERS = 2000  # states at which value iteration is compared with driving
MARGIN = 0.1  # of the hidden space drawn around the states, relative to their range

Mask = NDArray[np.bool_]


class Config(Options):
    """Options of the experiment."""

    methods: tuple[SearchedMethod, ...] = Field(
        (
            SearchedMethod.named("dgp_ep", "GP", hidden=[], inducing=50),
            SearchedMethod.named("dgp_ep", "DGP", hidden=[2], inducing=50),
        ),
        min_length=1,
        description="method entries as in a study: use, label and options; only the layers of the first method with a "
        "hidden layer of two dimensions are drawn",
    )
    rows: int = Field(300, ge=10, description="training data points; ours")
    noise_deviation: float = Field(2.0, gt=0, description="standard deviation of the noise, in steps; ours")
    nodes: int = Field(801, ge=201, description="nodes of value iteration per dimension")
    draws: int = Field(5, ge=1, description="draws of data and noise; the figure shows the first")
    held_out: int = Field(60, ge=8, description="held-out states per dimension")
    drop: float = Field(10.0, gt=0, description="minimum difference of neighbours near the cliff, in steps")


def compute(config: Config, seed: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the arrays of the figure, and one summary row per method.

    ``states`` (n, 2) and ``y`` (n,): data of the first draw. ``position`` and ``velocity`` (G,): the held-out grid,
    with ``truth`` and ``cliff`` (G, G), positions along the first axis. ``mean_<i>`` and ``std_<i>`` (G, G):
    predictions of method i after the first draw, noise included; ``labels`` their names. For the method drawn layer by
    layer, with index ``deep``: ``hidden`` (2, G, G), means of the first layer; ``first`` and ``second`` (G,), a grid of
    the hidden space; ``top`` (G, G), mean of the second layer there; ``reached`` (n, 2), hidden values of the data.
    ``checked`` and ``check`` have names and values of accuracy checks of the value function, in steps. ``scores``
    (draws, M, K) have the names ``scored`` (K,); the summary has their means.
    """
    own, *streams = np.random.default_rng(seed).spawn(1 + config.draws)
    values, arrays = _true_values(config.nodes, own)
    truth = _truth(values, config)
    arrays |= truth._asdict() | {"labels": np.array([entry.name for entry in config.methods])}
    scores, seconds = [], []
    for draw, rng in enumerate(streams):
        states = _uniform(config.rows, rng)
        y = _evaluate(values, states) + config.noise_deviation * rng.standard_normal(config.rows)
        observed = truth.truth.ravel() + config.noise_deviation * rng.standard_normal(truth.truth.size)
        fits = [entry.fitted(states, y, seed + draw) for entry in config.methods]
        if draw == 0:
            arrays |= {"states": states, "y": y, **_drawn([model for model, _ in fits], states, truth)}
        scores.append([_scores(model.predict_dist(truth.grid()), truth, observed) for model, _ in fits])
        seconds.append([spent for _, spent in fits])
    names = list(scores[0][0])
    table = np.array([[list(found.values()) for found in draw] for draw in scores])
    arrays |= {"scores": table, "scored": np.array(names)}
    return arrays, _summary(config, names, table, np.mean(seconds, axis=0))


class TrueValues(NamedTuple):
    """The held-out grid, with positions along the first axis."""

    position: Array  # (G,)
    velocity: Array  # (G,)
    truth: Array  # (G, G) minus the number of steps
    cliff: Mask  # (G, G)

    def grid(self) -> Array:
        """Return the states (G G, 2) of the grid."""
        return dynamics.nodes(self.position, self.velocity)


def _truth(values: dynamics.ValueFunction, config: Config) -> TrueValues:
    position, velocity = (_centres(bounds, config.held_out) for bounds in (dynamics.POSITION, dynamics.VELOCITY))
    truth = _evaluate(values, dynamics.nodes(position, velocity)).reshape(config.held_out, config.held_out)
    return TrueValues(position, velocity, truth, near_cliff(truth, config.drop))


def _drawn(models: list[Any], states: Array, truth: TrueValues) -> dict[str, Any]:
    """Return the predictions of all models over the grid, and the layers of the first model that has two."""
    found: dict[str, Any] = {}
    for i, model in enumerate(models):
        predicted = model.predict_dist(truth.grid())
        found |= {
            f"{name}_{i}": of.reshape(truth.truth.shape)
            for name, of in (("mean", predicted.mean()), ("std", predicted.std()))
        }
        if "deep" not in found and _has_two_layers(model):
            found |= {"deep": np.array(i), **_layers(model, states, truth)}
    return found


def _summary(config: Config, names: list[str], scores: Array, seconds: Array) -> list[dict[str, Any]]:
    """Return one row per method of scores (draws, M, K): means over the draws.

    ``rmse`` and ``ll`` also have standard errors (ddof 0).
    """
    mean, error = scores.mean(axis=0), scores.std(axis=0) / np.sqrt(len(scores))
    lowest = scores[:, :, names.index("rmse")].argmin(axis=1)
    rows = []
    for i, entry in enumerate(config.methods):
        row: dict[str, Any] = {"method": entry.name, "draws": len(scores), "lowest_rmse": int(np.sum(lowest == i))}
        for k, name in enumerate(names):
            row[name] = round(float(mean[i, k]), 6)
            if name in {"rmse", "ll"}:
                row[f"{name}_se"] = round(float(error[i, k]), 6)
        rows.append(row | {"fit_seconds": round(float(seconds[i]), 2)})
    return rows


def near_cliff(truth: Array, drop: float) -> Mask:
    """Return where (G, G) the values of a state and its eight neighbours differ by more than ``drop``."""
    wide = np.pad(truth, 1, mode="edge")
    around = np.stack([wide[i : i + len(truth), j : j + truth.shape[1]] for i in range(3) for j in range(3)])
    return np.asarray(np.ptp(around, axis=0) > drop)


def _true_values(count: int, rng: np.random.Generator) -> tuple[dynamics.ValueFunction, dict[str, Any]]:
    """Return the value function, and checks of its accuracy.

    ``change``: largest change in the last sweep. ``refinement``: mean difference from the values on half as many nodes
    per dimension, at the common nodes. ``driven``: mean difference between the value and minus the steps of drivers at
    random states. ``lost``: mean number of additional steps of drivers that follow the coarser values.
    """
    count += 1 - count % 2  # odd, so that the coarse nodes are every other node
    values, coarse = dynamics.iterate(count), dynamics.iterate(count // 2 + 1)
    states = _uniform(DRIVERS, rng)
    steps = dynamics.shortest(values, states)
    check = {
        "nodes": float(count),
        "sweeps": float(values.sweeps),
        "change": values.change,
        "refinement": float(np.abs(values.values[::2, ::2] - coarse.values).mean()),
        "driven": float(np.abs(values.at(states) + steps).mean()),
        "lost": float(np.mean(dynamics.shortest(coarse, states) - steps)),
    }
    return values, {"checked": np.array(list(check)), "check": np.array(list(check.values()))}


def _evaluate(values: dynamics.ValueFunction, states: Array) -> Array:
    """Return the values (S,) of states (S, 2)."""
    return -dynamics.shortest(values, states).astype(np.float64)


def _uniform(count: int, rng: np.random.Generator) -> Array:
    low, high = zip(dynamics.POSITION, dynamics.VELOCITY, strict=True)
    return rng.uniform(low, high, (count, 2))


def _centres(bounds: tuple[float, float], count: int) -> Array:
    """Return the centres (count,) of ``count`` equal parts between two bounds."""
    edges = np.linspace(*bounds, count + 1)
    return np.asarray(0.5 * (edges[1:] + edges[:-1]))


def _has_two_layers(model: Any) -> bool:
    structure = getattr(model.state_, "structure", None)
    return structure is not None and tuple(structure.dims) == (2, 2, 1)


def _layers(model: Any, states: Array, truth: TrueValues) -> dict[str, Array]:
    """Return the means of both layers: the first over the states, the second over the hidden space, in steps."""
    structure, theta, scale = model.state_.structure, model.state_.theta, model.x_scaling_
    hidden = moments(structure, theta, scale.apply(truth.grid()))[0][0]
    reached = moments(structure, theta, scale.apply(states))[0][0]
    low, high = hidden.min(axis=0), hidden.max(axis=0)
    margin = MARGIN * (high - low)
    first, second = np.linspace(low - margin, high + margin, len(truth.position)).T
    last = structure._replace(dims=(2, 1))
    top = moments(last, theta[-size(last) :], dynamics.nodes(first, second))[0][0][:, 0]
    target = model.y_scaling_
    return {
        "hidden": hidden.T.reshape(2, *truth.truth.shape),
        "reached": reached,
        "first": first,
        "second": second,
        "top": (target.shift[0] + target.scale[0] * top).reshape(len(first), len(second)),
    }


def _scores(predicted: Predictive, truth: TrueValues, observed: Array) -> dict[str, float]:
    """Return errors of the mean against the truth (steps) and mean log densities (nats), by region of the grid."""
    squares, densities = (predicted.mean() - truth.truth.ravel()) ** 2, predicted.logpdf(observed)
    cliff = truth.cliff.ravel()
    parts = {"": np.ones_like(cliff), "_cliff": cliff, "_elsewhere": ~cliff}
    found = {f"rmse{name}": float(np.sqrt(squares[part].mean())) for name, part in parts.items() if part.any()}
    found |= {f"ll{name}": float(densities[part].mean()) for name, part in parts.items() if part.any()}
    return found | {"cliff_share": float(cliff.mean()), "mean_std": float(predicted.std().mean())}
