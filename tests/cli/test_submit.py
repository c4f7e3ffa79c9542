"""``ep-bench submit``: a submission with a class in a file, its verification by others, and what is refused."""

from __future__ import annotations

import json
import math
import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ep_bench import tree_baselines
from ep_bench.results import store
from ep_bench.results.integrity import checksum
from ep_bench.results.submission import origin
from ep_bench.runner import submission
from ep_bench.runner.verify import Sample, Verification, _choose
from tests.commands import ep_bench

ROOT = Path(__file__).parents[2]
STUDY = """
study: mine
datasets: [yacht]
splits: {scheme: standard, count: 2}
methods:
  - {use: "sklearn.linear_model:BayesianRidge", label: ridge}
  - {use: "./own/method.py:Own", label: own}
"""
METHOD = """
from helper import spread

class Own:
    equality = "exact"
    def fit(self, X, y):
        self.mean, self.std = y.mean(), spread(y)
        return self
    def predict(self, X, return_std=False):
        mean = self.mean + 0.0 * X[:, 0]
        return (mean, self.std + 0.0 * mean) if return_std else mean
"""


@pytest.fixture
def study(tmp_path: Path, in_process: None) -> Path:
    """Return a study that was run by committed code."""
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "method.py").write_text(METHOD)
    (tmp_path / "own" / "helper.py").write_text("def spread(y):\n    return y.std()\n")
    path = tmp_path / "study.yaml"
    path.write_text(STUDY)
    assert ep_bench("run", path, "--results", tmp_path).returncode == 0
    folder = tmp_path / "mine"
    lock = folder / store.LOCK
    lock.write_text(lock.read_text().replace("+changes", ""))
    return path


def alter(folder: Path, *, forged: bool) -> None:
    """Improve the scores of the first row; a forged one has the right checksum."""
    table, lock = folder / store.RESULTS, folder / store.LOCK
    head, first, *others = table.read_text().splitlines()
    values = dict(zip(head.split(","), first.split(","), strict=True))
    better = first.replace(values["rmse"], "0.5")
    table.write_text("\n".join([head, better, *others]) + "\n")
    if forged:
        before = json.loads(lock.read_text())
        (row,) = [row for row in store.read_rows(table) if row["cell"] == values["cell"]]
        for group in before["provenance"]:
            if values["cell"] in group["rows"]:
                group["rows"][values["cell"]] = checksum(row)
        lock.write_text(json.dumps(before))


