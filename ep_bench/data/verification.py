"""Comparison of the data on this machine with their checksums."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from ep_bench.data import embedded, locations, reading
from ep_bench.data.cards import Card, card, card_names
from ep_bench.errors import UserError


class Verified(NamedTuple):
    """Outcome of `verify` for one data set."""

    name: str
    status: Literal["ok", "missing", "changed"]
    detail: str


def verify(names: Iterable[str] | None = None) -> list[Verified]:
    """Compare the data files, and the arrays of embedded data sets, with their checksums.

    Parameters
    ----------
    names : names of data sets, by default all

    Raises
    ------
    UserError
        There is no data set of that name.
    """
    return [compare_file(card(name)) for name in (card_names() if names is None else names)]


def compare_file(found: Card) -> Verified:
    """Compare the checksum of a data set with that of its card; a card without one has nothing to compare with."""
    if found.embedded:
        actual, place = embedded.checksum(*embedded.generate(found.name)), "embedded"
    else:
        path = locations.find_file(found)
        if path is None:
            return Verified(found.name, "missing", str(reading.missing(found)))
        try:
            actual, place = locations.data_checksum(found, path), str(path)
        except UserError as error:
            return Verified(found.name, "changed", str(error))
    if found.sha256 is None:
        return Verified(found.name, "ok", f"{place}: sha256 {actual}; its card has none")
    if actual != found.sha256:
        return Verified(found.name, "changed", f"{place}: sha256 {actual}, expected {found.sha256}")
    return Verified(found.name, "ok", place)
