"""Distances of approximations from the reference posterior, per test input, with the same known variances.

The reference is what ``reference`` stored (``ep_bench.load_reference``). Each method gets its variances of noise and
weights, under the names of its own options, so that all approximate the same posterior. Methods without such options
do not aim at this posterior; their distances are reported and labelled.

The floor is the distance between the two halves of the chains of the reference: smaller distances are not resolved.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import AfterValidator, Field, NonNegativeInt

from ep_bench import adapters, data, methods
from ep_bench.errors import Failure, UserError
from ep_bench.estimator import parse_options
from ep_bench.experiments.dataset_entries import RegressionSets
from ep_bench.experiments.method_entries import NOISE, AnyMethod, Options, distinct_names
from ep_bench.experiments.posteriors import distances
from ep_bench.experiments.posteriors.fidelity.pairs import FLOOR
from ep_bench.experiments.posteriors.reference.compute import Posterior, floor, split_data
from ep_bench.experiments.study_folder import study_folder
from ep_bench.predictions import Predictive
from ep_bench.results.references import ReferencePosterior, load_reference
from ep_bench.types import Array

PRIOR = "prior_variance"


class Approximation(AnyMethod):
    """A method entry with the network that it approximates; a class gets variances by the names of its parameters."""

    network: Literal["relu", "probit"] = "relu"

    @property
    def name(self) -> str:
        """The label, which is unique for a network."""
        return f"{self.label or self.use}, {self.network}"

    @property
    def knows_variances(self) -> bool:
        """Whether the method can be given both variances."""
        if adapters.is_target(self.use):
            known = adapters.parameters(adapters.resolve(self.use, study_folder())) or {}
        else:
            known = methods.get(self.use).config.model_fields  # type: ignore[attr-defined]
        return self.use == "ep_nn" or {NOISE, PRIOR} <= known.keys()

    def variances(self, noise: float, prior: float) -> dict[str, Any]:
        """Return the variances of noise and weights as options of the method, none if it cannot be given them."""
        if self.use == "ep_nn":
            same = dict.fromkeys(("weight_variance", "bias_variance", "output_bias_variance"), prior)
            return {NOISE: noise, **same, "output_scale": prior**0.5}
        return {NOISE: noise, PRIOR: prior} if self.knows_variances else {}

    def options(self, noise: float, prior: float) -> dict[str, Any]:
        """Return the options of the method with the variances of noise and weights that it can be given."""
        return {**(self.model_extra or {}), **self.variances(noise, prior)}

    def _external_options(self) -> dict[str, Any]:
        return self.options(1.0, 1.0)

    def _check(self) -> None:
        super()._check()
        own, fixed = self.model_extra or {}, self.variances(1.0, 1.0)
        for name in fixed:
            if name in own:
                raise ValueError(f"{name} is fixed at the value of the posterior; leave it out")
        if fixed and adapters.is_target(self.use) and not own.get(adapters.STANDARDIZE):
            raise ValueError(f"{NOISE} and {PRIOR} are for standardised data; add standardize: true")

    def refuse_other_network(self, posterior: Posterior) -> None:
        """Raise ValueError if a method that is given the variances has another network than the posterior."""
        if adapters.is_target(self.use):
            return  # its network is unknown
        config = parse_options(methods.get(self.use), dict(self.model_extra or {}))
        activation = getattr(config, "activation", "probit" if self.use == "ep_nn" else "relu")
        found, needed = (activation, list(config.hidden)), (posterior.config.activation, list(posterior.config.hidden))
        if found != needed:
            raise ValueError(f"activation and hidden layers are {found}, those of the posterior {needed}")


class Fit(NamedTuple):
    """A fitted estimator and the CPU seconds of the fit."""

    model: Any
    seconds: float


class More(Options):
    """Further data sets with their own splits and networks."""

    datasets: RegressionSets = Field(min_length=1)
    splits: tuple[NonNegativeInt, ...] = Field(min_length=1)
    networks: tuple[Literal["relu", "probit"], ...] = Field(("relu", "probit"), min_length=1)


class Config(Options):
    """Options of the experiment."""

    datasets: RegressionSets = Field(("boston",), min_length=1, description="data sets with reference posteriors")
    splits: tuple[NonNegativeInt, ...] = Field((0,), min_length=1, description="standard splits")
    methods: Annotated[tuple[Approximation, ...], AfterValidator(distinct_names)] = Field(
        (Approximation.model_validate({"use": "pbp", "label": "PBP"}),),
        min_length=1,
        description="method entries as in a study, each with its network; the variances are those of the reference",
    )
    more: tuple[More, ...] = Field(
        (), description="further data sets, each entry with its own `splits` and `networks` (default: both)"
    )
    results: str = Field("results", description="folder of the results of the studies reference-<data set>")


class Place(NamedTuple):
    """A data set, a split, and the entries whose networks have a reference posterior there."""

    dataset: str
    split: int
    entries: list[Approximation]


def places(config: Config) -> list[Place]:
    """Return all places, by data set and split."""
    return [
        Place(dataset, split, [entry for entry in config.methods if entry.network in group.networks])
        for group in (More(datasets=config.datasets, splits=config.splits), *config.more)
        for dataset in group.datasets
        for split in group.splits
    ]


def calls(config: Config, seed: int) -> list[tuple[Any, ...]]:
    """Return the arguments of ``part``, by data set, split and method."""
    return [
        (place.dataset, place.split, entry.model_dump_json(), config.results, seed)
        for place in places(config)
        for entry in place.entries
    ]


def part(dataset: str, split: int, entry: str, results: str, seed: int) -> dict[str, Any]:
    """Return the distances of a method by name, one value per test input, its score and its time; or ``failure``."""
    method = Approximation.model_validate_json(entry)
    reference = load_reference(dataset, split, method.network, results)
    loaded = data.load_dataset(dataset)
    train, test = data.standard_split(len(loaded.y), split)
    try:
        fit = fitted(method, _posterior(reference, method.network), loaded.X[train], loaded.y[train], seed)
        prediction = fit.model.predict_dist(loaded.X[test])
        found = {name: np.round(one, 8).tolist() for name, one in posterior_distances(prediction, reference).items()}
    except (ArithmeticError, ValueError) as error:  # a fit that diverges is a result
        return {"failure": Failure.of(error).reason}
    ll = float(np.mean(prediction.logpdf(loaded.y[test])))
    return {**found, "ll": ll, "seconds": fit.seconds, "converged": fit.model.converged_, **_about(reference)}


def posterior_distances(prediction: Predictive | Array, reference: ReferencePosterior) -> dict[str, Array]:
    """Return the distances of a prediction from a reference posterior at its N test inputs.

    Parameters
    ----------
    prediction : array or Predictive
        Draws (S, N) of the network's output f, without noise, in the unit of the target; or a prediction of
        observations, noise included. If it is a mixture, its components are taken as draws, with the known noise.
    reference : ReferencePosterior
        As `load_reference` returns it.

    Returns
    -------
    dict
        Arrays (N,): ``mean_error``, ``std_ratio``, ``wasserstein_1`` and ``wasserstein_2`` of f, in its standard
        deviations under the reference; ``total_variation`` and ``kl`` (nats) of an observation; ``pair_kl`` of the
        observations at an input and at its nearest other one.

    Raises
    ------
    ValueError
        The prediction has another type or shape, is not finite, or is a Gaussian without the noise.
    """
    noise = reference.noise_deviation**2
    prediction = _of_observations(prediction, noise, reference.draws.shape[2])
    partners = distances.nearest(split_data(reference.dataset, reference.split).inputs)
    return distances.compare(prediction, reference.pooled, noise, partners)


def _of_observations(prediction: Predictive | Array, noise: float, inputs: int) -> Predictive:
    """Return draws or a prediction as a prediction of observations. Raises ValueError if it is not a usable one."""
    means = prediction.means if isinstance(prediction, Predictive) else _as_array(prediction)
    if means.ndim != 2 or not len(means) or means.shape[1] != inputs:
        raise ValueError(f"draws have shape (S, N), with N = {inputs} test inputs; found {means.shape}")
    if not np.isfinite(means).all():
        raise ValueError("the prediction is not finite at all test inputs")
    if not isinstance(prediction, Predictive):
        return Predictive.equal_mixture(means, noise)
    if len(means) == 1 and (prediction.variances < 0.99 * noise).all():
        raise ValueError(
            f"variances are below the known noise variance, {noise:.3g}, at all test inputs: it is missing or estimated"
        )
    return prediction


def _as_array(draws: Any) -> Array:
    """Return draws as an array. Raises ValueError for another prediction, such as a tuple (mean, std)."""
    if isinstance(draws, tuple) or np.ndim(draws) == 0:
        found = type(draws).__name__
        raise ValueError(f"expected an array of draws (S, N) or an ep_bench.Predictive, found {found}")
    return np.asarray(draws, dtype=np.float64)


def approximations(entries: Sequence[Approximation], posterior: Posterior) -> list[Approximation]:
    """Return the entries whose network is that of a posterior."""
    return [entry for entry in entries if entry.network == posterior.label]


def fitted(method: Approximation, posterior: Posterior, X: Array, y: Array, seed: int) -> Fit:
    """Return a method with the variances of a posterior, fitted to X (n, d) and y (n,)."""
    if method.knows_variances:
        method.refuse_other_network(posterior)
    entry = AnyMethod.named(method.use, method.label, **method.options(*posterior.variances))
    entry.warm_up()
    started = time.process_time()
    with warnings.catch_warnings(action="ignore"):  # of convergence, which ``converged`` has
        model = entry.build(seed).fit(X, y)
    return Fit(model, time.process_time() - started)


def lost(reason: str) -> dict[str, Any]:
    """Return the value of a part that ended without one."""
    return {"failure": reason}


def combine(config: Config, values: Sequence[Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the distances by input, and one summary row per network, data set, split and method; the floor is last.

    ``inputs`` (R, D, N) are the D distances of ``names`` (D,) for the R rows of the summary, NaN beyond the test inputs
    of a data set and of fits that failed; ``failures`` has one text per fit that failed.
    """
    rows, by_input = [], []
    results = iter(values)
    for dataset, split, entries in places(config):
        found = {entry: next(results) for entry in entries}
        floors = {name: _floor(dataset, split, name, config.results)
                  for name in sorted({entry.network for entry in entries})}  # fmt: skip
        for entry, value in found.items():
            _refuse_other(value, floors[entry.network], f"{entry.label or entry.use} on {dataset}, split {split}")
        pairs = [((entry.network, entry.label or entry.use, entry.knows_variances), value)
                 for entry, value in found.items()]  # fmt: skip
        pairs += [((network, FLOOR, True), value) for network, value in floors.items()]
        for (network, label, same), value in pairs:
            rows.append(_row(network, dataset, split, label, value, same=same))
            by_input.append([value.get(name, []) for name in distances.NAMES])
    longest = max((len(values) for row in by_input for values in row), default=0)
    padded = [[[*values, *[np.nan] * (longest - len(values))] for values in row] for row in by_input]
    failures = [f"{row['method']} on {row['dataset']}: {row['failure']}" for row in rows if row["failure"]]
    return {
        "inputs": np.array(padded, dtype=np.float32), "names": np.array(distances.NAMES),
        "failures": np.array(failures, dtype=str),
    }, rows  # fmt: skip