@pytest.mark.slow
def test_a_submission_is_accepted_and_verified_elsewhere(study: Path, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    refused = ep_bench("submit", folder, "--by", "Ada")
    assert refused.returncode == 2
    assert "name the study" in refused.stderr
    done = ep_bench("submit", folder, "--by", "Ada", "--study", study, "--cells", 4)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 results computed again, 0 different" in done.stdout
    submission = json.loads((folder / "submission.json").read_text())
    assert [each.split("==")[0] for each in submission["requirements"]] == ["scikit-learn"]
    assert {"own/method.py", "own/helper.py", "study.yaml", "results.csv"} <= submission["files"].keys()
    assert origin(folder) == "submitted by Ada, not verified by others"

    received = shutil.copytree(folder, tmp_path / "elsewhere" / "mine")
    shutil.rmtree(tmp_path / "own")
    assert ep_bench("submit", received, "--by", "Bob").returncode == 0
    assert origin(received) == "submitted by Ada, verified by Bob"
    (verified,) = json.loads((received / "verified.json").read_text())
    assert "4 results computed again, 0 different" in verified["result"]
    assert "sample of 4 of 4 cells" in verified["result"]
    assert "| Bob |" in (received / "pull-request.md").read_text()
    assert ep_bench("report", received, "--out", tmp_path / "report").returncode == 0
    assert "own: submitted by Ada, verified by Bob." in (tmp_path / "report" / "report.html").read_text()

    (received / "own" / "helper.py").write_text("def spread(y):\n    return 2 * y.std()\n")
    changed = ep_bench("submit", received, "--by", "Bob")
    assert changed.returncode == 2
    assert "not the file that was submitted" in changed.stderr

    assert ep_bench("submit", folder, "--by", "Ada", "--cells", 1).returncode == 0  # submitted again
    shutil.copy(received / "verified.json", folder)
    assert origin(folder) == "submitted by Ada, not verified by others", "the verification is of the earlier submission"


@pytest.mark.slow
def test_a_submission_that_states_its_own_verification_is_refused(study: Path, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    assert ep_bench("submit", folder, "--by", "Ada", "--study", study, "--cells", 1).returncode == 0
    path = folder / "submission.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"verified": [{"by": "Bob"}]}))
    assert origin(folder) == "submitted by Ada, not verified by others"
    refused = ep_bench("submit", folder, "--by", "Carol")
    assert refused.returncode == 2
    assert "submission.json has `verified`" in refused.stderr


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    return subprocess.run(["git", "-C", folder, *who, *words], check=True, capture_output=True, text=True).stdout


@pytest.mark.slow
def test_the_workflow_verifies_with_the_code_of_the_base_branch(study: Path, tmp_path: Path) -> None:
    text = (ROOT / "release" / "verify_submissions.sh").read_text()
    clone = tmp_path / "clone"
    git(tmp_path, "init", "--quiet", str(clone))
    (clone / ".gitignore").write_text(".venv\nbuild\n")
    (clone / ".venv").symlink_to(sys.prefix)
    git(clone, "add", ".")
    git(clone, "commit", "--quiet", "--message", "base")
    assert ep_bench("submit", tmp_path / "mine", "--by", "Ada", "--study", study).returncode == 0
    shutil.copytree(tmp_path / "mine", clone / "results" / "mine", ignore=shutil.ignore_patterns("cells", "*.md"))
    (clone / "code.py").write_text("raise SystemExit")
    git(clone, "checkout", "--quiet", "-b", "theirs")
    git(clone, "add", ".")
    git(clone, "commit", "--quiet", "--message", "results")
    git(clone, "checkout", "--quiet", "-")

    def verify(author: str) -> tuple[int, str]:
        command = ["sh", "-c", text, "verify_submissions.sh", "theirs", "comment.md", author]
        done = subprocess.run(command, cwd=clone, capture_output=True, text=True)
        git(clone, "reset", "--quiet", "--hard")
        return done.returncode, (clone / "comment.md").read_text() + done.stderr

    code, comment = verify("NONE")
    assert code == 0, comment
    assert "verified by workflow of the repository" in comment
    assert "changed by this pull request:\n\n```\ncode.py\n" in comment

    git(clone, "checkout", "--quiet", "theirs")
    alter(clone / "results" / "mine", forged=False)
    (clone / "results" / "mine" / "verified.json").write_text("[]")
    git(clone, "add", ".")
    git(clone, "commit", "--quiet", "--message", "altered")
    git(clone, "checkout", "--quiet", "-")
    code, comment = verify("CONTRIBUTOR")
    assert code == 1
    assert "Only maintainers state that results are verified" in comment
    assert "results/mine/verified.json" in comment
    assert "mine: not verified" in comment
    assert "does not match its checksum" in comment
    assert "Only maintainers" not in verify("MEMBER")[1]


def test_the_sample_is_uniform_over_the_shorter_cells_and_one_of_the_longer_is_named(tmp_path: Path) -> None:
    lock = {"groups": [{"method": "m", "dataset": "d", "factors": {}, "cells": {str(i): f"c{i}" for i in range(10)}}]}
    seconds = [0.01, 299.0, *[0.01] * 7, 301.0]
    rows = [{"cell": f"c{i}", "status": "ok", "fit_seconds": each} for i, each in enumerate(seconds)]
    study = store.StudyResults(tmp_path, "mine", lock, rows)
    drawn = Counter(
        stored.row["cell"]
        for seed in range(900)
        for stored in _choose(study, Verification(""), Sample(seed, 3, longest=300.0), random.Random(seed))
    )
    assert set(drawn) == {f"c{i}" for i in range(9)}
    assert all(abs(count - 300) < 5 * math.sqrt(900 * 1 / 3 * 2 / 3) for count in drawn.values())
    first, second = submission.longer_cells(study, Sample(0, 3, longest=300.0))
    assert first == "sample of 9 of 10 cells, which took at most 300 s each"
    assert second.endswith("--select 'method=m' --select 'dataset=d' --select 'split=9'")


@pytest.mark.slow
def test_altered_rows_are_refused(study: Path, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    alter(folder, forged=False)
    refused = ep_bench("submit", folder, "--by", "Ada", "--study", study)
    assert refused.returncode == 2
    assert "does not match its checksum" in refused.stderr
    alter(folder, forged=True)
    refused = ep_bench("submit", folder, "--by", "Ada", "--study", study, "--cells", 4)
    assert refused.returncode == 1
    assert "1 different" in refused.stdout
    assert not (folder / "submission.json").exists()


@pytest.mark.slow
def test_uncommitted_code_and_own_data_are_refused(study: Path, tmp_path: Path) -> None:
    lock = tmp_path / "mine" / store.LOCK
    text = lock.read_text().replace('"name": "yacht"', '"name": "boats"')
    lock.write_text(re.sub(r'("revision": "\w*)"', r'\1+changes"', text))
    refused = ep_bench("submit", tmp_path / "mine", "--by", "Ada", "--study", study)
    assert refused.returncode == 2
    assert "uncommitted code" in refused.stderr
    assert "only data sets of ep-bench" in refused.stderr


def lock_of(*uses: str) -> dict[str, Any]:
    return {"groups": [{"factors": {"method": use, "options": {}}} for use in uses]}


@pytest.mark.parametrize(
    ("files", "refused"),
    [
        (None, True),
        ({"INSTALLER": "pip"}, False),
        ({"INSTALLER": "pip", "direct_url.json": '{"url": "file:///home/ada/forest"}'}, True),
        ({"INSTALLER": "conda", "direct_url.json": '{"url": "file:///home/conda/build"}'}, False),
    ],
)
def test_only_packages_that_others_can_install_are_accepted(files, refused, tmp_path: Path, monkeypatch) -> None:
    packages = {} if files is None else {"forest": [SimpleNamespace(read_text=files.get)]}
    monkeypatch.setattr(submission, "distributions", lambda: packages)
    study = store.StudyResults(tmp_path, "mine", lock_of("forest.trees:Forest"), [])
    assert bool([*submission.method_problems(study)]) is refused


def test_the_packages_of_extras_are_required(monkeypatch) -> None:
    names = ["catboost", "lightgbm", "ngboost", "quantile_forest", "xgboost"]
    monkeypatch.setattr(
        submission,
        "distributions",
        lambda: {name: [SimpleNamespace(metadata={"Name": name}, version="1")] for name in names},
    )
    trees = [
        f"ep_bench.tree_baselines:{name}"
        for name, found in vars(tree_baselines).items()
        if isinstance(found, type) and not name.startswith("_") and found.__module__ == tree_baselines.__name__
    ]
    uses = [*trees, "ep_bench.baselines:NGBoostRegressor", "ep_bench.baselines:ConstantRegressor"]
    assert submission.requirements(lock_of(*uses)) == [f"{name}==1" for name in names]
