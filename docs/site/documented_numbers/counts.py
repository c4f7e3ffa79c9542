"""Counts of data sets, folders and folds in sentences, as words."""

from __future__ import annotations

from collections.abc import Callable

from .markdown import in_words
from .stored import BOARD, FIVE, complete


def on_data_sets(folder: str, method: str, before: str, after: str) -> Callable[[], str]:
    """Return a sentence part with the number of data sets on which an entry has all splits."""
    return lambda: f"{before}{in_words(len(complete(folder, method)))} data sets{after}"


PBP = ("pbp-table-1", "PBP")
VI, HETEROSCEDASTIC = ("bnn-optimisation", "VI-1"), ("bnn-optimisation", "VI-1 heteroscedastic")
SMALL = in_words(len(FIVE))
FACTS: list[tuple[str, Callable[[], str]]] = [
    ("leaderboard.md", lambda: f"the {SMALL} small data sets are ranked"),
    ("leaderboard.md", lambda: f"{SMALL.capitalize()} data sets are few"),
    ("leaderboard.md", lambda: f"mean over the {SMALL} data sets"),
    ("methods/pbp.md", on_data_sets(*PBP, "on ", "; two")),
    ("methods/vi.md", on_data_sets(*VI, "On the ", " that have been run, VI-1 matches")),
    ("methods/vi.md", on_data_sets(*HETEROSCEDASTIC, "On the ", " that have been run, this entry")),
    ("performance.md", lambda: f"The rows are in the {in_words(len(BOARD))} folders that it names"),
    ("results.md", on_data_sets(*PBP, "PBP on ", ", all 165 splits")),
]
