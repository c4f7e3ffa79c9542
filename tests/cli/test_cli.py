"""Output, exit codes and files of the commands. Signals and start-up are tested in real processes."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ep_bench import data
from ep_bench.results import store
from tests.commands import ep_bench

ROOT = Path(__file__).parents[2]
STUDY = """
study: tiny
datasets: [diabetes, friedman1]
splits: {scheme: standard, count: 2}
methods:
  - {use: pbp, label: PBP, epochs: 2}
  - {use: "ep_bench.baselines:ConstantRegressor", label: constant}
"""


def files(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return each file below a folder with its modification time and content."""
    found = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in found}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a study that was run."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "tiny.yaml").write_text(STUDY)
    done = ep_bench("run", "tiny.yaml", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "8 cells run; 8 ok" in done.stdout
    return folder


def test_finished_cells_are_not_run_again(finished: Path) -> None:
    before = files(finished / "results/tiny")
    again = ep_bench("run", "tiny.yaml", cwd=finished)
    assert again.returncode == 0
    assert "0 cells run; 8 ok" in again.stdout
    assert files(finished / "results/tiny") == before  # no file is written again


@pytest.mark.slow
def test_a_fresh_clone_resumes_from_the_committed_files(finished: Path, tmp_path: Path) -> None:
    (tmp_path / "tiny.yaml").write_text(STUDY)
    folder = tmp_path / "results/tiny"
    folder.mkdir(parents=True)
    for name in ("results.csv", "study.lock.json"):
        (folder / name).write_bytes((finished / "results/tiny" / name).read_bytes())
    lines = (folder / "results.csv").read_text().splitlines(keepends=True)
    (folder / "results.csv").write_text("".join(lines[:-1]))  # one cell is missing
    plan = ep_bench("plan", "tiny.yaml", cwd=tmp_path)
    assert "8 cells, 1 to run" in plan.stdout
    run = ep_bench("run", "tiny.yaml", cwd=tmp_path)
    assert "1 cells run; 8 ok" in run.stdout
    kept = store.read_rows(folder / "results.csv")
    assert [row["cell"] for row in kept] == [
        row["cell"] for row in store.read_rows(finished / "results/tiny/results.csv")
    ]


def test_a_plan_of_single_cells(finished: Path) -> None:
    lines = ep_bench("plan", "tiny.yaml", "--cells", cwd=finished).stdout.splitlines()
    assert len(lines) == 1 + 8 + 1
    keys = {row["cell"] for row in store.read_rows(finished / "results/tiny/results.csv")}
    assert {line.split()[-1] for line in lines[1:-1]} == keys


def test_status_counts_and_lists(finished: Path) -> None:
    done = ep_bench("status", "results/tiny", cwd=finished)
    assert done.returncode == 0
    head, _, *matrix = done.stdout.strip().splitlines()
    assert head == "tiny: 8 cells: 8 ok"
    assert [line.split() for line in matrix] == [
        ["ok", "cells", "diabetes", "friedman1"], ["PBP", "2", "2"], ["constant", "2", "2"],
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.usefixtures("in_process")
def test_failed_cells_are_rows_and_exit_code_3(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(
        "from ep_bench.baselines import ConstantRegressor\n"
        "class Bad(ConstantRegressor):\n    def fit(self, X, y):\n        raise RuntimeError('no luck')\n"
    )
    (tmp_path / "s.yaml").write_text(
        STUDY.replace("{use: pbp, label: PBP, epochs: 2}", '{use: "./bad.py:Bad", label: bad}')
    )
    run = ep_bench("run", "s.yaml", cwd=tmp_path)
    assert run.returncode == 3
    assert "RuntimeError: no luck" in run.stderr
    assert "4 failed" in run.stdout
    assert "4 ok" in run.stdout
    assert run.stdout.endswith("a run does not test units and leaks: ep-bench methods test bad.py:Bad\n")
    status = ep_bench("status", "results/tiny", cwd=tmp_path)
    assert status.returncode == 3
    assert "failed: bad on diabetes, split 0: RuntimeError: no luck" in status.stdout
    again = ep_bench("run", "s.yaml", "--quiet", cwd=tmp_path)
    assert (again.returncode, again.stdout) == (3, "")


@pytest.mark.slow
@pytest.mark.usefixtures("in_process")
def test_selecting_cells(tmp_path: Path) -> None:
    (tmp_path / "tiny.yaml").write_text(STUDY)
    run = ep_bench("run", "tiny.yaml", "--select", "method=const*", "--select", "split=1", cwd=tmp_path)
    assert run.returncode == 0
    assert "2 cells run; 2 ok" in run.stdout
    assert "missing" in ep_bench("status", "results/tiny", cwd=tmp_path).stdout


def test_a_report_and_a_check(finished: Path) -> None:
    report = ep_bench("report", "results/tiny", cwd=finished)
    assert report.returncode == 0, report.stderr
    assert (finished / "results/tiny/report/report.html").stat().st_size > 10_000
    check = ep_bench("check", "results/tiny", cwd=finished)
    assert check.returncode == 0, check.stderr
    header = (finished / "results/tiny/check.csv").read_text().splitlines()[0]
    assert (
        header
        == "source,table,method,dataset,metric,published_mean,published_stderr,mean,stderr,n_splits,z,verdict,reason"
    )


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("run", "nowhere.yaml"), "nowhere.yaml"),
        (("run", "wrong.yaml"), "wrong.yaml:3"),
        (("plan", "wrong.yaml"), "did you mean 'boston'"),
        (("run", "tiny.yaml", "--select", "colour=red"), "--select"),
        (("run", "tiny.yaml", "--scheduler", "tcp://x"), "--backend dask"),
        (("status", "nowhere"), "no such folder"),
        (("check", "results/tiny", "--against", "bui2016"), "did you mean"),
        (("check", "results/tiny", "--out", "/proc/x"), "/proc"),
        (("report", "results/tiny", "--out", "tiny.yaml"), "tiny.yaml: is not a folder"),
        (("data", "show", "bosten"), "did you mean 'boston'"),
        (("methods", "show", "pbpp"), "did you mean 'pbp'"),
    ],
)
def test_bad_usage_is_one_message_and_exit_code_2(finished: Path, words: tuple[str, ...], expected: str) -> None:
    (finished / "wrong.yaml").write_text("study: wrong\ndatasets:\n  - bostn\nmethods: [pbp]\n")
    done = ep_bench(*words, cwd=finished)
    assert done.returncode == 2
    assert expected in done.stderr
    assert "Traceback" not in done.stderr + done.stdout


