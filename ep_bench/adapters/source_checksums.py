"""Checksums of the source code of classes that users bring: stored results of other code are not used."""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any


def source_checksum(target: Any) -> str:
    """Return the checksum of the modules of a class's package or, for a single module, of its file and its siblings.

    It is ``unknown`` without source files, such as for a package in an archive.
    """
    while isinstance(target, functools.partial):
        target = target.func
    top = sys.modules.get(str(getattr(target, "__module__", "")).partition(".")[0])
    folders = getattr(top, "__path__", None)
    if folders is not None:
        sums = [hashlib.sha256(name + content).digest() for name, content in _modules(list(folders))]
        return f"package {hashlib.sha256(b''.join(sums)).hexdigest()[:16]}" if sums else "unknown"
    try:
        source = inspect.getsourcefile(target)
    except TypeError:  # no class and no function
        source = None
    return "; ".join(checksums(Path(source))) if source else "unknown"


def _modules(folders: Sequence[str]) -> Iterator[tuple[bytes, bytes]]:
    """Yield relative path and content of the modules in the folders of a package."""
    for folder in sorted(map(Path, folders)):
        for path in sorted(folder.rglob("*.py")):
            if path.is_file() and not path.name.startswith("."):
                yield path.relative_to(folder).as_posix().encode() + b"\0", path.read_bytes()


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
