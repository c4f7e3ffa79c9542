"""The source files that a compiled kernel depends on, and a hash of their contents.

The compiled code of a kernel contains the kernels that it calls. It depends on the kernel's own file and on every file
of ep_bench that this file imports, directly or indirectly. A kernel outside ep_bench also depends on all files of its
package, or on the files in the same folder if it is not in a package.
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
    """A source file: path, name, hash of the contents, and imported files of ep_bench."""

    path: Path
    name: str
    digest: str
    imports: tuple[Path, ...]


def content_hash(file: Path) -> str:
    """Return a hash of the contents of all source files that the kernels of a file depend on."""
    lines = sorted(f"{source.name}\0{source.digest}\n" for source in sources(file))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def sources(file: Path) -> list[Source]:
    """Return the source files that the kernels of a file depend on, as they were when first read by this process."""
    pending = [file.resolve()]
    if not _is_inside(pending[0]):
        pending += _user_sources(pending[0])
    found: dict[Path, Source] = {}
    while pending:
        path = pending.pop()
        if path not in found:
            found[path] = _read(path)
            pending += found[path].imports
    return list(found.values())


def dotted_name(file: Path) -> str:
    """Return the module name of a file of ep_bench, or the stem of another file."""
    file = file.resolve()
    if not _is_inside(file):
        return file.stem
    return ".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts)


def _user_sources(file: Path) -> Iterator[Path]:
    """Yield the files of the package of a file outside ep_bench, or the files in its folder if there is no package."""
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
def _read(path: Path) -> Source:
    content = path.read_bytes()
    imports = tuple(_imported(content.decode("utf-8", errors="replace")))
    return Source(path, dotted_name(path), hashlib.sha256(content).hexdigest(), imports)


def _imported(text: str) -> Iterator[Path]:
    """Yield the files of ep_bench that a source text imports."""
    for module, names in _IMPORT.findall(text):
        base = PACKAGE.parent.joinpath(*module.split("."))
        submodules = [path for name in re.findall(r"\w+", names) if (path := _source(base / name)) is not None]
        yield from submodules
        if (path := _source(base)) is not None and (path.name != "__init__.py" or not _are_all(names, submodules)):
            yield path


def _are_all(names: str, submodules: list[Path]) -> bool:
    """Return whether every imported name is a submodule, so ``__init__.py`` itself is not needed."""
    plain = re.sub(r"#.*|\bas\s+\w+", "", names)
    return 0 < len(re.findall(r"\w+", plain)) == len(submodules)


def _source(base: Path) -> Path | None:
    candidates = (base.with_suffix(".py"), base / "__init__.py")
    return next((path for path in candidates if path.is_file()), None)
