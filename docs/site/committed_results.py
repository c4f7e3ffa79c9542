"""The folders of committed results: those of the studies in ``configs/``, not of the user's own runs in ``results/``.

``python docs/site/committed_results.py`` prints their names and those of submitted results, for the Makefile.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
EXAMPLES = {"quickstart", "regress", "tuned"}  # studies in configs/ that each user runs
_NAME = re.compile(r"^study: *(\S+)", flags=re.MULTILINE)


def committed_folders() -> list[Path]:
    """Return the folders of the committed results, sorted by name."""
    texts = (path.read_text(encoding="utf-8") for path in (ROOT / "configs").rglob("*.yaml"))
    names = {found[1] for text in texts if (found := _NAME.search(text))}
    folders = (ROOT / "results" / name for name in sorted(names - EXAMPLES))
    return [folder for folder in folders if (folder / "study.lock.json").is_file()]


def submitted_folders() -> list[Path]:
    """Return the folders of results that somebody else has submitted, sorted by name."""
    return sorted(path.parent for path in (ROOT / "results").glob("*/submission.json"))


if __name__ == "__main__":
    print(*(folder.name for folder in [*committed_folders(), *submitted_folders()]))
