"""Cells on a dask cluster: same numbers as the local pool, whatever happens to a worker."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from ep_bench import store
from ep_bench.types import COLUMNS
from tests.runner.clusters import LoopbackCluster, loopback
from tests.runner.support import children, command_of, write_methods

pytest.importorskip("distributed")
pytestmark = pytest.mark.slow

TIMES = ("fit_seconds", "predict_seconds", "compile_seconds", "tune_seconds", "peak_mb")
STUDY = """
study: spread
datasets: [diabetes, {name: mine, csv: mine.csv, target: y}]
splits: {scheme: standard, count: 6}
methods:
  - {use: pbp, epochs: 4}
  - {use: "./bad.py:Draws", label: draws}
  - {use: "./bad.py:Slow", label: slow}
"""
SMALL = """
study: spread
datasets: [diabetes]
splits: {{scheme: standard, count: 12}}
methods: [{more}]
"""
THREADS = """
import numba, numpy as np
from threadpoolctl import threadpool_info
from ep_bench.baselines import ConstantRegressor

class Threads(ConstantRegressor):
    def fit(self, X, y):
        super().fit(X, y)
        pools = [pool["num_threads"] for pool in threadpool_info()]
        assert pools, "no BLAS is loaded"
        assert {numba.get_num_threads(), *pools} == {1}, (numba.get_num_threads(), pools)
        return self
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    folder = tmp_path / "study"
    folder.mkdir()
    write_methods(folder)
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(120, 3))
    table = "\n".join(",".join(repr(float(v)) for v in row) for row in rows)
    (folder / "mine.csv").write_text(f"a,b,y\n{table}\n")
    (folder / "study.yaml").write_text(STUDY)
    return folder / "study.yaml"


def start(study: Path, results: Path, *more: str, quiet: bool = True) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "ep_bench", "run", str(study), "--results", str(results), *more]
    pipe = subprocess.PIPE
    return subprocess.Popen([*command, "--quiet"] if quiet else command, stdout=pipe, stderr=pipe, text=True)


def on_cluster(study: Path, results: Path, cluster: LoopbackCluster) -> subprocess.Popen[str]:
    return start(study, results, "--backend", "dask", "--scheduler", cluster.address)


def scores(folder: Path) -> list[dict[str, object]]:
    kept = [column for column in COLUMNS if column not in TIMES]
    return [{column: row.get(column) for column in kept} for row in store.read_rows(folder / "results.csv")]


def cells_in(folder: Path) -> int:
    return len(list((folder / "cells").glob("*.json")))


def wait_for_cells(folder: Path, count: int, run: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 90
    while cells_in(folder) < count:
        assert run.poll() is None, run.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)


def engines(cluster: LoopbackCluster) -> list[int]:
    """Return the engine processes below the cluster's workers."""
    below = [pid for worker in cluster.workers for pid in children(worker.pid)]
    return [pid for pid in below if b"ep_bench.runner.engine" in command_of(pid)]


def apart(folder: Path) -> list[str]:
    """Return a command that runs another where this folder is empty, as on a machine without it."""
    inside = ["unshare", "--mount", "sh", "-c", f'mount -t tmpfs tmpfs {folder} && exec "$@"', "sh"]
    if subprocess.run([*inside, "true"], capture_output=True).returncode != 0:
        pytest.skip("no mount namespaces here")
    return inside


def test_same_scores_as_loky_on_machines_that_share_nothing(study: Path, tmp_path: Path) -> None:
    """Workers without our data and methods; none at first, one that is killed, one that joins late."""
    local = start(study, tmp_path / "local", "--jobs", "2")
    assert local.wait(300) == 0, local.communicate()
    inside, alone = apart(study.parent), {"EP_BENCH_DATA": "", "HOME": str(tmp_path / "cluster")}
    with loopback(tmp_path / "cluster", workers=0) as cluster:
        run = on_cluster(study, tmp_path / "far", cluster)
        assert run.stderr is not None
        assert "has no workers yet" in run.stderr.readline()
        victim = cluster.add_worker(inside=inside, env=alone)
        cluster.add_worker(inside=inside, env=alone)
        wait_for_cells(tmp_path / "far" / "spread", 6, run)
        for pid in (victim.pid, *children(victim.pid)):  # the nanny too: this worker does not come back
            os.kill(pid, signal.SIGKILL)
        cluster.add_worker("--name", "late", inside=inside, env=alone)
        _, said = run.communicate(timeout=300)
        assert run.returncode == 0, said + cluster.said()
        assert "late" in cluster.said()
    far = scores(tmp_path / "far" / "spread")
    assert len(far) == 36
    assert far == scores(tmp_path / "local" / "spread")


