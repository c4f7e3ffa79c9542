"""Several runs in one folder: each cell is computed once, and claims of a dead run are free."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from ep_bench.errors import UserError
from ep_bench.results import store
from ep_bench.runner import claims
from ep_bench.runner.claims import Claims, running
from tests.commands import ep_bench

STUDY = """
study: shared
datasets: [yacht]
splits: {scheme: standard, count: %d}
methods:
  - {use: "./logging_method.py:Logged", label: logged}
"""

METHOD = """
import time
from pathlib import Path

class Logged:
    \"\"\"The constant predictor; it does not import scikit-learn, so that runs start faster.\"\"\"
    def fit(self, X, y):
        log = Path(__file__).with_name("log")
        with log.open("a") as file:
            file.write(f"{float(X.sum())!r}\\n")
        deadline = time.monotonic() + 60.0
        while time.monotonic() < deadline and not (CONDITION):
            time.sleep(0.05)
        self.mean, self.std = y.mean(), y.std()
        return self
    def predict(self, X, return_std=False):
        mean = self.mean + 0.0 * X[:, 0]
        return (mean, self.std + 0.0 * mean) if return_std else mean
"""
FOR_GO = "log.with_name('go').exists()"
FOR_ANOTHER = "len(log.read_text().splitlines()) >= 2"


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "study.yaml"
    path.write_text(STUDY % 4)
    return path


def write_method(study: Path, condition: str) -> None:
    """Write a method that logs each fit, then waits for a condition."""
    (study.parent / "logging_method.py").write_text(METHOD.replace("CONDITION", condition))


def start(study: Path, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "ep_bench", "run", str(study), "--results", str(study.parent / "results"), *more]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def run(study: Path, *more: str) -> subprocess.CompletedProcess[str]:
    return ep_bench("run", study, "--results", study.parent / "results", *more)


def computed(study: Path) -> list[str]:
    """Return the sum of the training inputs of each computed cell, one per fit."""
    return (study.parent / "log").read_text().splitlines()


def wait_for(condition: object, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.05)


def test_a_claim_is_exclusive_until_it_is_released(tmp_path: Path) -> None:
    with Claims(tmp_path) as mine, Claims(tmp_path) as yours:
        assert mine.take("a")
        assert mine.take("a")  # already claimed
        assert not yours.take("a")
        assert yours.take("b")
        assert {run.cells for run in running(tmp_path)} == {("a",), ("b",)}
        mine.release("a")
        assert yours.take("a")
    assert running(tmp_path) == []
    assert not list((tmp_path / "cells" / "claims").glob("*.claim"))


def test_claims_of_a_killed_run_are_free(tmp_path: Path) -> None:
    script = f"""
import time
from pathlib import Path
from ep_bench.runner.claims import Claims
with Claims(Path({str(tmp_path)!r})) as own:
    assert own.take("a")
    print("taken", flush=True)
    time.sleep(99)
