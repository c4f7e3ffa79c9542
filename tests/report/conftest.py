"""A maker of synthetic studies for the tests of the report."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def make_study() -> Callable[..., Path]:
    spec = importlib.util.spec_from_file_location("synthetic", Path(__file__).parent / "synthetic.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.make_study