def _posterior(reference: ReferencePosterior, network: str) -> Posterior:
    """Return the entry of the study that sampled a reference."""
    entries = (Posterior.model_validate(entry) for entry in reference.provenance["options"]["posteriors"])
    return next(entry for entry in entries if (entry.label, entry.dataset) == (network, reference.dataset))


def _floor(dataset: str, split: int, network: str, results: str) -> dict[str, Any]:
    reference = load_reference(dataset, split, network, results)
    found = floor(reference.draws, reference.noise_deviation**2, distances.nearest(split_data(dataset, split).inputs))
    return {**{name: values.tolist() for name, values in found.items()}, **_about(reference)}


def _refuse_other(value: Mapping[str, Any], floor: Mapping[str, Any], where: str) -> None:
    """Raise UserError if a part was compared with another reference than the present one."""
    if value.get("reference", floor["reference"]) != floor["reference"]:
        message = (
            "compared with an earlier reference posterior; remove the folder `cells` of these results and run again"
        )
        raise UserError(message, where=where)


def _about(reference: ReferencePosterior) -> dict[str, Any]:
    return {"reference": reference.checksum, "r_hat": round(float(reference.r_hat.max()), 4)}


def _row(network: str, dataset: str, split: int, label: str, value: Mapping[str, Any], *, same: bool) -> dict[str, Any]:
    """Return a row of the summary: means over the test inputs, of ``std_ratio`` the median."""
    middle = {name: np.median if name == "std_ratio" else np.mean for name in distances.NAMES}
    means = {name: float(f"{middle[name](value[name]):.5g}") if name in value else "" for name in distances.NAMES}
    return {
        "network": network, "dataset": dataset, "split": split, "method": label,
        "same_posterior": json.dumps(same), **means,
        "ll": round(value["ll"], 5) if "ll" in value else "",
        "seconds": round(value["seconds"], 3) if "seconds" in value else "",
        "converged": "" if value.get("converged") is None else json.dumps(value["converged"]),
        "r_hat": value.get("r_hat", ""), "reference": value.get("reference", ""), "failure": value.get("failure", ""),
    }  # fmt: skip
