"""The cubic toy problem (section 5.3, figure 1).

There are twenty inputs uniform in [-4, 4], with targets x^3 plus noise of variance 9. The arrays have each method's
predictive mean and standard deviation over a grid that extends beyond the data. The same data and noise show the effect
of alpha on the predictions of black-box alpha (Hernandez-Lobato et al. 2016, supplement, figure 5), there with a known
noise variance.

One method may be the reference (``reference``). The predictive distributions of all methods are then compared with
those of the reference, over the grid (``distribution_distances``).

Deviation: the papers' twenty points are not published; the embedded data set ``cubic`` is a draw of the same kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, ValidationInfo, field_validator

from ep_bench import data
from ep_bench.experiments import distribution_distances
from ep_bench.experiments.method_entries import Options, SearchedMethod, refuse_unknown
from ep_bench.options import NEUTRAL
from ep_bench.predictions import Predictive
from ep_bench.types import Array

if TYPE_CHECKING:
    from scipy.interpolate import PPoly


class Config(Options):
    """Options of the experiment."""

    methods: tuple[SearchedMethod, ...] = Field(
        (SearchedMethod.model_validate({"use": "pbp", "label": "PBP", "hidden": [100], "epochs": 40}),),
        min_length=1,
        description="method entries as in a study: use, label and options (PBP: 100 hidden units, 40 epochs, sec. 5.3)",
    )
    half_width: float = Field(6.0, gt=0, description="half-width of the grid around 0 (figure 1)")
    points: int = Field(241, ge=3, description="points of the grid")
    reference: str | None = Field(
        None, description="label of the reference method; the distances of the other methods from it are reported"
    )

    seeds: int = Field(
        1, ge=1, json_schema_extra={NEUTRAL: 1}, description="seeds with which each method but the reference is fitted"
    )

    @field_validator("reference")
    @classmethod
    def _one_of_the_methods(cls, reference: str | None, info: ValidationInfo) -> str | None:
        if reference is None or "methods" not in info.data:  # invalid methods are reported separately
            return reference
        names = [entry.name for entry in info.data["methods"]]
        refuse_unknown("no method has this label", reference, names)
        if names.count(reference) > 1:
            raise ValueError(f"{names.count(reference)} methods have the label {reference!r}: give each its own")
        return reference


def compute(config: Config, seed: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the arrays of the figure, and one summary row per method.

    ``mean_<i>`` and ``std_<i>`` (G,): predictions of method i over ``grid`` (G,), noise included, in original units.
    ``truth`` (G,): true function. ``x`` and ``y`` (n,): data. ``labels``: names of the methods.

    With a reference, the summary has the distances from it, in the unit of y: ``wasserstein``, ``crps`` (expected if
    observations come from the reference) and ``crps_excess`` (over the reference's own CRPS). They are means over the
    grid, and over the points inside (``_inside``) and outside (``_outside``) the range of the data. If the reference is
    a sampler, ``judged`` and ``judgement`` (J,) have names and values of its diagnostics: those of ``mcmc_diagnostics``
    for its predictions over the grid, ``divergences``, and ``halves`` (``halves_inside``, ``halves_outside``), the
    1-Wasserstein distance between the two halves of its chains.
    """
    toy = data.load_dataset("cubic")
    grid = np.linspace(-config.half_width, config.half_width, config.points)
    function = data.true_function("cubic")
    assert function is not None  # noqa: S101 this embedded data set has a true function
    truth = function(grid[:, None])
    arrays: dict[str, Any] = {"grid": grid, "truth": truth, "x": toy.X[:, 0], "y": toy.y}
    inside = (grid >= toy.X[:, 0].min()) & (grid <= toy.X[:, 0].max())
    summary, curves = [], []
    entries = _entries(config, seed)
    names = [name for name, _, _ in entries]
    for i, (name, entry, own_seed) in enumerate(entries):
        model, seconds = entry.fitted(toy.X, toy.y, own_seed)
        distribution = model.predict_dist(grid[:, None])
        mean, std = distribution.mean(), distribution.std()
        arrays |= {f"mean_{i}": mean, f"std_{i}": std}
        if config.reference is not None:
            curves.append(distribution_distances.tabulate(distribution))
        if config.reference == entry.name:
            judgement = _judgement(model, distribution, grid, inside)
            arrays |= {"judged": np.array(list(judgement), dtype=str), "judgement": np.array(list(judgement.values()))}
        scores = _summary(mean, std, truth, inside)
        summary.append({"method": name, **scores, "fit_seconds": round(seconds, 3)})
    arrays["labels"] = np.array(names)
    if config.reference is not None:
        rows = _from_reference(curves, names.index(config.reference), inside)
        summary = [known | row for known, row in zip(summary, rows, strict=True)]
    return arrays, summary