"""
    other = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None
    assert other.stdout.readline() == "taken\n"
    with Claims(tmp_path) as mine:
        assert not mine.take("a")
        assert [run.pid for run in running(tmp_path)] == sorted([other.pid, os.getpid()], key=_order(tmp_path))
        other.kill()
        other.wait()
        assert mine.take("a")
    with Claims(tmp_path):
        assert len(list((tmp_path / "cells" / "claims").glob("*.run"))) == 1


def _order(folder: Path) -> object:
    pids = [run.pid for run in running(folder)]
    return pids.index


def test_a_run_on_another_machine_is_alive_while_it_sends_heartbeats(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Claims(tmp_path) as there:
        assert there.take("a")
        monkeypatch.setattr(claims, "_machine", lambda: "another machine")
        with Claims(tmp_path) as here:
            assert not here.take("a")
            (run,) = (tmp_path / "cells" / "claims").glob(there._run)
            long_ago = time.time() - claims.SILENCE - 5.0
            os.utime(run, (long_ago, long_ago))
            assert here.take("a")


def test_a_run_that_was_declared_dead_announces_itself_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "_HEARTBEAT", 0.05)
    with Claims(tmp_path) as slept:
        (tmp_path / "cells" / "claims" / slept._run).unlink()
        wait_for(lambda: running(tmp_path))
        assert slept.take("a")
        with Claims(tmp_path) as other:
            assert not other.take("a")


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_run_that_ends_while_it_announces_itself_closes_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    announcing = threading.Event()

    def slow(descriptor: int) -> None:
        if threading.current_thread() is not threading.main_thread():
            announcing.set()
            time.sleep(0.1)

    monkeypatch.setattr(claims, "_HEARTBEAT", 0.001)
    monkeypatch.setattr(claims, "_lock", slow)
    before = len([*Path("/proc/self/fd").iterdir()])
    with Claims(tmp_path) as mine:
        (tmp_path / "cells" / "claims" / mine._run).unlink()
        assert announcing.wait(10.0)
    time.sleep(0.2)
    assert len([*Path("/proc/self/fd").iterdir()]) == before


def test_a_run_whose_file_cannot_be_read_is_alive_while_it_sends_heartbeats(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On CIFS, nobody else can read a file that is locked."""
    text = claims._text

    def locked(path: Path) -> str:
        if path.suffix == ".run":
            raise PermissionError(13, "Permission denied")
        return text(path)

    monkeypatch.setattr(claims, "_text", locked)
    with Claims(tmp_path) as mine, Claims(tmp_path) as other:
        assert mine.take("a")
        assert not other.take("a")
        long_ago = time.time() - claims.SILENCE - 5.0
        os.utime(tmp_path / "cells" / "claims" / mine._run, (long_ago, long_ago))
        assert other.take("a")


def test_a_run_that_cannot_begin_leaves_no_trace(tmp_path: Path) -> None:
    folder = tmp_path / "cells" / "claims"
    (folder / "a.claim").mkdir(parents=True)
    threads = threading.active_count()
    with pytest.raises(UserError, match="is no claim"), Claims(tmp_path):
        pass
    assert threading.active_count() == threads
    assert [path.name for path in folder.iterdir() if path.suffix == ".run"] == []


def test_a_claim_that_another_has_taken_over_is_not_removed(tmp_path: Path) -> None:
    with Claims(tmp_path) as mine:
        assert mine.take("a")
        claim = tmp_path / "cells" / "claims" / "a.claim"
        claim.write_text("another.run")
        mine.release("a")
        assert claim.exists()


def test_an_incomplete_claim_expires(tmp_path: Path) -> None:
    with Claims(tmp_path) as mine:
        empty = tmp_path / "cells" / "claims" / "a.claim"
        empty.touch()
        assert not mine.take("a")
        long_ago = time.time() - claims.SILENCE - 5.0
        os.utime(empty, (long_ago, long_ago))
        assert mine.take("a")


@pytest.mark.parametrize("content", [b"\xff\xfe", b"\0", b"../../x", b"x" * 100_000])
def test_a_claim_of_unknown_content_is_free(content: bytes, tmp_path: Path) -> None:
    with Claims(tmp_path) as mine:
        (tmp_path / "cells" / "claims" / "a.claim").write_bytes(content)
        assert mine.take("a")
        assert not running(tmp_path)[0].cells or running(tmp_path)[0].cells == ("a",)


def test_a_claim_from_the_future_is_free(tmp_path: Path) -> None:
    with Claims(tmp_path) as mine:
        folder = tmp_path / "cells" / "claims"
        (folder / "far.run").write_text('{"machine": "other", "host": "other", "pid": 1, "started": "2999"}')
        (folder / "a.claim").write_text("far.run")
        assert not mine.take("a")
        os.utime(folder / "far.run", (4e9, 4e9))
        assert mine.take("a")