def test_exit_codes_reach_the_shell(finished: Path) -> None:
    command = [sys.executable, "-m", "ep_bench", "status", "nowhere"]
    done = subprocess.run(command, cwd=finished, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert "no such folder" in done.stderr


def test_missing_data_are_named_before_anything_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    describe = data.describe
    monkeypatch.setattr(data, "describe", lambda ref: dataclasses.replace(describe(ref), present=False))
    (tmp_path / "s.yaml").write_text("study: s\ndatasets: [boston]\nmethods: [pbp]\n")
    assert "20 to run" in ep_bench("plan", "s.yaml", cwd=tmp_path).stdout
    run = ep_bench("run", "s.yaml", cwd=tmp_path)
    assert run.returncode == 2
    assert "ep-bench data fetch boston" in run.stderr
    assert not (tmp_path / "results").exists()


def test_lists_and_cards() -> None:
    assert "yacht" in ep_bench("data", "list").stdout
    assert "sha256" in ep_bench("data", "show", "boston").stdout
    assert "  folds: 23a6ac5a" in ep_bench("data", "show", "solar").stdout
    assert "pbp" in ep_bench("methods", "list").stdout
    shown = ep_bench("methods", "show", "pbp").stdout
    assert "hidden: [50]" in shown
    assert "epochs: 40" in shown
    assert "numba" in ep_bench("doctor").stdout


def test_help_loads_no_heavy_library() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "ep_bench", "--help"], capture_output=True, text=True
    )
    assert done.returncode == 0
    loaded = {line.rpartition("|")[2].strip().split(".")[0] for line in done.stderr.splitlines()}
    assert not loaded & {"numba", "numpy", "pandas", "scipy", "sklearn", "matplotlib"}


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["loky", pytest.param("dask", marks=pytest.mark.exhaustive)])
def test_an_interrupt_keeps_every_finished_cell(tmp_path: Path, backend: str) -> None:
    """A terminal sends Ctrl-C to all processes of the group."""
    (tmp_path / "s.yaml").write_text("study: s\ndatasets: [diabetes]\nmethods: [{use: pbp, epochs: 1500}]\n")
    run = subprocess.Popen(
        [sys.executable, "-m", "ep_bench", "run", "s.yaml", "--jobs", "2", "--backend", backend],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    cells = tmp_path / "results/s/cells"
    deadline = time.monotonic() + 120
    while len(list(cells.glob("*.json"))) < 3 and time.monotonic() < deadline:
        time.sleep(0.1)
    started = time.monotonic()
    os.killpg(run.pid, signal.SIGINT)
    error = run.communicate(timeout=60)[1]
    assert run.returncode == 130
    assert "Traceback" not in error
    assert time.monotonic() - started < 10
    stored = {path.stem for path in cells.glob("*.json")}
    assert len(stored) >= 3
    assert {row["cell"] for row in store.read_rows(tmp_path / "results/s/results.csv")} == stored


@pytest.mark.slow
def test_an_experiment_reports_whether_it_is_done(tmp_path: Path) -> None:
    study = "study: tilted\nseed: 0\nexperiment: conflict_tilted\noptions: {points: 21}\n"
    (tmp_path / "tilted.yaml").write_text(study)
    assert "1 parts, 1 to run" in ep_bench("plan", "tilted.yaml", cwd=tmp_path).stdout
    refused = ep_bench("run", "tilted.yaml", "--select", "method=x", cwd=tmp_path)
    assert refused.returncode == 2
    assert "--select: no cell matches" in refused.stderr
    assert "tilted: 1 parts run; 1 ok" in ep_bench("run", "tilted.yaml", cwd=tmp_path).stdout
    assert "1 parts, 0 to run" in ep_bench("plan", "tilted.yaml", cwd=tmp_path).stdout
    assert "tilted: 0 parts run; 1 ok" in ep_bench("run", "tilted.yaml", cwd=tmp_path).stdout
    status = ep_bench("status", "results/tilted", cwd=tmp_path)
    assert (status.returncode, status.stdout) == (0, "tilted: experiment conflict_tilted: done\n")
    (tmp_path / "tilted.yaml").write_text(study.replace("21", "31"))
    assert "1 parts, 1 to run" in ep_bench("plan", "tilted.yaml", cwd=tmp_path).stdout
