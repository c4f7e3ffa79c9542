"""The files of results that somebody else computed: ``submission.json`` of who submits them, and ``verified.json``.

Only maintainers commit ``verified.json``. Each verification names the checksum of the submission that it is of.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ep_bench.errors import UserError
from ep_bench.results.files import write_if_changed
from ep_bench.results.integrity import file_checksums

SUBMISSION, VERIFIED = "submission.json", "verified.json"
TEXT = "pull-request.md"


def read_submission(folder: Path) -> dict[str, Any] | None:
    """Return the submission of a results folder, None if it has none. Raises UserError if it cannot be read."""
    path = folder / SUBMISSION
    if not path.exists():
        return None
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return {**found, "by": str(found["by"]), "files": dict(found["files"]), "checked": dict(found["checked"])}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"not a submission: {error!r}", where=str(path)) from error


def read_verified(folder: Path) -> list[dict[str, str]]:
    """Return the verifications of the present submission of a folder, the oldest first."""
    path = folder / VERIFIED
    if not path.exists():
        return []
    try:
        found = [dict(each) for each in json.loads(path.read_text(encoding="utf-8"))]
        return [each for each in found if file_checksums(folder, [SUBMISSION])[SUBMISSION] == each["submission"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"no list of verifications: {error!r}", where=str(path)) from error


def write_submission(folder: Path, submission: Mapping[str, Any]) -> None:
    """Write ``submission.json``."""
    write_if_changed(folder / SUBMISSION, json.dumps(submission, indent=1, sort_keys=True) + "\n")


def add_verified(folder: Path, found: Mapping[str, str]) -> None:
    """Add a verification of the present submission to ``verified.json``; those of an earlier one are dropped."""
    added = {**found, "submission": file_checksums(folder, [SUBMISSION])[SUBMISSION]}
    verified = [*read_verified(folder), added]
    write_if_changed(folder / VERIFIED, json.dumps(verified, indent=1, sort_keys=True) + "\n")


def origin(folder: Path) -> str:
    """Return where results come from, in words: committed with the code, or by whom submitted and verified."""
    submission = read_submission(folder)
    return "committed" if submission is None else f"submitted by {submission['by']}, {verified_by(folder)}"


def verified_by(folder: Path) -> str:
    """Return who has computed a sample of the submission again, in words."""
    names = dict.fromkeys(str(each["by"]) for each in read_verified(folder))
    return f"verified by {', '.join(names)}" if names else "not verified by others"
