"""Checksums of the source code of classes that users bring: stored results of other code are not used."""

from __future__ import annotations

import ast
import hashlib
import inspect
import sys
from pathlib import Path
from typing import Any


def source_checksum(target: Any) -> str:
    """Return the checksum of the modules of a class's package or, for a single module, of its file and its siblings."""
    top = sys.modules.get(str(getattr(target, "__module__", "")).partition(".")[0])
    file = getattr(top, "__file__", None)
    if file is not None and hasattr(top, "__path__"):
        folder = Path(file).parent
        sums = hashlib.sha256()
        for path in sorted(folder.rglob("*.py")):
            sums.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
        return f"package {sums.hexdigest()[:16]}"
    source = inspect.getsourcefile(target)
    return "; ".join(checksums(Path(source))) if source else "unknown"


def checksums(path: Path) -> tuple[str, ...]:
    """Return the checksums of a file and of the sibling modules that it imports."""
    sums = {file: hashlib.sha256(file.read_bytes()).hexdigest()[:16] for file in (path, *sibling_modules(path))}
    return tuple(f"file {sums[file]}" if file == path else f"{file.stem} {sums[file]}" for file in sums)


def sibling_modules(path: Path) -> list[Path]:
    """Return the modules in the folder of a file that it imports, directly or indirectly; nothing is executed."""
    found: dict[Path, None] = {}
    waiting = [path]
    while waiting:
        for name in _imported(waiting.pop()):
            module = path.parent / f"{name}.py"
            package = path.parent / name
            new = [module] if module.is_file() else sorted(package.rglob("*.py")) if package.is_dir() else []
            new = [file for file in new if file not in found and file != path]
            found |= dict.fromkeys(new)
            waiting += new
    return sorted(found)


def _imported(path: Path) -> set[str]:
    """Return the top-level names of the modules that a file imports, except the standard library."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return set()
    names = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    return {name.partition(".")[0] for name in names} - sys.stdlib_module_names
