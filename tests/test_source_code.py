"""The hash of the source code of a method: it changes with the code, and not with comments or docstrings."""

from __future__ import annotations

from pathlib import Path

import pytest

from ep_bench import methods
from ep_bench.estimator import source_code
from ep_bench.estimator.source_code import code_hash, source_hash
from ep_bench.numerics import kernel_sources

CODE = '''"""A module."""
LIMIT = 3.0

def double(x):
    """Return 2 x."""
    return 2.0 * x  # exact
'''


@pytest.fixture
def module(tmp_path: Path) -> Path:
    path = tmp_path / "kernel.py"
    path.write_text(CODE)
    return path


@pytest.mark.parametrize(
    ("old", "new"),
    [("A module.", "Another."), ("Return 2 x.", "Twice."), ("  # exact", ""), ("2.0 * x", "(2.0  *  x)")],
)
def test_words_and_layout_have_no_effect(module: Path, old: str, new: str) -> None:
    before = code_hash([module])
    module.write_text(CODE.replace(old, new))
    assert module.read_text() != CODE
    assert code_hash([module]) == before


@pytest.mark.parametrize(("old", "new"), [("3.0", "3.1"), ("2.0 * x", "2.0 + x"), ("def double", "def twice")])
def test_code_has_an_effect(module: Path, old: str, new: str) -> None:
    before = code_hash([module])
    module.write_text(CODE.replace(old, new))
    assert code_hash([module]) != before


def test_every_method_has_its_own_hash() -> None:
    found = {name: source_hash(name) for name in methods.REGISTRY}
    assert {len(value) for value in found.values()} == {16}
    assert len(set(found.values())) == len(found)


def test_a_changed_constant_changes_the_methods_that_use_its_module(monkeypatch: pytest.MonkeyPatch) -> None:
    """A constant of ``numerics/slice_sampling.py``, which one method imports."""
    changed = kernel_sources.PACKAGE / "numerics" / "slice_sampling.py"
    users = {
        name
        for name in methods.REGISTRY
        if changed in [source.path for source in kernel_sources.sources(Path(methods_file(name)))]
    }
    assert users
    assert users != set(methods.REGISTRY)
    source_hash.cache_clear()
    before = {name: source_hash(name) for name in methods.REGISTRY}
    read = source_code._code
    monkeypatch.setattr(source_code, "_code", lambda path: read(path) + ("changed" if path == changed else ""))
    source_hash.cache_clear()
    after = {name: source_hash(name) for name in methods.REGISTRY}
    source_hash.cache_clear()
    assert {name for name in methods.REGISTRY if before[name] != after[name]} == users


def methods_file(name: str) -> str:
    return str(kernel_sources.PACKAGE.parent.joinpath(*methods.REGISTRY[name].split("."))) + (
        ".py" if not (kernel_sources.PACKAGE / "methods" / name).is_dir() else "/__init__.py"
    )
