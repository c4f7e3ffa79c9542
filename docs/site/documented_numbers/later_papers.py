"""Differences from the log-likelihoods of later papers, which have no verdict."""

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


def complete_yardsticks() -> pd.DataFrame:
    """Return the log-likelihoods of later papers next to those of entries with all splits."""
    frame = own_numbers()
    rows = frame[(frame["verdict"] == "yardstick") & (frame["metric"] == "ll")]
    rows = rows[(pd.to_numeric(rows["n_splits"]) > 0) & ~rows["reason"].str.contains(r"\d+ of \d+ splits")]
    return rows.assign(difference=rows["mean"].astype(float) - rows["published_mean"].astype(float))


def differences() -> list[str]:
    """Return how far the log-likelihoods of each entry are from those of the methods of later papers."""
    body = []
    for (source, theirs, ours), part in complete_yardsticks().groupby(
        ["source", published.COLUMN_NAMES[0], "method"], sort=True
    ):
        lowest, z = part.loc[part["difference"].idxmin()], part["z"].astype(float)
        median, least = _nats(part["difference"].median()), _nats(lowest["difference"])
        extreme = f"{least} ({lowest['published_dataset']})"
        counts = [str(len(part)), str(int((z < -FAR).sum())), str(int((z > FAR).sum()))]
        body.append([NAMES[str(source)], str(theirs), str(ours), median, extreme, *counts])
    head = ["Source", "Their method", "Our entry", "Median", "Lowest", "Data sets", "Lower", "Higher"]
    return table(head, body)


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


TABLES: dict[str, Callable[[], list[str]]] = {"later-papers": differences}
FACTS: list[tuple[str, Callable[[], str]]] = [("reproductions.md", wine_of_lindinger)]
