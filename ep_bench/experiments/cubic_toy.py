"""The toy problem of the PBP paper (Hernandez-Lobato and Adams 2015, section 5.3, figure 1).

Twenty inputs uniform in [-4, 4], targets x^3 plus noise of variance 9; each method's predictive mean and deviation
over a grid that goes beyond the data. The same data and noise show what alpha does to black-box alpha's predictions
(Hernandez-Lobato et al. 2016, supplement, figure 5), there with the noise variance given and not learned.

Deviation: the papers' twenty points are not published; the embedded data set ``cubic`` is one draw like them.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from ep_bench import data, methods
from ep_bench.estimator import Estimator, parse_options, warm_up
from ep_bench.types import Array, nearest

VERSION = 1
NOISE = "noise_variance"  # a method's option: the variance of the noise in standardised units, given and not learned


def _refuse_unknown(problem: str, name: str, allowed: Iterable[str]) -> None:
    """Raise ValueError with the nearest right name where ``name`` is not allowed."""
    if name not in set(allowed):
        hint = nearest(name, allowed)
        suffix = f"; did you mean {hint!r}?" if hint else ""
        raise ValueError(f"{problem}; found {name!r}; allowed: {', '.join(sorted(allowed))}{suffix}")


class Entry(BaseModel):
    """A method as in a study; every further key is one of its options."""

    model_config = ConfigDict(frozen=True, extra="allow")

    use: str
    label: str = ""
    noise_deviation: float | None = Field(
        None,
        gt=0,
        description="known deviation of the noise in the target's unit, for methods with the option noise_variance",
    )

    @model_validator(mode="after")
    def _known(self) -> Entry:
        _refuse_unknown("unknown method", self.use, methods.names())
        if self.noise_deviation is not None:
            if NOISE not in methods.get(self.use).config.model_fields:  # type: ignore[attr-defined]
                raise ValueError(f"noise_deviation: {self.use} has no option {NOISE}, and learns the noise")
            if NOISE in (self.model_extra or {}):
                raise ValueError(f"noise_deviation and {NOISE} say the same in two units: give one of them")
        known = methods.get(self.use).config.model_fields  # type: ignore[attr-defined]
        for option in self.model_extra or {}:
            _refuse_unknown(f"{self.use} has no such option", option, known)
        parse_options(methods.get(self.use), self.options(1.0))
        return self

    def options(self, target_std: float) -> dict[str, Any]:
        """Return the method's options, for a training target of this deviation (ddof 0).

        A known noise deviation becomes a variance in standardised units, those in which methods see the target.
        """
        options = dict(self.model_extra or {})
        if self.noise_deviation is not None:
            options[NOISE] = (self.noise_deviation / target_std) ** 2
        return options


class Config(BaseModel):
    """Options of the experiment."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    methods: tuple[Entry, ...] = Field(
        (Entry.model_validate({"use": "pbp", "label": "PBP", "hidden": [100], "epochs": 40}),),
        min_length=1,
        description="method entries as in a study: use, label and options (PBP: 100 hidden units, 40 epochs, sec. 5.3)",
    )
    half_width: float = Field(6.0, gt=0, description="the grid goes from minus to plus this (figure 1)")
    points: int = Field(241, ge=3, description="points of the grid")


def compute(config: Config, seed: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the arrays of the figure and one summary row a method.

    ``mean_<i>`` and ``std_<i>`` (G,) are the i-th method's predictions over ``grid`` (G,), noise included, in original
    units; ``truth`` (G,) is the true function, ``x`` and ``y`` (n,) the data, ``labels`` the methods' names.
    """
    toy = data.load_dataset("cubic")
    grid = np.linspace(-config.half_width, config.half_width, config.points)
    function = data.true_function("cubic")
    assert function is not None  # noqa: S101 an embedded toy has one
    truth = function(grid[:, None])
    arrays: dict[str, Any] = {"grid": grid, "truth": truth, "x": toy.X[:, 0], "y": toy.y}
    labels, summary = [], []
    for i, entry in enumerate(config.methods):
        label, use, options = entry.label or entry.use, entry.use, entry.options(float(toy.y.std()))
        warm_up(use, options)
        started = time.perf_counter()
        model = Estimator(use, **options, random_state=seed).fit(toy.X, toy.y)
        seconds = time.perf_counter() - started
        mean, std = model.predict(grid[:, None], return_std=True)
        arrays |= {f"mean_{i}": mean, f"std_{i}": std}
        labels.append(label)
        summary.append(
            {"method": label, **_summary(mean, std, truth, grid, toy.X[:, 0]), "fit_seconds": round(seconds, 3)}
        )
    arrays["labels"] = np.array(labels)
    return arrays, summary


def _summary(mean: Array, std: Array, truth: Array, grid: Array, x: Array) -> dict[str, float]:
    """Return the distance to the true function where there are data and beyond, and how far 3 deviations reach."""
    inside = (grid >= x.min()) & (grid <= x.max())
    covered = np.abs(truth - mean) <= 3.0 * std
    rows = {"inside": inside, "outside": ~inside}
    rmse = {f"rmse_{k}": float(np.sqrt(np.mean((mean - truth)[v] ** 2))) for k, v in rows.items()}
    within = {f"within_3sd_{k}": float(covered[v].mean()) for k, v in rows.items()}
    return {key: round(value, 6) for key, value in (rmse | within).items()}
