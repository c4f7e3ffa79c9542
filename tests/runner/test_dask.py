"""Cells on a dask cluster have the same scores as in the local pool, even if workers are lost."""

from __future__ import annotations

import _thread
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from ep_bench.numerics import jit
from ep_bench.results import store
from ep_bench.runner.pool import run_jobs
from tests.commands import ep_bench
from tests.runner.clusters import LoopbackCluster, loopback
from tests.runner.support import (
    RAISED,
    becomes_true,
    cells_in,
    children,
    command_of,
    job,
    parent_of,
    scores_in,
    write_methods,
)  # fmt: skip

pytest.importorskip("distributed")
pytestmark = pytest.mark.slow

STUDY = """
study: spread
datasets: [diabetes, {name: mine, csv: mine.csv, target: y}]
splits: {scheme: standard, count: 3}
methods:
  - {use: pbp, epochs: 4}
  - {use: "./bad.py:Draws", label: draws}
  - {use: "./bad.py:Slow", label: slow}
"""
SMALL = """
study: spread
datasets: [diabetes]
splits: {{scheme: standard, count: {count}}}
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


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoopbackCluster]:
    """Return a scheduler and a worker with its nanny."""
    with loopback(tmp_path_factory.mktemp("cluster"), workers=1) as shared:
        yield shared


def on_cluster(study: Path, results: Path, cluster: LoopbackCluster) -> subprocess.Popen[str]:
    """Start a run in a separate process, which waits at most one second for the scheduler."""
    start = (
        "from ep_bench.runner import cluster; from ep_bench.cli import main; cluster._CONNECT_TIMEOUT = '1s'; main()"
    )
    options = ["--results", results, "--backend", "dask", "--scheduler", cluster.address, "--quiet"]
    command = [sys.executable, "-c", start, "run", *map(str, [study, *options])]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@contextlib.contextmanager
def meanwhile(action: Callable[[], None]) -> Iterator[None]:
    """Run a function in a thread while the block runs; interrupt the block if the function fails."""

    def run() -> None:
        try:
            action()
        except BaseException:
            _thread.interrupt_main()
            raise

    with ThreadPoolExecutor(1) as thread:
        future = thread.submit(run)
        yield
        future.result()


def engines(cluster: LoopbackCluster) -> list[int]:
    """Return the processes of cells below the dask workers, without those that one of them has forked."""
    below = [pid for worker in cluster.workers for pid in children(worker.pid)]
    found = [pid for pid in below if b"fork_server" in command_of(pid)]
    return [pid for pid in found if parent_of(pid) not in found]


def apart(folder: Path) -> list[str]:
    """Return a command that runs another one with this folder hidden, as on a machine without it."""
    inside = ["unshare", "--mount", "sh", "-c", f'mount -t tmpfs tmpfs {folder} && exec "$@"', "sh"]
    if subprocess.run([*inside, "true"], capture_output=True).returncode != 0:
        pytest.skip("no mount namespaces here")
    return inside


def home_with_kernels(folder: Path) -> Path:
    """Return a home folder with no files but our compiled kernels, which would take seconds to compile again."""
    cache = folder / ".cache" / "ep-bench"
    cache.mkdir(parents=True)
    (cache / "kernels").symlink_to(jit.root())
    return folder


@pytest.mark.exhaustive
def test_scores_are_the_same_on_machines_that_share_no_files(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers have no access to our files: none at first, one that is killed, one that joins late."""
    printed: list[str] = []
    monkeypatch.setattr("ep_bench.runner.cluster._MESSAGE_DELAY", 0.5)
    monkeypatch.setattr("ep_bench.runner.cluster.print_line", lambda line, _: printed.append(line))
    assert ep_bench("run", study, "--results", tmp_path / "local").returncode == 0
    inside, alone = apart(study.parent), {"EP_BENCH_DATA": "", "HOME": str(home_with_kernels(tmp_path / "cluster"))}
    far = tmp_path / "far" / "spread"
    with loopback(tmp_path / "cluster", workers=0) as cluster:

        def replace_the_only_worker() -> None:
            assert becomes_true(lambda: "has no workers yet" in "".join(printed))
            victim = cluster.add_worker("--no-nanny", inside=inside, env=alone)
            assert becomes_true(lambda: cells_in(far) >= 3, 300.0), cluster.output()  # it compiles first
            for pid in (victim.pid, *children(victim.pid)):
                with contextlib.suppress(ProcessLookupError):  # a child may have ended by itself
                    os.kill(pid, signal.SIGKILL)
            cluster.add_worker("--no-nanny", "--name", "late", inside=inside, env=alone)

        with meanwhile(replace_the_only_worker):
            words = ("run", study, "--results", tmp_path / "far", "--backend", "dask", "--scheduler", cluster.address)
            run = ep_bench(*words)
        assert run.returncode == 0, run.stderr + cluster.output()
        assert "late" in cluster.output()
    assert len(scores_in(far)) == 18
    assert scores_in(far) == scores_in(tmp_path / "local" / "spread")


