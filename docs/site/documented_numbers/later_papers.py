"""Differences from the scores of later papers, which have no verdict."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from ep_bench import published

from .markdown import signed, table
from .verdicts import own_numbers

FAR = 2.0  # standard errors of a difference that counts as lower or higher
NAMES = {
    "gal-dropout-2018": "Gal, results stored later",
    "lakshminarayanan2017": "Lakshminarayanan et al. (2017)",
    "ober2021-dwp": "Ober and Aitchison (2021)",
    "star-dgp": "Lindinger et al. (2020)",
    "wu2019-dvi": "Wu et al. (2019)",
}


def complete_yardsticks(metric: str) -> pd.DataFrame:
    """Return one score of later papers next to that of entries with all splits."""
    frame = own_numbers()
    rows = frame[(frame["verdict"] == "yardstick") & (frame["metric"] == metric)]
    rows = rows[(pd.to_numeric(rows["n_splits"]) > 0) & ~rows["reason"].str.contains(r"\d+ of \d+ splits")]
    ours, theirs = (rows[name].astype(float) for name in ("mean", "published_mean"))
    return rows.assign(difference=ours - theirs, ratio=ours / theirs.where(theirs > 0.0))


def _entries(rows: pd.DataFrame) -> list[tuple[list[str], pd.DataFrame]]:
    """Return source, their method and our entry, with the rows of each, sorted."""
    groups = rows.groupby(["source", published.COLUMN_NAMES[0], "method"], sort=True)
    return [([NAMES[str(source)], str(theirs), str(ours)], part) for (source, theirs, ours), part in groups]


def _counts(part: pd.DataFrame) -> list[str]:
    """Return the number of data sets, and of those on which ours is clearly lower and clearly higher."""
    z = part["z"].astype(float)
    return [str(len(part)), str(int((z < -FAR).sum())), str(int((z > FAR).sum()))]


def differences() -> list[str]:
    """Return how far the log-likelihoods of each entry are from those of the methods of later papers."""
    body = []
    for names, part in _entries(complete_yardsticks("ll")):
        lowest = part.loc[part["difference"].idxmin()]
        median, least = _nats(part["difference"].median()), _nats(lowest["difference"])
        extreme = f"{least} ({lowest['published_dataset']})"
        body.append([*names, median, extreme, *_counts(part)])
    head = ["Source", "Their method", "Our entry", "Median", "Lowest", "Data sets", "Lower", "Higher"]
    return table(head, body)


def errors() -> list[str]:
    """Return the RMSE of each entry divided by those of the methods of later papers, without printed values of 0."""
    body = []
    for names, part in _entries(complete_yardsticks("rmse")):
        known = part[part["ratio"].notna()]
        highest = known.loc[known["ratio"].idxmax()]
        extreme = f"{highest['ratio']:.2f} ({highest['published_dataset']})"
        body.append([*names, f"{known['ratio'].median():.2f}", extreme, *_counts(known)])
    return table(["Source", "Their method", "Our entry", "Median", "Highest", "Data sets", "Lower", "Higher"], body)


def _nats(value: float) -> str:
    return signed(f"{round(value, 2) + 0.0:.2f}")


def wine_of_lindinger() -> str:
    """Return the range of the log-likelihoods on wine of one later paper, and that of the others."""
    printed = published.load_published()
    rows = printed[printed["source"].isin(NAMES) & (printed["dataset"] == "wine") & (printed["metric"] == "ll")]
    own, other = (rows.loc[chosen, "mean"] for chosen in (rows["source"] == "star-dgp", rows["source"] != "star-dgp"))
    return (
        f"The {len(own)} methods of Lindinger et al. have {own.min():.2f} to {own.max():.2f} on wine, "
        f"those of the other later papers {other.min():.2f} to {other.max():.2f}"
    )


TABLES: dict[str, Callable[[], list[str]]] = {"later-papers": differences, "later-papers-rmse": errors}
FACTS: list[tuple[str, Callable[[], str]]] = [("reproductions.md", wine_of_lindinger)]
