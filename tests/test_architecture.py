"""The import table of docs/ARCHITECTURE.md, compared with the code."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "ep_bench"

# Package or module -> the others of ep_bench that it may import. The same table is in docs/ARCHITECTURE.md.
ALLOWED = {
    "errors": set(),
    "types": set(),
    "resources": set(),
    "predictions": {"types"},
    "numerics": {"errors"},
    "models": {"numerics"},
    "covariances": {"errors", "types", "options", "numerics"},
    "methods": {"errors", "types", "predictions", "options", "numerics", "models", "covariances"},
    "options": {"errors", "types"},
    "estimator": {"errors", "types", "predictions", "numerics", "methods", "options"},
    "adapters": {"errors", "types", "predictions", "methods", "estimator"},
    "recalibration": {"types", "predictions", "adapters"},
    "baselines": {"errors", "types"},
    "tree_baselines": {"errors", "types"},
    "data": {"errors", "types", "resources"},
    "crps": {"types", "predictions"},
    "scoring": {"types", "predictions", "crps"},
    "scores": {"types", "predictions", "crps"},
    "tuning": {"types"},
    "results": {"errors", "types"},
    "processes": {"errors"},
    "catalogue": {
        "errors",
        "types",
        "methods",
        "options",
        "estimator",
        "adapters",
        "data",
        "published",
        "experiments",
    },
    "api": {"errors", "types", "adapters", "experiments", "results", "runner", "spec"},
    "convergence": {"types"},
    "plot": {"errors", "convergence", "predictions", "scores", "report", "plotting"},
    "published": {"errors", "types", "resources", "convergence"},
    "spec": {"errors", "types", "resources", "options", "catalogue"},
    "runner": {
        "errors",
        "types",
        "predictions",
        "methods",
        "options",
        "estimator",
        "adapters",
        "recalibration",
        "data",
        "scoring",
        "tuning",
        "results",
        "processes",
        "experiments",
        "spec",
    },
    "conformance": {"errors", "types", "predictions", "methods", "estimator", "adapters", "processes", "runner"},
    "experiments": {
        "errors",
        "types",
        "convergence",
        "predictions",
        "adapters",
        "covariances",
        "methods",
        "options",
        "estimator",
        "tuning",
        "data",
        "results",
        "processes",
        "published",
        "plotting",
    },
    "plotting": {"types", "methods"},
    "report": {"errors", "types", "resources", "results", "convergence", "published", "experiments", "plotting"},
    "cli": None,
    "__init__": None,
    "__main__": None,
}
# The command line may not load these, directly or through what it imports.
HEAVY = ("numba", "numpy", "pandas", "scipy", "sklearn", "matplotlib", "joblib", "pydantic", "yaml", "rich", "optuna")


def package_of(path: Path) -> str:
    inside = path.relative_to(PACKAGE)
    return inside.parts[0].removesuffix(".py")


def imports(path: Path) -> set[str]:
    """Return the packages that a file imports, in any of its bodies; imports for annotations alone do not count."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            node.body = [ast.Pass()]
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide which package is meant"
            module = node.module or ""
            if module == "ep_bench":
                found |= {alias.name for alias in node.names}
            elif module.startswith("ep_bench."):
                found.add(module.split(".")[1])
        elif isinstance(node, ast.Import):
            found |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("ep_bench.")}
    return found


FILES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_every_package_imports_only_what_it_may(path: Path) -> None:
    package = package_of(path)
    assert package in ALLOWED, (
        f"{package} is a new package: give it a row in the table, here and in docs/ARCHITECTURE.md"
    )
    allowed = ALLOWED[package]
    if allowed is not None:
        assert imports(path) <= allowed | {package}


def test_methods_know_no_sibling() -> None:
    for path in (PACKAGE / "methods").rglob("*.py"):
        own = path.relative_to(PACKAGE / "methods").parts[0].removesuffix(".py")
        if own == "__init__":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ep_bench.methods"):
                assert (node.module or "").split(".")[2:3] == [own], f"{path} imports {node.module}"


