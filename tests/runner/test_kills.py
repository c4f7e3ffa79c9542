"""SIGKILL at random times: stored cells are kept, and the final results are the same as without kills.

The killed process is the run, a fork server, the process of a cell or, on a dask cluster, a worker or its nanny.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ep_bench.results import store
from tests.commands import cells_in_this_process, ep_bench
from tests.runner.clusters import LoopbackCluster, loopback
from tests.runner.support import becomes_true, cells_in, children, command_of, scores_in

STUDY = """
study: killed
seed: {seed}
datasets: [diabetes, friedman1, friedman2, friedman3]
methods:
  - {{use: pbp, label: PBP, epochs: 150}}
  - {{use: pbp, label: PBP-2, epochs: 60, hidden: [20, 10]}}
  - {{use: "sklearn.linear_model:BayesianRidge", label: ridge}}
"""


SMALL = """
study: killed
seed: {seed}
datasets: [diabetes, friedman1]
splits: {{scheme: standard, count: 10}}
methods:
  - {{use: pbp, label: PBP}}
  - {{use: "ep_bench.baselines:ConstantRegressor", label: constant}}
"""


RUN_LIMIT = 300.0  # seconds for a run


def command(study: Path, results: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "ep_bench", "run", str(study), "--results", str(results), "--quiet", *more]


def stored(folder: Path) -> dict[str, bytes]:
    """Return the stored cells that are ok; a cell that was killed twice is run again by the next run."""
    return {
        path.name: path.read_bytes()
        for path in (folder / "cells").glob("*.json")
        if (record := store.read_record(path)) is not None and record.row["status"] == "ok"
    }


def kill_at_random(run: subprocess.Popen[bytes], cluster: LoopbackCluster | None, chance: random.Random) -> bool:
    """Kill the run itself, or one of the processes that work for it."""
    workers = [worker.pid for worker in cluster.workers] if cluster else []
    working = [*children(run.pid), *(pid for worker in workers for pid in (worker, *children(worker)))]
    try:
        os.kill(chance.choice([run.pid, *working]), signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.slow
@pytest.mark.exhaustive
def test_two_kills_of_a_small_run(tmp_path: Path) -> None:
    survive(tmp_path, random.Random(1), SMALL, 2, 0.5)


@pytest.mark.exhaustive
def test_random_kills(tmp_path: Path) -> None:
    survive(tmp_path, random.Random(1), STUDY, 4, 8.0, "--jobs", "2")


@pytest.mark.exhaustive
def test_random_kills_on_a_cluster(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    with loopback(tmp_path / "cluster") as cluster:
        options = ("--backend", "dask", "--scheduler", cluster.address)
        survive(tmp_path, random.Random(2), STUDY, 4, 8.0, *options, cluster=cluster)


def survive(
    folder: Path,
    chance: random.Random,
    text: str,
    maximum: int,
    pause: float,
    *options: str,
    cluster: LoopbackCluster | None = None,
) -> None:
    """Run studies with a number of kills, each up to ``pause`` seconds after a cell was stored.

    Each study ends as it does undisturbed in this process.
    """
    kills, round_ = 0, 0
    while kills < maximum:
        study = folder / f"study{round_}.yaml"
        study.write_text(text.format(seed=round_))
        calm, wild = folder / f"calm{round_}", folder / f"wild{round_}"
        with cells_in_this_process():
            assert ep_bench("run", study, "--results", calm).returncode == 0
        kills += disturb(command(study, wild, *options), wild / "killed", cluster, chance, maximum - kills, pause)
        assert scores_in(wild / "killed") == scores_in(calm / "killed")
        round_ += 1


def disturb(
    call: list[str], folder: Path, cluster: LoopbackCluster | None, chance: random.Random, maximum: int, pause: float
) -> int:
    """Run a study to its end with at most ``maximum`` kills; return their number."""
    kills = 0
    for _ in range(2 * maximum + 2):  # a run after each kill, and one more for each cell that was killed twice
        before = stored(folder)
        run = subprocess.Popen(call, env={**os.environ, "PYTHONFAULTHANDLER": "1"})
        while kills < maximum and run.poll() is None:
            count = cells_in(folder)
            becomes_true(lambda: cells_in(folder) > count or run.poll() is not None)  # noqa: B023
            time.sleep(chance.uniform(0.0, pause))
            if run.poll() is None:
                kills += kill_at_random(run, cluster, chance)
            if cluster:
                cluster.replace_dead_workers()
        code = end_of(run)
        after = stored(folder)
        assert before.items() <= after.items(), "a stored cell is missing or changed"
        torn = [path for path in (folder / "cells").glob("*.json") if store.read_record(path) is None]
        assert not torn
        if code == 0:
            return kills
        if code > 0:  # a cell that was killed twice is a failed row, which the next run computes again
            assert code == 3
    raise AssertionError(f"cells are not ok: {failures(folder)}")


def end_of(run: subprocess.Popen[bytes]) -> int:
    """Return the exit code of a run. A run that hangs prints the stacks of its threads."""
    try:
        return run.wait(RUN_LIMIT)
    except subprocess.TimeoutExpired:
        below = [command_of(pid) for pid in children(run.pid)]
        run.send_signal(signal.SIGABRT)
        run.wait()
        raise AssertionError(f"the run hangs; its processes: {below}") from None


def failures(folder: Path) -> list[str]:
    records = map(store.read_record, (folder / "cells").glob("*.json"))
    return [record.row["reason"] for record in records if record is not None and record.row["status"] != "ok"]
