"""Data sets in the options of an experiment, by their names."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator

from ep_bench import data
from ep_bench.experiments.method_entries import refuse_unknown


def known_set(name: str) -> str:
    """Return the name of a data set. Raises ValueError if there is none of this name."""
    refuse_unknown("unknown data set", name, data.names())
    return name


def regression_sets(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return names of data sets. Raises ValueError if one occurs twice, or is for classification."""
    if len(set(names)) < len(names):
        raise ValueError("a data set occurs twice")
    for name in names:
        if data.card(name).task != "regression":
            raise ValueError(f"{name} is a data set for classification; the experiment is about regression")
    return names


SetName = Annotated[str, AfterValidator(known_set)]
RegressionSets = Annotated[tuple[SetName, ...], AfterValidator(regression_sets)]
