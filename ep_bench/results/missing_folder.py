"""What a folder argument without results may mean, for messages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ep_bench.errors import UserError, nearest
from ep_bench.regular_files import read_bytes

_NAME = re.compile(r"^study:[ \t]*[\"']?([A-Za-z0-9][A-Za-z0-9 ._+-]*)", re.MULTILINE)


def no_folder(folder: Path, files: Sequence[str]) -> UserError:
    """Return the error for a path that is no folder; a folder of results has one of ``files``."""
    if folder.is_file():
        if folder.suffix in {".yaml", ".yml"}:
            return UserError(
                f"is a study, not a folder; its results are in results/{_study(folder)}", where=str(folder)
            )
        return UserError("is a file, not a folder", where=str(folder))
    moved = [folder.parent / "results" / folder.name] if folder.parent.name != "results" else []
    near = nearest(folder.name, {path.name for path in _with_results(folder.parent, files)})
    meant = [path for path in moved if any((path / file).is_file() for file in files)]
    meant += [folder.parent / near] if near else []
    return UserError("no such folder" + (f"; did you mean {meant[0]}?" if meant else ""), where=str(folder))


def no_results(folder: Path, files: Sequence[str]) -> UserError:
    """Return the error for a folder without results; it lists the folders in it that have some."""
    names = " nor ".join(files)
    inner = [str(path) for path in _with_results(folder, files)]
    return UserError(f"no results found: neither {names} exists", where=str(folder), allowed=inner or None)


def _with_results(parent: Path, files: Sequence[str]) -> list[Path]:
    """Return the folders in a folder that have one of the files."""
    return sorted({path.parent for file in files for path in parent.glob(f"*/{file}")})


def _study(file: Path) -> str:
    """Return the name of the study in a file, or NAME if it cannot be read."""
    try:
        found = _NAME.search(read_bytes(file).decode("utf-8"))
    except (OSError, ValueError):
        return "NAME"
    return found.group(1).strip() if found else "NAME"
