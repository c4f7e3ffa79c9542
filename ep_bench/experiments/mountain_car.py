"""The mountain car's value function from few noisy evaluations: figure 1 of Bui and others (2016).

Rows are states drawn uniformly; the target is the value there, minus the steps to the goal of a driver who is greedy in
the value function of ``car_values``, plus Gaussian noise. A Gaussian process has one lengthscale an input for plain and
cliff alike; one with a hidden layer of two dimensions can bend the inputs first. Methods are judged on a grid of held-out
states, all of it and near the cliff alone: root mean squared error against the true value, and mean log density of
evaluations with noise of their own.

Deviation: the paper gives neither the number of rows nor the noise nor how the values were found; all of these are ours.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from ep_bench.estimator import Estimator, warm_up
from ep_bench.experiments import car_values
from ep_bench.experiments.cubic_toy import Entry
from ep_bench.methods.dgp_ep.energy import moments
from ep_bench.methods.dgp_ep.layout import Structure, size
from ep_bench.types import Array, Predictive

VERSION = 1
DRIVERS = 2000  # states at which value iteration is held against driving
ROOM = 0.1  # of the hidden space drawn beyond what the states reach, a share of that

Mask = NDArray[np.bool_]


def _entry(label: str, **options: Any) -> Entry:
    return Entry.model_validate({"use": "dgp_ep", "label": label, **options})


class Config(BaseModel):
    """Options of the experiment."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    methods: tuple[Entry, ...] = Field(
        (_entry("GP", hidden=[], inducing=50), _entry("DGP", hidden=[2], inducing=50)),
        min_length=1,
        description="method entries as in a study: use, label and options; the first with a hidden layer of two "
        "dimensions, and no other, is drawn layer by layer",
    )
    rows: int = Field(300, ge=10, description="evaluations to learn from; ours")
    noise_deviation: float = Field(2.0, gt=0, description="of an evaluation, in steps; ours")
    nodes: int = Field(801, ge=21, description="of value iteration, a side")
    held_out: int = Field(60, ge=8, description="states that judge, a side")
    drop: float = Field(10.0, gt=0, description="steps by which neighbours of a held-out state differ near the cliff")


