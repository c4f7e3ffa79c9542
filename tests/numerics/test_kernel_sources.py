"""Source files that the compiled code of a kernel depends on."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path
from types import ModuleType

import numba
import pytest
from numba.core.dispatcher import Dispatcher

import ep_bench
from ep_bench.numerics.kernel_sources import _read, content_hash, sources

PACKAGE = Path(ep_bench.__file__).parent
FOLDERS = ("numerics", "models", "covariances", "methods")


def names(file: Path) -> set[str]:
    return {source.name for source in sources(file)}


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    file = tmp_path / "kernel.py"
    file.write_text("from ep_bench.numerics.normal import normal_tail\n")
    return file


def test_sources_are_followed_through_imports():
    found = names(PACKAGE / "methods" / "hmc" / "trajectory.py")
    assert {
        "ep_bench.methods.hmc.trajectory",
        "ep_bench.models.residuals",
        "ep_bench.models.mlp",
        "ep_bench.numerics.simd.vector",
        "ep_bench.numerics.normal",
    } <= found


def test_files_that_are_not_imported_are_not_sources():
    found = names(PACKAGE / "methods" / "hmc" / "trajectory.py")
    assert not {"ep_bench.methods.hmc", "ep_bench.methods.hmc.diagnostics", "ep_bench.numerics.lbfgs"} & found


def test_a_kernel_outside_the_package_depends_on_its_folder(kernel: Path):
    before = content_hash(kernel)
    (kernel.parent / "helper.py").write_text("y = 2\n")
    assert content_hash(kernel) != before
    assert {"kernel", "helper", "ep_bench.numerics.normal", "ep_bench.numerics.simd.vector"} <= names(kernel)


def test_the_hash_depends_on_contents(kernel: Path):
    before = content_hash(kernel)
    kernel.write_text(kernel.read_text() + "# changed\n")
    assert content_hash(kernel) == before  # what this process has read
    _read.cache_clear()
    assert content_hash(kernel) != before


def test_equal_contents_in_two_folders_have_one_hash(kernel: Path, tmp_path_factory: pytest.TempPathFactory):
    copy = tmp_path_factory.mktemp("copy") / kernel.name
    copy.write_text(kernel.read_text())
    assert content_hash(copy) == content_hash(kernel)


def test_a_kernel_in_a_users_package_depends_on_all_of_it(tmp_path: Path):
    for name in ("mine/__init__.py", "mine/deep/__init__.py", "mine/deep/kernel.py", "mine/other.py", "outside.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    kernel = tmp_path / "mine/deep/kernel.py"
    before = content_hash(kernel)
    (tmp_path / "outside.py").write_text("x = 1")
    assert content_hash(kernel) == before
    (tmp_path / "mine/other.py").write_text("x = 1")
    _read.cache_clear()
    assert content_hash(kernel) != before


@pytest.mark.parametrize(
    ("line", "module"),
    [
        ("from ep_bench.numerics import psi", "ep_bench.numerics.psi"),
        ("from ep_bench.numerics import (\n    psi,  # two\n    relu as r,\n)", "ep_bench.numerics.relu"),
        ("import ep_bench.numerics.psi", "ep_bench.numerics.psi"),
        ("    from ep_bench.numerics.psi import psi", "ep_bench.numerics.psi"),
        ("from ep_bench.covariances import Stationary", "ep_bench.covariances.stationary"),
    ],
)
def test_all_forms_of_import_are_found(tmp_path: Path, line: str, module: str):
    file = tmp_path / "kernel.py"
    file.write_text(f"{line}\n")
    assert module in names(file)


def modules() -> list[ModuleType]:
    found = pkgutil.walk_packages([str(PACKAGE)], "ep_bench.")
    wanted = [module.name for module in found if module.name.split(".")[1] in FOLDERS]
    return [importlib.import_module(name) for name in wanted]


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_every_called_kernel_is_among_the_sources():
    kernels = {value for module in modules() for value in vars(module).values() if isinstance(value, Dispatcher)}
    assert len(kernels) > 100
    for kernel in kernels:
        found = names(Path(kernel.py_func.__code__.co_filename))
        for name in kernel.py_func.__code__.co_names:
            used = kernel.py_func.__globals__.get(name)
            if isinstance(used, ModuleType) and used.__name__.startswith("ep_bench."):
                assert used.__name__ in found
            elif getattr(used, "__module__", "").startswith("ep_bench."):
                assert used.__module__ in found


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_merged_kernels_have_the_flags_of_their_callers():
    kernels = {value for module in modules() for value in vars(module).values() if isinstance(value, Dispatcher)}
    for kernel in kernels:
        code, scope = kernel.py_func.__code__, kernel.py_func.__globals__
        places = [scope, *(vars(scope[name]) for name in code.co_names if isinstance(scope.get(name), ModuleType))]
        used = [place[name] for place in places for name in code.co_names if isinstance(place.get(name), Dispatcher)]
        for other in used:
            if other.targetoptions["inline"] == "always":
                assert other.targetoptions["fastmath"] == kernel.targetoptions["fastmath"], (kernel, other)