def test_methods_create_no_generators() -> None:
    fixed_direction = PACKAGE / "methods" / "gp_t" / "laplace.py"  # the same direction in every fit
    for path in {*(PACKAGE / "methods").rglob("*.py")} - {fixed_direction}:
        text = path.read_text(encoding="utf-8")
        assert "default_rng(" not in text, f"{path}: draw all random numbers from the argument rng"


def test_nothing_is_missing_in_a_registry() -> None:
    from ep_bench.report.sections import SECTIONS

    parts = {path.stem for path in (PACKAGE / "report" / "sections").glob("*.py")} - {"__init__"}
    listed = {function.__module__.rpartition(".")[2] for function in SECTIONS}
    assert parts == listed, "a section needs an entry in SECTIONS of ep_bench/report/sections/__init__.py"


def test_the_table_of_the_document_is_this_one() -> None:
    text = (PACKAGE.parent / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1:3] for line in text.splitlines() if line.startswith("| `")]
    written = {
        package.strip(" `"): {word.strip(" `") for word in allowed.split(",")} - {"nothing", ""}
        for package, allowed in rows
    }
    assert written == {package: allowed for package, allowed in ALLOWED.items() if allowed is not None}


def loaded_modules(code: str) -> set[str]:
    script = f"{code}\nimport sys, json; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def loaded(code: str) -> set[str]:
    return {name.split(".")[0] for name in loaded_modules(code)}


def test_the_command_line_starts_light() -> None:
    modules = loaded("import ep_bench, ep_bench.cli")
    assert not modules & set(HEAVY)


# What a plan of methods of the registry does without. numba is none of these: a method's module declares its kernels.
NOT_FOR_PLANS = {"sklearn", "pandas", "joblib", "matplotlib", "optuna", "jinja2", "distributed"}
# Parts of SciPy that are slow to load; a method imports them where it fits.
SLOW_PARTS = {"scipy.stats", "scipy.optimize", "scipy.spatial"}


@pytest.mark.parametrize("command", ["plan", "run"])
def test_a_plan_and_an_empty_run_load_what_they_need(command: str, tmp_path: Path) -> None:
    """Every method of the registry may be in the study; the run has nothing left to do."""
    from ep_bench import methods
    from ep_bench.runner.plan import make_plan
    from ep_bench.spec import read_study
    from tests.finished import finish

    entries = "".join(f"\n  - {{use: {name}, label: {name}}}" for name in methods.REGISTRY)
    study = tmp_path / "study.yaml"
    study.write_text(f"study: all\ndatasets: [friedman1]\nsplits: {{scheme: standard, count: 1}}\nmethods:{entries}\n")
    plan = make_plan(read_study(study), tmp_path / "results")
    finish(plan)

    words = [command, str(study), "--results", str(tmp_path / "results")]
    modules = loaded_modules(f"from ep_bench.cli import cli\ncli.main({words!r}, standalone_mode=False)")
    assert not {name.split(".")[0] for name in modules} & NOT_FOR_PLANS
    assert not modules & SLOW_PARTS


LIGHT = [
    "data",
    "scoring",
    "results.store",
    "results.curves",
    "published",
    "spec",
    "report",
    "types",
    "tuning",
    "plotting.method_style",
]


@pytest.mark.parametrize("package", LIGHT)
def test_packages_that_never_load_numba_or_optuna(package: str) -> None:
    assert not loaded(f"import ep_bench.{package}") & {"numba", "optuna"}


def test_files_are_short() -> None:
    long = {str(path): lines for path in FILES if (lines := len(path.read_text(encoding="utf-8").splitlines())) > 400}
    assert not long


@pytest.mark.parametrize("path", sorted((PACKAGE.parent / "benchmarks").glob("*.py")), ids=lambda path: path.stem)
def test_benchmarks_use_names_that_exist(path: Path) -> None:
    """Also those that run only where other programs are installed."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    modules = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("ep_bench"):
            for alias in node.names:
                found = getattr(importlib.import_module(str(node.module)), alias.name, None)
                found = found or importlib.import_module(f"{node.module}.{alias.name}")
                if inspect.ismodule(found):
                    modules[alias.asname or alias.name] = found
    used = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)]
    names = {(node.value.id, node.attr) for node in used if node.value.id in modules}
    assert [name for name in sorted(names) if not hasattr(modules[name[0]], name[1])] == []
