"""Output of ``submit``."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ep_bench.cli.output.text import Item
from ep_bench.cli.output.verify import verify_folders
from ep_bench.errors import UserError, joined
from ep_bench.results import store
from ep_bench.results.provenance import environment
from ep_bench.results.submission import (
    SUBMISSION,
    TEXT,
    VERIFIED,
    add_verified,
    read_submission,
    read_verified,
    verified_by,
    write_submission,
)
from ep_bench.runner import submission as checks
from ep_bench.runner.verify import Sample


def submit_folder(
    folder: Path, by: str, path: Path | None, sample: Sample, jobs: int
) -> tuple[list[Item], bool | None]:
    """Check and verify results; return what to print, and whether the sample is equal (None: not compared).

    The sample of a new submission, or of one by the same name, is that of its files, whatever the seed.
    """
    study = store.read_intact(folder, with_cell_files=False)  # only what is submitted
    if path is not None and "groups" in study.lock:
        checks.copy_study(path, folder, study.lock)
    submission = read_submission(folder)
    received = submission is not None and submission["by"] != by
    found = [*checks.problems(study), *checks.method_problems(study)]
    found += checks.changed_files(folder, submission) if submission and received else []
    if found:
        raise joined([UserError(problem, where=str(folder)) for problem in found])
    if not submission or not received:
        submission = checks.manifest(study, by)
        sample = replace(sample, seed=checks.seed_of(submission))
    lines, equal = verify_folders([study], sample, jobs=jobs, budget=math.inf)
    result = str(lines[-1])
    lines += (longer := checks.longer_cells(study, sample))
    if not equal:
        return lines, equal
    done = {"date": dt.datetime.now(dt.UTC).date().isoformat(), "result": "; ".join([result, *longer])}
    done |= {"processor": environment()["machine"]["processor"]}
    if received:
        add_verified(folder, {"by": by, **done})
    else:
        submission["checked"] = done
        write_submission(folder, submission)
    (folder / TEXT).write_text(_text(study, submission), encoding="utf-8")
    to_commit = VERIFIED if received else ", ".join([*submission["files"], SUBMISSION])
    return [*lines, f"{folder / TEXT} written; commit {to_commit}"], equal


def _text(study: store.StudyResults, submission: Mapping[str, Any]) -> str:
    """Return the text of the pull request, or of a comment on it."""
    cells, rows = len(store.lock_cells(study.lock)), study.all_rows
    ok = sum(row["status"] == "ok" for row in rows)
    lines = [
        f"# Results of {study.name}, submitted by {submission['by']}",
        f"{ok} of {cells} cells ended ok: {', '.join(study.lock['methods'])} on {', '.join(study.lock['datasets'])}.",
        f"Packages: {', '.join(submission['requirements']) or 'none besides ep-bench'}.",
        f"State: {verified_by(study.folder)}.",
        "| Computed again by | Date | Result | Processor |\n|---|---|---|---|",
    ]
    samples = [{"by": submission["by"], **submission["checked"]}, *read_verified(study.folder)]
    table = "\n".join("| {by} | {date} | {result} | {processor} |".format(**each) for each in samples)
    licences = "\n".join(f"- {name}: {licence}" for name, licence in submission["licences"].items())
    return "\n\n".join(lines) + f"\n{table}\n\nLicences of the data:\n\n{licences}\n"
