"""Output of ``check``."""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ep_bench import published
from ep_bench.cli.output.text import Columns, Item
from ep_bench.published.claims import load_claims
from ep_bench.report.claims import CLAIM_VERDICTS, claim_verdicts, claims_table
from ep_bench.report.merge import MergedStudies, merge
from ep_bench.report.published_checks import check_table, merged_check
from ep_bench.results import store

_HEAD = ("verdict", "z", "method", "data set", "score", "published", "ours", "splits")


def check_folders(
    folders: Sequence[Path],
    against: Sequence[str],
    out: Path | None,
    *,
    summary: bool = False,
) -> tuple[list[Item], bool]:
    """Write check.csv and claims.csv; return what to print, and whether no number is worse without being accepted.

    Without ``out``, several folders get no file: each keeps the verdicts of its own cells.

    Parameters
    ----------
    folders : results folders, merged if there are several
    against : sources of published numbers, by default all
    out : path or folder of check.csv, by default the folder if there is only one
    summary : print one line per table instead of one per number
    """
    different = {folder.resolve(): folder for folder in folders}
    merged = merge(list(different.values()))
    frame = merged_check(merged, against)
    path, unwritten = _write(frame, list(different.values()), out)
    claimed = _claims(merged, against, path)
    warnings = [f"note: {note}" for note in merged.notes]
    warnings += [line for study in merged.studies for line in _notes(study)]
    if frame.empty:
        return [*claimed, f"no published number applies to these results{_where(path)}", *unwritten, *warnings], True
    regressions = published.regressions(frame)
    numbers = [_summary(frame)] if summary else list(_tables(frame))
    counted = f"{_counted(frame)}{_where(path)}"
    return [*numbers, *claimed, counted, *unwritten, *warnings], regressions.empty


def _write(frame: pd.DataFrame, folders: Sequence[Path], out: Path | None) -> tuple[Path | None, list[str]]:
    """Write check.csv; return its path, or None and a line that explains why there is no file."""
    if out is None and len(folders) > 1:
        return None, ["No file written for several folders; --out DIR writes check.csv and claims.csv."]
    place = out or folders[0]
    path = place if place.suffix == ".csv" else place / "check.csv"
    try:
        store.write_atomically(path, check_table(frame))
    except OSError as error:
        if out is not None or error.errno not in {errno.EROFS, errno.EACCES, errno.EPERM}:
            raise
        return None, [f"{path} is not written: {error.strerror}; --out DIR writes check.csv and claims.csv elsewhere"]
    return path, []


def _where(path: Path | None) -> str:
    return f" -> {path}" if path else ""


def _claims(merged: MergedStudies, against: Sequence[str], path: Path | None) -> list[Item]:
    """Write claims.csv next to check.csv if a claim applies; return the claims, worst first."""
    rows = claim_verdicts(merged, [claim for claim in load_claims() if not against or claim.source in against])
    target = path and path.with_name("claims.csv" if path.name == "check.csv" else f"{path.stem}-claims.csv")
    if target and (rows or target.exists()):
        store.write_atomically(target, claims_table(rows))
    if not rows:
        return []
    shown = Columns(
        [("claim", "source", "place"), *((row["verdict"], row["source"], row["place"]) for row in rows)],
        below=[f"{row['claim']}. Found: {row['found']}" for row in rows],
    )
    verdicts = Counter(row["verdict"] for row in rows)
    counts = ", ".join(f"{verdict}: {verdicts[verdict]}" for verdict in CLAIM_VERDICTS if verdicts[verdict])
    return ["", shown, f"{len(rows)} claims; {counts}{_where(target)}", ""]


