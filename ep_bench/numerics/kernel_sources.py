"""The source code that a kernel depends on, as a hash of contents.

A kernel's compiled code contains the kernels that it calls. It depends on the file of the kernel and on every file of
ep_bench that this file imports, directly or through others. A kernel outside ep_bench also depends on all files of its
own package, or on the files next to its own if it is in no package.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).resolve().parents[1]

# from ep_bench.a.b import c, d       from ep_bench.a.b import (c, d)       import ep_bench.a.b
_IMPORT = re.compile(
    rf"^[ \t]*(?:from|import)[ \t]+({PACKAGE.name}[\w.]*)(?:[ \t]+import[ \t]+(\([^)]*|.*))?", re.MULTILINE
)


class Source(NamedTuple):
    """A source file: its name, the hash of its contents, the files of ep_bench that it imports."""

    name: str
    digest: str
    imports: tuple[Path, ...]
    changed: int  # nanoseconds


def content_hash(file: Path) -> str:
    """Return a hash of the contents of all source files that the kernels of a file depend on."""
    lines = sorted(f"{source.name}\0{source.digest}\n" for source in sources(file))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def last_change(file: Path) -> int:
    """Return the latest time, in nanoseconds, at which a source that the kernels of a file depend on was changed.

    It is the time of the change of the file's inode: a copy that keeps its modification time counts as changed.
    """
    return max(source.changed for source in sources(file))


def sources(file: Path) -> list[Source]:
    """Return the source files that the kernels of a file depend on."""
    waiting = [file.resolve()]
    if not _is_inside(waiting[0]):
        waiting += _user_sources(waiting[0])
    found: dict[Path, Source] = {}
    while waiting:
        path = waiting.pop()
        if path not in found:
            status = path.stat()
            found[path] = _read(path, status.st_ctime_ns, status.st_size)
            waiting += found[path].imports
    return list(found.values())


def dotted_name(file: Path) -> str:
    """Return the module name of a file of ep_bench, and the file's own name of any other."""
    file = file.resolve()
    if not _is_inside(file):
        return file.stem
    return ".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts)


def _user_sources(file: Path) -> Iterator[Path]:
    """Yield the files of the package that a file outside ep_bench is in; without one, the files next to it."""
    folder = file.parent
    if not (folder / "__init__.py").is_file():
        yield from folder.glob("*.py")
        return
    while (folder.parent / "__init__.py").is_file():
        folder = folder.parent
    yield from folder.rglob("*.py")


def _is_inside(file: Path) -> bool:
    return PACKAGE in file.parents


@cache
def _read(path: Path, changed: int, size: int) -> Source:  # noqa: ARG001 - time and size are the key of the cache
    content = path.read_bytes()
    imports = tuple(_imported(content.decode("utf-8", errors="replace")))
    return Source(dotted_name(path), hashlib.sha256(content).hexdigest(), imports, changed)


def _imported(text: str) -> Iterator[Path]:
    for module, names in _IMPORT.findall(text):
        place = PACKAGE.parent.joinpath(*module.split("."))
        submodules = [path for name in re.findall(r"\w+", names) if (path := _source(place / name)) is not None]
        yield from submodules
        if (path := _source(place)) is not None and (path.name != "__init__.py" or not _are_all(names, submodules)):
            yield path


def _are_all(names: str, submodules: list[Path]) -> bool:
    """Return whether every imported name is a submodule, so that nothing comes from ``__init__.py`` itself."""
    plain = re.sub(r"#.*|\bas\s+\w+", "", names)
    return 0 < len(re.findall(r"\w+", plain)) == len(submodules)


def _source(place: Path) -> Path | None:
    candidates = (place.with_suffix(".py"), place / "__init__.py")
    return next((path for path in candidates if path.is_file()), None)