def test_a_killed_worker_costs_nothing(study: Path, tmp_path: Path) -> None:
    study.write_text(SMALL.format(more='{use: "./bad.py:Slow", label: slow}, {use: "./bad.py:Raises", label: raises}'))
    with loopback(tmp_path / "cluster") as cluster:
        run = on_cluster(study, tmp_path / "far", cluster)
        wait_for_cells(tmp_path / "far" / "spread", 2, run)
        worker = next(pid for pid in children(cluster.workers[0].pid) if b"spawn_main" in command_of(pid))
        os.kill(worker, signal.SIGKILL)  # its nanny starts another
        _, said = run.communicate(timeout=300)
        assert run.returncode == 3, said + cluster.said()
    rows = store.read_rows(tmp_path / "far" / "spread" / "results.csv")
    assert len(rows) == 24
    assert {row["status"] for row in rows if row["method"] == "slow"} == {"ok"}
    assert {row["reason"] for row in rows if row["method"] == "raises"} == {"RuntimeError: no luck today"}


def test_a_local_cluster_with_one_thread_a_cell(study: Path, tmp_path: Path) -> None:
    (study.parent / "threads.py").write_text(THREADS)
    study.write_text(SMALL.format(more='"./threads.py:Threads"'))
    run = start(study, tmp_path / "results", "--backend", "dask", "--jobs", "2", quiet=False)
    said = run.communicate(timeout=300)
    assert run.returncode == 0, said
    assert "12 cells run; 12 ok" in said[0]


def test_a_worker_of_another_version_is_refused(study: Path, tmp_path: Path) -> None:
    other = tmp_path / "other" / "ep_bench-99.0.dist-info"
    other.mkdir(parents=True)
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: ep-bench\nVersion: 99.0\n")
    path = os.pathsep.join(filter(None, [str(other.parent), os.environ.get("PYTHONPATH", "")]))
    with loopback(tmp_path / "cluster", workers=0) as cluster:
        cluster.add_worker(env={"PYTHONPATH": path})
        run = on_cluster(study, tmp_path / "far", cluster)
        _, said = run.communicate(timeout=120)
    assert run.returncode == 2
    assert "another version of ep-bench; found '99.0'" in said
    assert "Traceback" not in said


def test_no_scheduler(study: Path, tmp_path: Path) -> None:
    run = start(study, tmp_path / "far", "--backend", "dask", "--scheduler", "tcp://127.0.0.1:9")
    _, said = run.communicate(timeout=120)
    assert run.returncode == 2
    assert "--scheduler: no scheduler answers" in said
    assert said.count("\n") == 1


def test_a_scheduler_that_dies(study: Path, tmp_path: Path) -> None:
    with loopback(tmp_path / "cluster") as cluster:
        run = on_cluster(study, tmp_path / "far", cluster)
        wait_for_cells(tmp_path / "far" / "spread", 5, run)
        cluster.scheduler.kill()
        _, said = run.communicate(timeout=120)
    assert run.returncode == 2, said
    assert "no scheduler answers" in said
    assert "Traceback" not in said
    assert len(scores(tmp_path / "far" / "spread")) == cells_in(tmp_path / "far" / "spread") >= 5


def test_a_run_that_ends_leaves_no_engine_at_work(study: Path, tmp_path: Path) -> None:
    study.write_text(SMALL.format(more='pbp, {use: "./bad.py:Stuck", label: stuck}'))
    with loopback(tmp_path / "cluster") as cluster:
        for number in (signal.SIGINT, signal.SIGKILL):
            folder = tmp_path / number.name / "spread"
            run = on_cluster(study, folder.parent, cluster)
            wait_for_cells(folder, 12, run)
            time.sleep(2)
            assert len(engines(cluster)) == 2
            begun = time.monotonic()
            run.send_signal(number)
            run.wait(30)
            ended = time.monotonic() - begun
            deadline = time.monotonic() + 20
            while engines(cluster) and time.monotonic() < deadline:
                time.sleep(0.1)
            assert not engines(cluster), cluster.said()
            if number == signal.SIGINT:
                assert run.returncode == 130
                assert ended < 2.0 + 3.0  # two seconds, and room for a machine that does other things
                assert len(scores(folder)) == 12
