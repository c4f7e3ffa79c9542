"""Every library that the package imports is declared in pyproject.toml; `make dist` tries the archives."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


BROUGHT = {"llvmlite", "pydantic_core", "IPython"}  # by numba and pydantic, of which they are parts; by a notebook
IMPORT_NAMES = {
    "scikit-learn": "sklearn",
    "pyyaml": "yaml",
    "scikit-posthocs": "scikit_posthocs",
    "arviz-stats": "arviz_stats",
}


def test_every_library_that_is_imported_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    declared = [*project["dependencies"], *extras["dask"], *extras["controls"]]
    names = {re.match(r"[A-Za-z0-9-]+", line).group().lower() for line in declared}
    allowed = {IMPORT_NAMES.get(name, name) for name in names} | set(sys.stdlib_module_names) | BROUGHT | {"ep_bench"}
    imported = {name: path for path in sorted((ROOT / "ep_bench").rglob("*.py")) for name in _imports(path)}
    assert {name: path for name, path in imported.items() if name not in allowed} == {}
    unused = {IMPORT_NAMES.get(name, name) for name in names} - imported.keys()
    assert unused <= {"dask"}


def _imports(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    called = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args]
    names += [
        node.args[0].value
        for node in called
        if ast.unparse(node.func).endswith("import_module") and isinstance(node.args[0], ast.Constant)
    ]
    return {name.partition(".")[0] for name in names}