def _tables(frame: pd.DataFrame) -> Iterator[Item]:
    """Yield a table per published table with one line per number, worst first, with the reasons."""
    once = _printed(frame)
    shown = published.worst_first(once[once["n_splits"] > 0])
    for (source, table), part in shown.groupby(["source", "table"], sort=False):
        yield f"{source}, table {table}"
        yield _with_reasons(part.to_dict("records"))
        yield ""
    empty, quoted = int((once["n_splits"] == 0).sum()), len(frame) - len(once)
    hidden = {"without a finished split": empty, "of quoted numbers": quoted}
    words = " and ".join(f"{count} rows {what}" for what, count in hidden.items() if count)
    if words:
        yield f"{words} are not shown; check.csv has them"


def _with_reasons(rows: Sequence[Mapping[Any, Any]]) -> Columns:
    """Return one line per number, and each reason below the first line with it; a number marks one of several lines."""
    reasons = [str(row["reason"] or "") for row in rows]
    repeated = [text for text, count in Counter(filter(None, reasons)).items() if count > 1]
    mark = {text: f"[{number}]" for number, text in enumerate(repeated, 1)}
    below = [
        f"{mark.get(text, '')} {text}".strip() if text not in reasons[:i] else "" for i, text in enumerate(reasons)
    ]
    table = [_HEAD, *map(_row, rows)]
    if mark:
        table = [
            (*cells, end) for cells, end in zip(table, ["reason", *(mark.get(r, "") for r in reasons)], strict=True)
        ]
    return Columns(table, drop=["splits", "published"], below=below)


def _printed(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a comparison without quoted numbers, except those that end the check with status 1."""
    rows = published.counted_once(frame).index.union(published.regressions(frame).index)
    return frame.loc[frame.index.isin(rows)]


def _summary(frame: pd.DataFrame) -> Columns:
    """Return one line per published table, with the number of values per verdict."""
    groups = _printed(frame).groupby(["source", "table"], sort=False)
    rows = [(f"{source} {table}", published.counts(part)) for (source, table), part in groups]
    table = [("source", *published.VERDICTS), *((name, *map(str, found.values())) for name, found in rows)]
    empty = [verdict for verdict in published.VERDICTS if not any(found[verdict] for _, found in rows)]
    return Columns(table, drop=[*reversed(empty), "yardstick"])


def _counted(frame: pd.DataFrame) -> str:
    """Return the number of published values and of their verdicts."""
    found, once = published.counts(frame), published.counted_once(frame)
    comparisons = "" if sum(found.values()) == len(once) else f" in {len(once)} comparisons"
    return f"{sum(found.values())} published numbers{comparisons}: {published.verdict_counts(frame)}"


def _notes(study: store.StudyResults) -> Iterator[str]:
    """Yield what restricts the comparison: altered files of data, changes of the source code, cells that are not ok."""
    if altered := [label for label, ref in study.lock.get("datasets", {}).items() if ref.get("altered_file")]:
        files = f"the files of {', '.join(altered)} do" if len(altered) > 1 else f"the file of {altered[0]} does"
        yield f"note: {study.folder}: {files} not match the card; these cells are not compared with published numbers"
    origins = [(row["method"], study.origin(row)) for row in study.rows]
    if changed := sorted({f"{method} ({one.revision})" for method, one in origins if one and one.changed_tree}):
        changes = f"computed with uncommitted changes of the source code: {', '.join(changed)}"
        yield f"warning: {study.folder}: {changes}"
    if found := Counter(row["status"] for row in study.rows if row["status"] != "ok"):
        counts = ", ".join(f"{count} {status}" for status, count in found.items())
        share = f"{found.total()} of {len(study.rows)} cells"
        yield f"warning: {study.folder}: {share} did not end ok and are not compared: {counts}"


def _row(row: Mapping[Any, Any]) -> tuple[str, ...]:
    return (
        row["verdict"], "" if row["z"] != row["z"] else f"{row['z']:+.1f}", row["method"], row["dataset"],
        row["metric"],
        published.printed(row["published_mean"], row["published_stderr"]),
        published.measured(row["mean"], row["stderr"]), str(row["n_splits"]),
    )  # fmt: skip