def _entries(config: Config, seed: int) -> list[tuple[str, SearchedMethod, int]]:
    """Return name, entry and seed of each fit; with several seeds, the names have the number of the seed."""
    found = []
    for entry in config.methods:
        count = 1 if entry.name == config.reference else config.seeds
        found += [(f"{entry.name} #{k}" if count > 1 else entry.name, entry, seed + k) for k in range(count)]
    return found


def _judgement(model: Any, distribution: Predictive, grid: Array, inside: NDArray[np.bool_]) -> dict[str, float]:
    """Return diagnostics of a sampler by name, empty for other methods."""
    chain = getattr(model.state_, "chain", None)
    if chain is None:
        return {}
    found = model.diagnose(grid[:, None]) | {"divergences": model.diagnostics_.get("divergences", 0.0)}
    order = np.arange(len(chain)) if chain.max() == 0 else chain
    halves = [
        distribution_distances.tabulate(_part(distribution, half))
        for half in (order < order.mean(), order >= order.mean())
    ]
    apart = distribution_distances.compare(*halves).wasserstein
    means = {"halves" + region: float(apart[rows].mean()) for region, rows in _regions(inside).items() if rows.any()}
    return {name: round(value, 6) for name, value in (found | means).items()}


def _part(distribution: Predictive, components: NDArray[np.bool_]) -> Predictive:
    """Return the mixture of the selected components only."""
    weights = distribution.weights[components]
    return Predictive(weights / weights.sum(), distribution.means[components], distribution.variances[components])


def _regions(inside: NDArray[np.bool_]) -> dict[str, NDArray[np.bool_]]:
    """Return the grid points of each region, by the suffix of its name."""
    return {"": np.ones_like(inside), "_inside": inside, "_outside": ~inside}


def _summary(mean: Array, std: Array, truth: Array, inside: NDArray[np.bool_]) -> dict[str, float]:
    """Return errors inside and outside the data, and the fraction of the truth within 3 standard deviations."""
    covered = np.abs(truth - mean) <= 3.0 * std
    rows = {"inside": inside, "outside": ~inside}
    rmse = {f"rmse_{k}": float(np.sqrt(np.mean((mean - truth)[v] ** 2))) for k, v in rows.items()}
    within = {f"within_3sd_{k}": float(covered[v].mean()) for k, v in rows.items()}
    return {key: round(value, 6) for key, value in (rmse | within).items()}


def _from_reference(curves: list[list[PPoly]], reference: int, inside: NDArray[np.bool_]) -> list[dict[str, float]]:
    """Return one row of distances per method: means over the regions of the grid."""
    own = distribution_distances.own_crps(curves[reference])
    regions, rows = _regions(inside), []
    for method in curves:
        apart = distribution_distances.compare(method, curves[reference])
        columns = {"wasserstein": apart.wasserstein, "crps": own + apart.excess, "crps_excess": apart.excess}
        means = {name + k: values[v].mean() for name, values in columns.items() for k, v in regions.items() if v.any()}
        rows.append({name: round(float(value), 6) for name, value in means.items()})
    return rows
