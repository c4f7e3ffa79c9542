"""Comparison of the data of a data set with its card."""

from __future__ import annotations

import numpy as np

from ep_bench.data import reading
from ep_bench.data.cards import Card
from ep_bench.data.target_values import few_values
from ep_bench.errors import UserError
from ep_bench.types import Dataset, DatasetRef

LARGEST = 20_000_000  # numbers of a data set that is read; the text of a larger one takes minutes


def difference(found: Card) -> str:
    """Return how n, d or the target column of the data differ from the card, empty if they do not."""
    if found.n * found.d > LARGEST:
        return ""
    try:
        dataset = reading.load(DatasetRef(found.name, found.name))
    except UserError as error:
        return str(error)
    return _wrong_target(found, dataset)


def _wrong_target(found: Card, dataset: Dataset) -> str:
    if np.ptp(dataset.y) == 0:
        return f"the target column is constant; correct `target_column` of the card, found {found.target_column}"
    if dataset.task == "classification":
        return ""  # every label that is not on the card is an error
    few = few_values(dataset.y)
    if few == found.target_values:
        return ""
    stated = "no `target_values`" if found.target_values is None else f"`target_values: {found.target_values}`"
    return f"the target has {few or 'many'} different values, and the card has {stated}; correct it or `target_column`"
