"""Output of ``check``."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ep_bench import published
from ep_bench.cli.output.text import columns
from ep_bench.results import store

_HEAD = ("source", "method", "data set", "metric", "published", "ours", "splits", "z", "verdict", "reason")


def check_folders(folders: Sequence[Path], against: Sequence[str], out: Path | None) -> tuple[list[str], bool]:
    """Write check.csv; return the lines to print, and whether all published numbers are reproduced or accepted."""
    frames, warnings = [], []
    for folder in folders:
        study = store.read_intact(folder)
        frames.append(published.check(pd.DataFrame(study.rows), study.lock, against))
        warnings += _changed_trees(study)
    frame = pd.concat(frames, ignore_index=True).drop_duplicates() if len(frames) > 1 else frames[0]
    target = out or folders[0] / "check.csv"
    path = target if target.suffix == ".csv" else target / "check.csv"
    store.write_atomically(path, frame.to_csv(index=False, lineterminator="\n"))
    if frame.empty:
        return [f"no published number applies to these results -> {path}", *warnings], True
    regressions = len(published.regressions(frame))
    lines = columns([_HEAD, *(_row(row) for row in frame.to_dict("records"))])
    verdicts = ", ".join(f"{count} {verdict}" for verdict, count in Counter(frame["verdict"]).most_common())
    lines.append(f"{len(frame)} published numbers: {verdicts}; {regressions} not reproduced -> {path}")
    return lines + warnings, regressions == 0


def _changed_trees(study: store.StudyResults) -> list[str]:
    """Return a warning if rows were computed with uncommitted changes of the source code."""
    origins = [(row["method"], study.origin(row)) for row in study.rows]
    found = sorted({f"{method} ({origin.revision})" for method, origin in origins if origin and origin.changed_tree})
    if not found:
        return []
    return [f"warning: {study.folder}: computed with uncommitted changes of the source code: {', '.join(found)}"]


def _row(row: Mapping[Any, Any]) -> tuple[str, ...]:
    z = "" if row["z"] != row["z"] else f"{row['z']:+.1f}"
    reason = textwrap.shorten(str(row["reason"] or ""), 60, placeholder="...")
    return (
        f"{row['source']} {row['table']}", row["method"], row["dataset"], row["metric"],
        published.printed(row["published_mean"], row["published_stderr"]),
        published.measured(row["mean"], row["stderr"]),
        str(row["n_splits"]), z, row["verdict"], reason,
    )  # fmt: skip
