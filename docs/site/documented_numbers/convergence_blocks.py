"""Blocks of tables by what the stored rows state about convergence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ep_bench.convergence import ConvergedSplits

from .stored import board

CONVERGED, NOT_STATED, NOT_CONVERGED = range(3)
HEADINGS = ("converged on every split", "convergence not stated on every split", "not converged on every split")


def counts_over(method: str, datasets: Iterable[str]) -> ConvergedSplits:
    """Return the counts of converged splits of an entry of the leaderboard over data sets."""
    return sum((board().convergence.get((method, d), ConvergedSplits()) for d in datasets), ConvergedSplits())


def mark_on(method: str, *datasets: str) -> str:
    """Return the mark of an entry of the leaderboard over data sets: a dagger, a ring or nothing."""
    return counts_over(method, datasets).mark


def block_of(counts: ConvergedSplits) -> int:
    """Return the block of an entry; nearly converged splits count as converged, and have the ring."""
    if counts.unconverged:
        return NOT_CONVERGED
    return NOT_STATED if counts.unstated or not counts.judged else CONVERGED


def in_blocks(methods: Iterable[str], datasets: Sequence[str]) -> list[str]:
    """Return entries sorted by block; the order within a block is kept."""
    return sorted(methods, key=lambda method: block_of(counts_over(method, datasets)))


def with_headings(
    methods: Sequence[str], datasets: Sequence[str], line: Callable[[str], Sequence[str]]
) -> list[Sequence[str]]:
    """Return the rows of a table, sorted by block, with a row of its own before each block."""
    body: list[Sequence[str]] = []
    last = -1
    for method in in_blocks(methods, datasets):
        row, block = line(method), block_of(counts_over(method, datasets))
        if block != last:
            body.append([f"*{HEADINGS[block]}*", *[""] * (len(row) - 1)])
        body.append(row)
        last = block
    return body
