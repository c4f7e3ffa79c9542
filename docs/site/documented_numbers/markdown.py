"""Numbers and tables in Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from ep_bench.published import measured


def table(head: Sequence[str], body: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table."""
    return [f"| {' | '.join(row)} |" for row in (head, *body)][:1] + ["|" + "---|" * len(head)] + [
        f"| {' | '.join(row)} |" for row in body
    ]  # fmt: skip


def with_error(values: Sequence[float], planned_splits: int, mark: str = "") -> str:
    """Return mean and standard error (ddof 0), a mark, and the number of splits if some are missing."""
    if not values:
        return "–"
    text = measured(float(np.mean(values)), float(np.std(values)) / math.sqrt(len(values)))
    text += f" {mark}" if mark else ""
    return text + (f" ({len(values)}/{planned_splits})" if len(values) < planned_splits else "")


def signed(text: str) -> str:
    """Return a number with its sign; a dash stands for no number."""
    return text if text[0] in "-–" else f"+{text}"


def enumerated(names: Sequence[str]) -> str:
    """Return names as "a, b and c"."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def in_words(number: int) -> str:
    """Return a small number in words."""
    words = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    return words[number] if number < len(words) else str(number)
