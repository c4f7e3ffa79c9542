"""A hash of the source code that computes a method's numbers, stored with each row."""

from __future__ import annotations

import ast
import hashlib
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from ep_bench import methods
from ep_bench.numerics import kernel_sources

PARTS = ("methods", "numerics", "models", "covariances", "predictions")  # packages whose code determines numbers


@cache
def source_hash(name: str) -> str:
    """Return a hash of the source code of a registry method, 16 hexadecimal digits.

    It covers the modules of the method and those that they import from PARTS, directly or indirectly. Comments,
    docstrings and layout have no effect. Another version of Python may give another hash.
    """
    module = sys.modules[methods.get(name).fit.__module__]
    found = [source.path for source in kernel_sources.sources(Path(str(module.__file__)))]
    return code_hash(path for path in found if _counts(path))


def code_hash(paths: Iterable[Path]) -> str:
    """Return a hash of the code of source files, 16 hexadecimal digits."""
    codes = sorted(f"{kernel_sources.dotted_name(path)}\0{_code(path)}" for path in paths)
    return hashlib.sha256("\n".join(codes).encode()).hexdigest()[:16]


def _counts(path: Path) -> bool:
    package, _, rest = kernel_sources.dotted_name(path).partition(".")
    return package != kernel_sources.PACKAGE.name or rest.startswith(PARTS)


def _code(path: Path) -> str:
    return _tree(path.read_text(encoding="utf-8"))


@cache
def _tree(text: str) -> str:
    """Return the syntax tree of a source text as text, without docstrings."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and _documented(node):
            node.body[0] = ast.Pass()
    return ast.dump(tree)


def _documented(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return ast.get_docstring(node, clean=False) is not None