@pytest.mark.exhaustive
def test_cells_of_a_killed_worker_are_run_again(study: Path, cluster: LoopbackCluster) -> None:
    jobs = [job(name, split, base=study.parent) for split in range(3) for name in ("Slow", "Raises")]
    running_jobs = run_jobs(jobs, n_jobs=2, backend="dask", scheduler=cluster.address)
    records = [next(running_jobs)]
    worker = next(pid for pid in children(cluster.workers[0].pid) if b"spawn_main" in command_of(pid))
    os.kill(worker, signal.SIGKILL)  # its nanny starts another
    rows = [record.row for record in (*records, *running_jobs)]
    assert sorted((row["method"], row["split"]) for row in rows) == sorted((j.cell.method, j.cell.split) for j in jobs)
    assert {row["status"] for row in rows if row["method"] == "Slow"} == {"ok"}
    assert {row["reason"] for row in rows if row["method"] == "Raises"} == {RAISED}


def test_a_local_cluster_with_one_thread_per_cell(study: Path, tmp_path: Path) -> None:
    (study.parent / "threads.py").write_text(THREADS)
    study.write_text(SMALL.format(count=2, more='"./threads.py:Threads"'))
    run = ep_bench("run", study, "--results", tmp_path / "results", "--backend", "dask")
    assert run.returncode == 0, run.stderr
    assert "2 cells run; 2 ok" in run.stdout


@pytest.mark.exhaustive
def test_a_worker_of_another_version_is_refused(
    study: Path, tmp_path: Path, cluster: LoopbackCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    import importlib.metadata

    theirs = importlib.metadata.version
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "99.0" if name == "ep-bench" else theirs(name))
    where = ("--backend", "dask", "--scheduler", cluster.address)
    run = ep_bench("run", study, "--results", tmp_path / "far", *where)
    assert run.returncode == 2
    assert f"another version of ep-bench; found '{theirs('ep-bench')}'" in run.stderr
    assert "allowed: 99.0" in run.stderr
    assert "Traceback" not in run.stderr


@pytest.mark.exhaustive
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_run_leaves_no_worker_process(
    study: Path, tmp_path: Path, cluster: LoopbackCluster, number: signal.Signals
) -> None:
    constant = '{use: "ep_bench.baselines:ConstantRegressor", label: constant}'
    endless = "Stuck" if number == signal.SIGINT else "Parent"  # the second uses no CPU time until its end is noticed
    study.write_text(SMALL.format(count=1, more=f'{constant}, {{use: "./bad.py:{endless}", label: endless}}'))
    folder = tmp_path / "far" / "spread"
    run = on_cluster(study, folder.parent, cluster)
    assert becomes_true(lambda: run.poll() is not None or (cells_in(folder) == len(engines(cluster)) == 1))
    assert not becomes_true(lambda: run.poll() is not None, seconds=1.0)  # one cell never ends
    begun = time.monotonic()
    run.send_signal(number)
    run.communicate(timeout=30)
    ended = time.monotonic() - begun
    assert becomes_true(lambda: not engines(cluster), seconds=20.0), cluster.output()
    if number == signal.SIGINT:
        assert run.returncode == 130
        assert ended < 2.0 + 3.0  # two seconds, and three more for a busy machine
        assert len(scores_in(folder)) == 1
    assert all(store.read_record(path) for path in (folder / "cells").glob("*.json"))


@pytest.mark.exhaustive
def test_a_scheduler_that_stops(study: Path, tmp_path: Path, cluster: LoopbackCluster) -> None:
    """The last test, because the others need the scheduler."""
    folder = tmp_path / "far" / "spread"
    run = on_cluster(study, folder.parent, cluster)
    assert becomes_true(lambda: cells_in(folder) >= 5 or run.poll() is not None, 300.0)
    cluster.scheduler.kill()
    _, output = run.communicate(timeout=120)
    assert run.returncode == 2, output
    assert "the scheduler does not answer" in output
    assert "Traceback" not in output
    assert len(scores_in(folder)) == cells_in(folder) >= 5
