"""The spread of log-likelihoods over seeds, next to that over splits."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ep_bench import published

from .markdown import table
from .stored import TextRow, selected, summary

FOLDER, SLOW, LONG = "seed-spread", "seed-spread-slow", "seed-spread-long"


def spread(folder: str) -> list[str]:
    """Return the standard deviations of the log-likelihood over seeds and over splits."""
    body = [_line(row) for row in selected(summary(folder), score="ll") if row["mean"]]
    head = ["Data set", "Entry", "LL", "Range over seeds", "SD, seeds", "SD, splits", "Due to the seed", "Splits"]
    return table(head, body)


def _line(row: TextRow) -> list[str]:
    number = {key: float(row[key]) for key in row if key not in {"dataset", "method", "score"}}
    extent = f"{number['lowest_mean']:.3f} to {number['highest_mean']:.3f}"
    deviations = [f"{number[key]:.3f}" for key in ("seed_std", "split_std")]
    mean = published.measured(number["mean"], number["stderr"])
    return [row["dataset"], row["method"], mean, extent, *deviations, f"{number['seed_fraction']:.0%}", row["splits"]]


def _fractions(dataset: str, folder: str = FOLDER) -> dict[str, float]:
    return {
        row["method"]: float(row["seed_fraction"]) for row in selected(summary(folder), score="ll", dataset=dataset)
    }


def little_on_boston() -> str:
    """Return the largest fraction of the variance that is due to the seed on boston."""
    largest = max(_fractions("boston").values())
    return f"On boston, the seed causes at most {largest:.0%} of the variance of a log-likelihood"


def part_on_boston() -> str:
    """Return the largest such fraction of all studies."""
    largest = max(max(_fractions("boston", folder).values()) for folder in (FOLDER, SLOW, LONG))
    return f"The part of the seed is {largest:.0%} or less on boston"


def much_on_yacht() -> str:
    """Return how many entries owe a large fraction of their variance on yacht to the seed, and the largest one."""
    found = _fractions("yacht")
    largest = max(found, key=lambda name: found[name])
    count = sum(fraction > 0.3 for fraction in found.values())
    return f"on yacht more than 30% for {count} of {len(found)} entries, and {found[largest]:.0%} for {largest}"


def three_starts_on_yacht() -> str:
    """Return the range over seeds of the mean log-likelihood of the exact process with three starts on yacht."""
    (row,) = selected(summary(FOLDER), score="ll", dataset="yacht", method="GP")
    highest, lowest = float(row["highest_mean"]), float(row["lowest_mean"])
    return f"with three starts and other seeds, the mean is between {lowest:.3f} and {highest:.3f}"


TABLES: dict[str, Callable[[], list[str]]] = {name: partial(spread, name) for name in (FOLDER, SLOW, LONG)}
FACTS: list[tuple[str, Callable[[], str]]] = [
    ("experiments.md", little_on_boston),
    ("experiments.md", much_on_yacht),
    ("findings.md", part_on_boston),
    ("findings.md", much_on_yacht),
    ("methods/gp.md", three_starts_on_yacht),
]
