"""The wheel is complete: built from the sdist, installed in its own environment, used in an empty folder."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def quietly(*command: object, cwd: Path) -> str:
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("EP_BENCH", "PYTHON"))}
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, cwd=cwd, env=clean)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.exhaustive
def test_the_wheel_has_data_and_studies(tmp_path: Path) -> None:
    # Without a wheel or sdist named, the build makes the sdist first and the wheel from it.
    quietly(sys.executable, "-m", "build", "--no-isolation", "--outdir", tmp_path, ROOT, cwd=tmp_path)
    (built,) = tmp_path.glob("ep_bench-*.whl")
    assert built.stat().st_size < 20_000_000
    quietly(sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv", cwd=tmp_path)
    python = tmp_path / "venv" / "bin" / "python"
    # The libraries are this environment's, which takes a second and not minutes; what they must be is tested below.
    (site,) = (tmp_path / "venv" / "lib").glob("python*/site-packages")
    (site / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    install = ["-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--force-reinstall"]
    quietly(sys.executable, *install, built, cwd=tmp_path)
    program = tmp_path / "venv" / "bin" / "ep-bench"
    ran = quietly(program, "run", "pbp_table1", "--select", "dataset=yacht", cwd=tmp_path)
    assert "20 cells run; 20 ok" in ran
    assert "report.html" in quietly(program, "report", "results/pbp-table-1", cwd=tmp_path)
    verdicts = quietly(program, "check", "results/pbp-table-1", "--against", "hernandez-lobato2015", cwd=tmp_path)
    assert "2 reproduced" in verdicts
    verified = quietly(program, "data", "verify", cwd=tmp_path).splitlines()
    assert [line.split()[0] for line in verified if line.split()[1] != "ok"] == ["year"]
    code = "import ep_bench; print(ep_bench.__file__, ep_bench.load_dataset('boston').X.shape)"
    typed, shape = quietly(python, "-c", code, cwd=tmp_path).split(maxsplit=1)
    assert shape.strip() == "(506, 13)"
    assert Path(typed).with_name("py.typed").exists()
    assert str(ROOT) not in typed


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
