"""Comparison of the data on this machine with their checksums and cards."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

import numpy as np

from ep_bench.data import embedded, locations, reading
from ep_bench.data.cards import Card, card_names
from ep_bench.data.lookup import card
from ep_bench.data.targets import few_values
from ep_bench.errors import UserError
from ep_bench.types import Dataset, DatasetRef

LARGEST = 20_000_000  # numbers of a data set that is read; the text of a larger one takes minutes


class Verified(NamedTuple):
    """Outcome of `verify` for one data set.

    ``unpinned``: there is a file, but no checksum to compare it with. ``card``: the data of the right file contradict
    the card.
    """

    name: str
    status: Literal["ok", "missing", "changed", "unpinned", "card"]
    detail: str


def verify(names: Iterable[str] | None = None) -> list[Verified]:
    """Compare the data files, and the arrays of embedded data sets, with their checksums and cards.

    Parameters
    ----------
    names : names of data sets, by default all

    Raises
    ------
    UserError
        There is no data set of that name.
    """
    return [_verify_one(name) for name in (card_names() if names is None else names)]


def _verify_one(name: str) -> Verified:
    found = card(name)
    verified = compare_file(found)
    is_compared = verified.status == "ok" and name in card_names()  # the card of a plugin is made from its data
    difference = _difference(found) if is_compared else ""
    return Verified(name, "card", difference) if difference else verified


def compare_file(found: Card) -> Verified:
    """Compare the checksum of a data set with that of its card or of its first download."""
    expected = locations.expected_checksum(found)
    if found.embedded:
        actual, place = embedded.checksum(*reading.generate(found.name)), "embedded"
    else:
        path = locations.find_file(found)
        if path is None:
            return Verified(found.name, "missing", str(reading.missing(found)))
        try:
            actual, place = locations.data_checksum(found, path), str(path)
        except UserError as error:
            return Verified(found.name, "changed", str(error))
    if expected is None:
        return Verified(found.name, "unpinned", f"{place}: sha256 {actual}, no expected checksum is known")
    if actual != expected:
        return Verified(found.name, "changed", f"{place}: sha256 {actual}, expected {expected}")
    return Verified(found.name, "ok", place)


def _difference(found: Card) -> str:
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