def compute(config: Config, seed: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the arrays of the figure and one summary row a method.

    ``states`` (n, 2) and ``y`` (n,) are what was learned from; ``position`` and ``velocity`` (G,) the held-out grid with
    ``truth`` and ``cliff`` (G, G), positions along the rows; ``mean_<i>`` and ``std_<i>`` (G, G) the i-th method's
    predictions, noise included, ``labels`` their names. Of the method drawn layer by layer, ``deep`` its place:
    ``hidden`` (2, G, G), means of the first layer; ``first`` and ``second`` (H,), a grid of the hidden space, ``top``
    (H, H), the second layer's mean there, and ``reached`` (n, 2), where the rows come to lie. ``checked`` and ``check``
    say by name how far the value function can be believed, in steps.
    """
    states_rng, noise_rng, drive_rng = np.random.default_rng(seed).spawn(3)
    values, arrays = _true_values(config.nodes, drive_rng)
    states = _uniform(config.rows, states_rng)
    y = _evaluate(values, states) + config.noise_deviation * noise_rng.standard_normal(config.rows)
    position, velocity = (_centres(bounds, config.held_out) for bounds in (car_values.POSITION, car_values.VELOCITY))
    grid, shape = car_values.nodes(position, velocity), (config.held_out, config.held_out)
    truth = _evaluate(values, grid)
    observed = truth + config.noise_deviation * noise_rng.standard_normal(len(truth))
    cliff = near_cliff(truth.reshape(shape), config.drop)
    arrays |= {"states": states, "y": y, "position": position, "velocity": velocity}
    arrays |= {"truth": truth.reshape(shape), "cliff": cliff, "labels": np.array([e.name for e in config.methods])}
    summary = []
    for i, entry in enumerate(config.methods):
        model, seconds = _fitted(entry, states, y, seed)
        predicted = model.predict_dist(grid)
        arrays |= {f"mean_{i}": predicted.mean().reshape(shape), f"std_{i}": predicted.std().reshape(shape)}
        if "deep" not in arrays and _is_drawn(model):
            arrays |= {"deep": np.array(i), **_layers(model, states, grid, shape)}
        scores = _scores(predicted, truth, observed, cliff.ravel())
        summary.append({"method": entry.name, **scores, "fit_seconds": round(seconds, 2)})
    return arrays, summary


def near_cliff(truth: Array, drop: float) -> Mask:
    """Return where (G, G) a state and its eight neighbours differ by more than ``drop``."""
    wide = np.pad(truth, 1, mode="edge")
    around = np.stack([wide[i : i + len(truth), j : j + truth.shape[1]] for i in range(3) for j in range(3)])
    return np.asarray(np.ptp(around, axis=0) > drop)


def _true_values(count: int, rng: np.random.Generator) -> tuple[car_values.Values, dict[str, Any]]:
    """Return the value function, and how far it can be believed.

    ``change`` is the largest of the last sweep, ``refinement`` the mean difference from half as many nodes a side at the
    nodes of both, ``driven`` the mean difference between value and minus steps of the greedy driver at random states,
    ``lost`` how many steps more one takes in the mean who is greedy in the coarser values.
    """
    count += 1 - count % 2  # so that every other node is one of half as many
    values, coarse = car_values.iterate(count), car_values.iterate(count // 2 + 1)
    states = _uniform(DRIVERS, rng)
    steps = car_values.drive(values, states)
    check = {
        "nodes": float(count),
        "sweeps": float(values.sweeps),
        "change": values.change,
        "refinement": float(np.abs(values.values[::2, ::2] - coarse.values).mean()),
        "driven": float(np.abs(values.at(states) + steps).mean()),
        "lost": float(np.mean(car_values.drive(coarse, states) - steps)),
    }
    return values, {"checked": np.array(list(check)), "check": np.array(list(check.values()))}


def _evaluate(values: car_values.Values, states: Array) -> Array:
    """Return the values (S,) of states (S, 2): minus the steps that a greedy driver takes."""
    return -car_values.drive(values, states).astype(np.float64)


def _uniform(count: int, rng: np.random.Generator) -> Array:
    low, high = zip(car_values.POSITION, car_values.VELOCITY, strict=True)
    return rng.uniform(low, high, (count, 2))


def _centres(bounds: tuple[float, float], count: int) -> Array:
    """Return the centres (count,) of as many equal parts between two bounds."""
    edges = np.linspace(*bounds, count + 1)
    return np.asarray(0.5 * (edges[1:] + edges[:-1]))


def _fitted(entry: Entry, states: Array, y: Array, seed: int) -> tuple[Any, float]:
    """Return a method fitted to the rows, and the seconds that this took."""
    options = entry.options(float(y.std()))
    warm_up(entry.use, options)
    started = time.perf_counter()
    model = Estimator(entry.use, **options, random_state=seed).fit(states, y)
    return model, time.perf_counter() - started


def _is_drawn(model: Any) -> bool:
    structure = getattr(model.state_, "structure", None)
    return structure is not None and tuple(structure.dims) == (2, 2, 1)


def _layers(model: Any, states: Array, grid: Array, shape: tuple[int, int]) -> dict[str, Array]:
    """Return the means of both layers: the first over the states, the second over the hidden space, in steps."""
    structure, theta, scale = model.state_.structure, model.state_.theta, model.x_scaling_
    hidden = moments(structure, theta, scale.apply(grid))[0][0]
    reached = moments(structure, theta, scale.apply(states))[0][0]
    low, high = hidden.min(axis=0), hidden.max(axis=0)
    room = ROOM * (high - low)
    first, second = np.linspace(low - room, high + room, max(shape)).T
    last = Structure((2, 1), structure.inducing, structure.shared)
    top = moments(last, theta[-size(last) :], car_values.nodes(first, second))[0][0][:, 0]
    target = model.y_scaling_
    return {
        "hidden": hidden.T.reshape(2, *shape),
        "reached": reached,
        "first": first,
        "second": second,
        "top": (target.shift[0] + target.scale[0] * top).reshape(len(first), len(second)),
    }


def _scores(predicted: Predictive, truth: Array, observed: Array, cliff: Mask) -> dict[str, float]:
    """Return errors of the mean against the truth (steps) and mean log densities (nats), by part of the grid."""
    squares, densities = (predicted.mean() - truth) ** 2, predicted.logpdf(observed)
    parts = {"": np.ones_like(cliff), "_cliff": cliff, "_elsewhere": ~cliff}
    found = {f"rmse{name}": float(np.sqrt(squares[part].mean())) for name, part in parts.items() if part.any()}
    found |= {f"ll{name}": float(densities[part].mean()) for name, part in parts.items() if part.any()}
    found |= {"cliff_share": float(cliff.mean()), "mean_std": float(predicted.std().mean())}
    return {name: round(value, 6) for name, value in found.items()}
