"""Output of ``check``."""

from __future__ import annotations

import errno
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ep_bench import published
from ep_bench.cli.output.text import columns
from ep_bench.published.claims import FILE, load_claims
from ep_bench.report.merge import MergedStudies, merge
from ep_bench.report.published_checks import CLAIM_VERDICTS, check_table, claim_verdicts, claims_table, merged_check
from ep_bench.results import store

_HEAD = ("source", "method", "data set", "metric", "published", "ours", "splits", "z", "verdict", "reason")


def check_folders(
    folders: Sequence[Path],
    against: Sequence[str],
    out: Path | None,
    *,
    summary: bool = False,
    every: bool = False,
    claims: Path = FILE,
) -> tuple[list[str], bool]:
    """Write check.csv and claims.csv; return the lines to print, and whether no number is worse without being accepted.

    Without ``out``, several folders get no file: each keeps the verdicts of its own cells.

    Parameters
    ----------
    folders : results folders, merged if there are several
    against : sources of published numbers, by default all
    out : path or folder of check.csv, by default the folder if there is only one
    summary : print one line per table instead of one per number
    every : also print the numbers without a finished split
    claims : file of claims, by default that of the package
    """
    different = {folder.resolve(): folder for folder in folders}
    merged = merge(list(different.values()))
    frame = merged_check(merged, against)
    path, unwritten = _write(frame, list(different.values()), out)
    claimed = _claims(merged, claims, against, path)
    warnings = [f"note: {note}" for note in merged.notes]
    warnings += [
        line
        for study in merged.studies
        for line in (*_altered_data(study), *_changed_trees(study), *_unsuccessful(study))
    ]
    if frame.empty:
        return [*claimed, f"no published number applies to these results{_where(path)}", *unwritten, *warnings], True
    regressions = published.regressions(frame)
    lines = (_summary(frame) if summary else _table(frame, every=every)) + claimed
    lines.append(f"{_counted(frame)}{_where(path)}")
    return lines + unwritten + warnings, regressions.empty


def _write(frame: pd.DataFrame, folders: Sequence[Path], out: Path | None) -> tuple[Path | None, list[str]]:
    """Write check.csv; return its path, or None and a line that explains why there is no file."""
    path = _path(folders, out)
    if path is None:
        return None, ["No file written for several folders; --out DIR writes check.csv and claims.csv."]
    try:
        store.write_atomically(path, check_table(frame))
    except OSError as error:
        if out is not None or error.errno not in {errno.EROFS, errno.EACCES, errno.EPERM}:
            raise
        return None, [f"{path} is not written: {error.strerror}; --out DIR writes check.csv and claims.csv elsewhere"]
    return path, []


def _path(folders: Sequence[Path], out: Path | None) -> Path | None:
    """Return the path of check.csv, None if there is none: several folders without ``out``."""
    if out is None and len(folders) > 1:
        return None
    if out is None:
        return folders[0] / "check.csv"
    return out if out.suffix == ".csv" else out / "check.csv"


def _where(path: Path | None) -> str:
    return f" -> {path}" if path else ""


def _claims(merged: MergedStudies, claims: Path, against: Sequence[str], path: Path | None) -> list[str]:
    """Write claims.csv next to check.csv if a claim applies; return one line per claim, worst first."""
    rows = claim_verdicts(merged, [claim for claim in load_claims(claims) if not against or claim.source in against])
    target = path and path.with_name("claims.csv" if path.name == "check.csv" else f"{path.stem}-claims.csv")
    if target and (rows or target.exists()):
        store.write_atomically(target, claims_table(rows))
    if not rows:
        return []
    shown = [
        (row["verdict"], row["source"], textwrap.shorten(row["claim"], 80, placeholder="..."), row["found"])
        for row in rows
    ]
    verdicts = Counter(row["verdict"] for row in rows)
    counts = ", ".join(f"{verdict}: {verdicts[verdict]}" for verdict in CLAIM_VERDICTS if verdicts[verdict])
    return [
        "",
        *columns([("claim", "source", "", "found"), *shown]),
        f"{len(rows)} claims; {counts}{_where(target)}",
        "",
    ]


def _table(frame: pd.DataFrame, *, every: bool) -> list[str]:
    """Return one line per number, worst first."""
    once = _printed(frame)
    shown = published.worst_first(frame if every else once[once["n_splits"] > 0])
    lines = columns([_HEAD, *(_row(row) for row in shown.to_dict("records"))]) if len(shown) else []
    empty, quoted = int((once["n_splits"] == 0).sum()), len(frame) - len(once)
    hidden = {"without a finished split": empty, "of quoted numbers": quoted}
    words = " and ".join(f"{count} rows {what}" for what, count in hidden.items() if count)
    return lines + ([f"{words} are not shown; --all shows them"] if words and not every else [])


def _printed(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a comparison without quoted numbers, except those that end the check with status 1."""
    rows = published.counted_once(frame).index.union(published.regressions(frame).index)
    return frame.loc[frame.index.isin(rows)]


def _summary(frame: pd.DataFrame) -> list[str]:
    """Return one line per published table, with the number of values per verdict."""
    groups = _printed(frame).groupby(["source", "table"], sort=False)
    rows = [(f"{source} {table}", published.counts(part)) for (source, table), part in groups]
    return columns([("source", *published.VERDICTS), *((name, *map(str, found.values())) for name, found in rows)])


def _counted(frame: pd.DataFrame) -> str:
    """Return the number of published values and of their verdicts."""
    found, once = published.counts(frame), published.counted_once(frame)
    comparisons = "" if sum(found.values()) == len(once) else f" in {len(once)} comparisons"
    return f"{sum(found.values())} published numbers{comparisons}: {published.verdict_counts(frame)}"


def _altered_data(study: store.StudyResults) -> list[str]:
    """Return a note if the file of a data set did not match its card: its cells are compared with nothing."""
    found = [label for label, ref in study.lock.get("datasets", {}).items() if ref.get("altered_file")]
    if not found:
        return []
    files = f"the files of {', '.join(found)} do" if len(found) > 1 else f"the file of {found[0]} does"
    return [f"note: {study.folder}: {files} not match the card; these cells are not compared with published numbers"]


def _changed_trees(study: store.StudyResults) -> list[str]:
    """Return a warning if rows were computed with uncommitted changes of the source code."""
    origins = [(row["method"], study.origin(row)) for row in study.rows]
    found = sorted({f"{method} ({origin.revision})" for method, origin in origins if origin and origin.changed_tree})
    if not found:
        return []
    return [f"warning: {study.folder}: computed with uncommitted changes of the source code: {', '.join(found)}"]


def _unsuccessful(study: store.StudyResults) -> list[str]:
    """Return a warning if cells did not end ok, which are not compared with published numbers."""
    found = Counter(row["status"] for row in study.rows if row["status"] != "ok")
    if not found:
        return []
    counts = ", ".join(f"{count} {status}" for status, count in found.items())
    share = f"{sum(found.values())} of {len(study.rows)} cells"
    return [f"warning: {study.folder}: {share} did not end ok and are not compared: {counts}"]


def _row(row: Mapping[Any, Any]) -> tuple[str, ...]:
    z = "" if row["z"] != row["z"] else f"{row['z']:+.1f}"
    reason = textwrap.shorten(str(row["reason"] or ""), 60, placeholder="...")
    return (
        f"{row['source']} {row['table']}", row["method"], row["dataset"], row["metric"],
        published.printed(row["published_mean"], row["published_stderr"]),
        published.measured(row["mean"], row["stderr"]),
        str(row["n_splits"]), z, row["verdict"], reason,
    )  # fmt: skip
