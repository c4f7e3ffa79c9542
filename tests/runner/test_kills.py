"""Kill -9 at random moments: nothing stored is lost, and the results end up as if nothing had happened.

A few kills by default; ``EP_BENCH_KILLS=200 pytest tests/runner/test_kills.py`` for the long version.
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

from ep_bench import store
from ep_bench.types import COLUMNS
from tests.runner.support import children

KILLS = int(os.environ.get("EP_BENCH_KILLS", "4"))
TIMES = ("fit_seconds", "predict_seconds", "compile_seconds", "peak_mb")

STUDY = """
study: killed
seed: {seed}
datasets: [diabetes, friedman1, friedman2, friedman3]
methods:
  - {{use: pbp, label: PBP, epochs: 150}}
  - {{use: pbp, label: PBP-2, epochs: 60, hidden: [20, 10]}}
  - {{use: "sklearn.linear_model:BayesianRidge", label: ridge}}
"""


def command(study: Path, results: Path) -> list[str]:
    return [sys.executable, "-m", "ep_bench", "run", str(study), "--results", str(results), "--jobs", "2", "--quiet"]


def scores(folder: Path) -> list[dict[str, object]]:
    kept = [column for column in COLUMNS if column not in TIMES]
    return [{column: row.get(column) for column in kept} for row in store.read_rows(folder / "results.csv")]


def stored(folder: Path) -> dict[str, bytes]:
    """Return the stored cells that are ok; a cell that was killed twice may still become so."""
    return {
        path.name: path.read_bytes()
        for path in (folder / "cells").glob("*.json")
        if (record := store.read_record(path)) is not None and record.row["status"] == "ok"
    }


def kill_at_random(run: subprocess.Popen[bytes], chance: random.Random) -> str:
    """Kill the run itself, or one of the processes below it."""
    below = children(run.pid)
    victim = chance.choice([run.pid, run.pid, *below])
    try:
        os.kill(victim, signal.SIGKILL)
    except ProcessLookupError:
        return "nobody"
    return "the run" if victim == run.pid else "a process below it"


@pytest.mark.slow
def test_random_kills(tmp_path: Path) -> None:
    chance = random.Random(1)
    undisturbed, kills, round_ = {}, 0, 0
    while kills < KILLS:
        study = tmp_path / f"study{round_}.yaml"
        study.write_text(STUDY.format(seed=round_))
        subprocess.run(command(study, tmp_path / f"calm{round_}"), check=True)
        undisturbed[round_] = scores(tmp_path / f"calm{round_}" / "killed")
        kills += disturb(study, tmp_path / f"wild{round_}", chance, KILLS - kills)
        assert scores(tmp_path / f"wild{round_}" / "killed") == undisturbed[round_]
        round_ += 1
    assert kills >= KILLS
    assert all(len(rows) == 240 for rows in undisturbed.values())


def disturb(study: Path, results: Path, chance: random.Random, most: int) -> int:
    """Run a study to its end through at most so many kills; return how many there were."""
    folder, kills = results / "killed", 0
    while True:
        before = stored(folder)
        run = subprocess.Popen(command(study, results))
        while kills < most and run.poll() is None:
            time.sleep(chance.uniform(0.5, 8.0))
            if run.poll() is None and kill_at_random(run, chance) != "nobody":
                kills += 1
        code = run.wait()
        after = stored(folder)
        assert before.items() <= after.items(), "a stored cell was lost or changed"
        torn = [path for path in (folder / "cells").glob("*.json") if store.read_record(path) is None]
        assert not torn
        if code == 0:
            return kills
        if code > 0:  # cells that kills ended twice are failed rows that say so; the next run takes them up again
            assert code == 3