@pytest.mark.parametrize("kind", ["folder", "pipe", "loop"])
def test_a_claim_that_is_no_file_is_named(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "cells" / "claims" / "a.claim"
    with Claims(tmp_path) as mine:
        {"folder": path.mkdir, "pipe": lambda: os.mkfifo(path), "loop": lambda: path.symlink_to(path)}[kind]()
        with pytest.raises(UserError, match=r"a\.claim: is no claim"):
            mine.take("a")


def test_concurrent_takeovers_give_each_cell_to_one_run(tmp_path: Path) -> None:
    """Four runs take over the cells of a dead run at the same time."""
    script = f"""
import time
from pathlib import Path
from ep_bench.runner.claims import Claims
with Claims(Path({str(tmp_path)!r})) as own:
    Path({str(tmp_path)!r}, f"here{{own._run}}").touch()
    while not Path({str(tmp_path)!r}, "go").exists():
        time.sleep(0.001)
    print(sum(own.take(f"cell{{i}}") for i in range(500)), flush=True)
    input()
"""
    pipe = subprocess.PIPE
    takers = [subprocess.Popen([sys.executable, "-c", script], stdin=pipe, stdout=pipe, text=True) for _ in range(4)]
    wait_for(lambda: len(list(tmp_path.glob("here*"))) == 4)
    for i in range(500):
        (tmp_path / "cells" / "claims" / f"cell{i}.claim").write_text("a dead one.run")
    (tmp_path / "go").touch()
    counts = [int(taker.stdout.readline()) for taker in takers]  # type: ignore[union-attr]
    for taker in takers:
        taker.communicate("\n")
    assert sum(counts) == 500


@pytest.mark.slow
def test_two_runs_share_the_cells(study: Path) -> None:
    write_method(study, FOR_ANOTHER)
    other = start(study)
    mine = run(study)
    output = other.communicate(timeout=120)[0]
    assert (mine.returncode, other.returncode) == (0, 0), mine.stderr + output
    assert len(store.read_rows(study.parent / "results" / "shared" / "results.csv")) == 4
    assert len(computed(study)) == len(set(computed(study))) == 4
    by_run = [int(text.split(" cells run")[0].split()[-1]) for text in (mine.stdout, output)]
    assert sum(by_run) == 4
    assert min(by_run) > 0


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_run_computes_the_cells_that_a_killed_run_left(study: Path) -> None:
    write_method(study, FOR_GO)
    folder = study.parent / "results" / "shared"
    first = start(study)
    wait_for((study.parent / "log").exists)
    second = start(study)
    wait_for(lambda: len(computed(study)) == 2)
    assert len(running(folder)) == 2
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    (study.parent / "go").touch()
    output = second.communicate(timeout=120)[0]
    assert second.returncode == 0, output
    assert len(store.read_rows(folder / "results.csv")) == 4
    assert len(computed(study)) == 5  # the cell that the kill broke, repeated
    assert len(set(computed(study))) == 4


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_run_waits_for_the_last_cells_of_another(study: Path) -> None:
    write_method(study, FOR_GO)
    study.write_text(STUDY % 1)
    first = start(study)
    wait_for((study.parent / "log").exists)
    second = start(study)
    assert second.stdout is not None
    assert "running in another run" in second.stdout.readline()
    status = ep_bench("status", study.parent / "results" / "shared").stdout
    assert f"running: process {first.pid} on" in status
    assert "1 missing" in status
    (study.parent / "go").touch()
    output = second.communicate(timeout=60)[0]
    first.communicate(timeout=60)
    assert (first.returncode, second.returncode) == (0, 0), output
    assert len(computed(study)) == 1


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_failure_is_retried_by_one_of_two(study: Path) -> None:
    write_method(study, "1 / 0")
    study.write_text(STUDY % 2)
    assert run(study).returncode == 3
    other = start(study, "--retry-failed")
    mine = run(study, "--retry-failed")
    assert (mine.returncode, other.wait()) == (3, 3)
    assert 4 <= len(computed(study)) <= 6  # 2 by the first run; twice more where the second began after the first
