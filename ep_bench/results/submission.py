"""The file ``submission.json`` of results that somebody else computed: who submitted and who verified them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ep_bench.errors import UserError
from ep_bench.results.files import write_if_changed

SUBMISSION = "submission.json"


def read_submission(folder: Path) -> dict[str, Any] | None:
    """Return the submission of a results folder, None if it has none. Raises UserError if it cannot be read."""
    path = folder / SUBMISSION
    if not path.exists():
        return None
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return {**found, "by": str(found["by"]), "files": dict(found["files"]), "verified": list(found["verified"])}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"not a submission: {error!r}", where=str(path)) from error


def write_submission(folder: Path, submission: Mapping[str, Any]) -> None:
    """Write ``submission.json``."""
    write_if_changed(folder / SUBMISSION, json.dumps(submission, indent=1, sort_keys=True) + "\n")


def origin(folder: Path) -> str:
    """Return where results come from, in words: committed with the code, or by whom submitted and verified."""
    submission = read_submission(folder)
    if submission is None:
        return "committed"
    return f"submitted by {submission['by']}, {verified_by(submission['by'], submission['verified'])}"


def verified_by(submitter: str, verified: Sequence[Mapping[str, Any]]) -> str:
    """Return who but the submitter has computed a sample again, in words."""
    others = dict.fromkeys(str(each["by"]) for each in verified if each["by"] != submitter)
    return f"verified by {', '.join(others)}" if others else "not verified by others"
