"""The example of dask-jobqueue in docs/long-runs.md runs with programs that replace those of SLURM."""

from __future__ import annotations

import builtins
import os
import re
from pathlib import Path
from typing import Any

import pytest

from ep_bench.results import store
from tests.commands import ep_bench

pytest.importorskip("dask_jobqueue")
pytestmark = pytest.mark.slow

PAGE = (Path(__file__).parents[2] / "docs" / "long-runs.md").read_text(encoding="utf-8")
# dask-jobqueue deletes the script after `sbatch` has ended, which therefore copies it.
SBATCH = """#!/bin/sh
copy=$(mktemp -p {folder})
cp "$1" "$copy"
grep '^#SBATCH' "$copy" >> {folder}/requested
setsid bash "$copy" > "$copy.out" 2>&1 &
echo "Submitted batch job $!"
"""
SCANCEL = """#!/bin/sh
kill -- -"$1"
"""
STUDY = """
study: queued
datasets: [diabetes]
splits: {scheme: standard, count: 4}
methods: [{use: "ep_bench.baselines:ConstantRegressor", label: constant}]
"""
SMALLER = {
    "cores=16, processes=16": "cores=1, processes=1",
    "64GB": "1GB",
    "jobs=8": "jobs=2",
    "source ~/bench/.venv/bin/activate": "",
}


def test_the_example_of_slurm_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import dask

    for name, text in {"sbatch": SBATCH, "scancel": SCANCEL}.items():
        (tmp_path / name).write_text(text.format(folder=tmp_path))
        (tmp_path / name).chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    Path("study.yaml").write_text(STUDY)
    (example,) = re.findall(r"```py\n(from dask_jobqueue.*?)```", PAGE, flags=re.DOTALL)
    for large, small in SMALLER.items():
        assert large in example
        example = example.replace(large, small)
    codes: list[int] = []

    def run_study(_: str) -> None:
        words = ["run", "study.yaml", "--backend", "dask", "--scheduler", space["cluster"].scheduler_address]
        codes.append(ep_bench(*words, "--jobs", 2, "--quiet").returncode)

    monkeypatch.setattr(builtins, "input", run_study)
    space: dict[str, Any] = {}
    local = {"jobqueue.slurm.scheduler-options": {"host": "127.0.0.1", "dashboard_address": None}}
    try:
        with dask.config.set(local):
            exec(compile(example, "example", "exec"), space)  # noqa: S102
    finally:
        space["cluster"].close()
    assert codes == [0]
    assert [row["status"] for row in store.read_rows(Path("results/queued/results.csv"))] == ["ok"] * 4
    assert (tmp_path / "requested").read_text().count("#SBATCH -p cpu") == 2
