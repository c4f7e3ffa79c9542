"""`ep-bench init`: the study that it writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from ep_bench.spec import parse_study
from ep_bench.spec.first_study import first_study, study_name
from tests.commands import ep_bench

OWN = """
import numpy as np

class Own:
    def fit(self, X, y):
        self.mean = y.mean()
        return self
    def predict(self, X, return_std=False):
        return np.full(len(X), self.mean), np.ones(len(X))
"""


@pytest.mark.parametrize("options", [[], ["--method", "./own.py:Own"]])
def test_the_study_is_valid_and_complete(tmp_path: Path, options: list[str]) -> None:
    (tmp_path / "own.py").write_text(OWN)
    done = ep_bench("init", "mine.yaml", *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    plan = ep_bench("plan", "mine.yaml", cwd=tmp_path)
    assert plan.returncode == 0, plan.stderr
    assert f"{50 if options else 40} cells" in plan.stdout
    assert ("Own method" in plan.stdout) == bool(options)


def test_an_existing_file_is_kept(tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text("mine")
    done = ep_bench("init", cwd=tmp_path)
    assert done.returncode == 2
    assert "study.yaml: the file exists" in done.stderr
    assert (tmp_path / "study.yaml").read_text() == "mine"


def test_a_wrong_class_writes_nothing(tmp_path: Path) -> None:
    done = ep_bench("init", "--method", "nowhere:Class", cwd=tmp_path)
    assert done.returncode == 2
    assert "cannot import 'nowhere'" in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("study.yaml", "first-study"),
        ("sub/my study (2).yaml", "my-study-2"),
        ("été.yaml", "t"),
        ("...", "first-study"),
        ("x" * 120, "x" * 100),
    ],
)
def test_the_study_has_the_name_of_its_file(file: str, name: str) -> None:
    """Two studies with one name would use one results folder."""
    text = first_study(file)
    assert study_name(file) == name
    assert parse_study(text, Path(file)).name == name
    assert f"check results/{name}\n" in text
