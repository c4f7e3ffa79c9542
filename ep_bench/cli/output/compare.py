"""Output of ``compare``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ep_bench.cli.output.text import Columns, Item
from ep_bench.errors import UserError
from ep_bench.report.merge import merge
from ep_bench.report.pairwise import ALL, compare, compare_all, facts
from ep_bench.report.scores import BY_NAME, TARGET
from ep_bench.results.files import write_atomically

_HEAD = ("data set", "blocks", "difference", "95 % interval", "p", "won", "P(better)", "detectable")


def compare_folders(
    folders: Sequence[Path], methods: str, *, score: str, rope: float, out: Path | None, select: Sequence[str]
) -> Iterator[Item]:
    """Yield a table for each pair of methods, and write all columns to ``out``."""
    merged = merge(folders, select)
    labels = labels_in(methods, merged.labels())
    about = facts(merged, score)
    if len(labels) == 2:
        table = compare(merged.rows, *labels, score=score, rope=rope, **about)
    else:
        table = compare_all(merged.rows, labels, score=score, rope=rope, **about)
    if out is not None:
        write_atomically(out, table.to_csv(index=False))
    chosen = next(each for each in BY_NAME.values() if each.source == score)
    for names, rows in table.groupby(["first", "second"], sort=False):
        yield f"{chosen.title} of {' minus '.join(map(str, names))}" + (f" ({chosen.unit})" if chosen.unit else "")
        yield Columns([_HEAD, *map(_cells, rows.to_dict("records"))], drop=("blocks", "won", "detectable"))
        if chosen.unit == TARGET and (rows["dataset"] == ALL).any():
            yield f"{ALL}: differences of logarithms"
        yield ""
    if uncounted := sorted(about["left_out"] & set(table["dataset"])):
        yield f"not counted over all data sets: {', '.join(uncounted)} (no upper bound, or the data of another one)"
    family = "data sets" if len(labels) == 2 else "pairs, for each data set"
    yield f"p: corrected resampled t-test, Holm's correction over {family}; better is {chosen.better}"


def labels_in(text: str, known: Mapping[str, str]) -> list[str]:
    """Return the labels in the report of a list separated by commas.

    Labels may have commas themselves: the longest one counts.

    Raises UserError for a label that is not known, one that is repeated, or fewer than two.
    """
    parts, found = [part.strip() for part in text.split(",")], list[str]()
    while parts:
        lengths = range(len(parts), 0, -1)
        size = next((n for n in lengths if ", ".join(parts[:n]) in known), 0)
        if not size:
            raise UserError("unknown method", where="--methods", found=parts[0], allowed=list(known), name=parts[0])
        found.append(known[", ".join(parts[:size])])
        del parts[:size]
    if len(found) < 2 or len(set(found)) < len(found):
        raise UserError("wrong methods", where="--methods", found=text, allowed="two or more different labels")
    return found


def _cells(row: Mapping[Any, Any]) -> tuple[str, ...]:
    """Return the cells of one data set; empty ones where one block allows no test."""
    tested = row["blocks"] > 1
    return (
        row["dataset"],
        str(row["blocks"]),
        f"{row['difference']:+.3g}",
        f"{row['low']:+.3g} to {row['high']:+.3g}" if tested else "",
        _p(row["p_holm"]) if tested else "",
        f"{row['wins']}:{row['losses']}",
        f"{row['p_better']:.3f}" if tested else "",
        f"{row['detectable']:.2g}" if tested else "",
    )


def _p(value: float) -> str:
    return f"{value:.3f}" if value >= 0.001 else "<0.001"
