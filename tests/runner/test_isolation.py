"""Methods that change their process: each affects its own cell alone, and no number of the next method moves."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ep_bench.runner import supervisor
from tests.runner.support import job, scores

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")

SOURCE = '''
import os, random, signal, sys, threading, time, warnings
import numpy as np
from ep_bench import scoring
from ep_bench.baselines import ConstantRegressor

class Calm(ConstantRegressor):
    """Harmless; uses the global generator."""
    def fit(self, X, y):
        super().fit(X, y)
        self.mean_ += np.random.normal()
        return self

class PatchesFunctions(ConstantRegressor):
    def fit(self, X, y):
        np.mean = np.random.normal = np.random.seed = lambda *a, **k: 1e6
        scoring.score = lambda *a: {"rmse": 0.0, "ll": 99.0}
        return super().fit(X, y)

class ChangesProcess(ConstantRegressor):
    def fit(self, X, y):
        os.chdir("/")
        os.umask(0o777)
        os.environ.clear()
        warnings.simplefilter("error")
        return super().fit(X, y)

class LeavesThread(ConstantRegressor):
    def fit(self, X, y):
        def spin():
            while True:
                np.mean = lambda *a, **k: 0.0
                time.sleep(0.001)
        threading.Thread(target=spin, daemon=True).start()
        return super().fit(X, y)

class LeavesProcess(ConstantRegressor):
    """The process has a session of its own and keeps all descriptors."""
    def fit(self, X, y):
        if os.fork() == 0:
            os.setsid()
            if os.fork():
                os._exit(0)
            time.sleep(99)
        os.wait()
        return super().fit(X, y)

class KeepsConnection(ConstantRegressor):
    """A child keeps the connection open after the end of the process."""
    def fit(self, X, y):
        if os.fork() == 0:
            os.setsid()
            time.sleep(99)
        os._exit(4)

class ClosesDescriptors(ConstantRegressor):
    def fit(self, X, y):
        os.closerange(3, 256)
        time.sleep(99)

class KillsGroup(ConstantRegressor):
    def fit(self, X, y):
        os.kill(0, signal.SIGTERM)
        time.sleep(99)

class StopsItself(ConstantRegressor):
    def fit(self, X, y):
        os.kill(os.getpid(), signal.SIGSTOP)

class ExitsZero(ConstantRegressor):
    def fit(self, X, y):
        os._exit(0)

class Recursion(ConstantRegressor):
    def fit(self, X, y):
        return self.fit(X, y)

class ControlCharacters(ConstantRegressor):
    def fit(self, X, y):
        raise RuntimeError("\\x1b[31m\\x07\\u202e\\ud800")

class Complex(ConstantRegressor):
    def predict(self, X, return_std=False):
        mean, std = super().predict(X, return_std=True)
        return mean + 1j, std

class WrongType(ConstantRegressor):
    def predict_dist(self, X):
        return {"kind": "Predictive"}
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("methods")
    (folder / "own.py").write_text(SOURCE)
    yield folder
    supervisor.close()


def harmless(folder: Path) -> list[dict[str, object]]:
    """Return the scores of an external class and of a class in the same file as the others."""
    uses = ("sklearn.linear_model:Ridge", "./own.py:Calm")
    return [scores(supervisor.run(job(use, base=folder)).row) for use in uses]


@pytest.fixture(scope="module")
def expected(folder: Path) -> list[dict[str, object]]:
    """Return the scores of harmless methods, computed before any other one."""
    return harmless(folder)


@pytest.mark.parametrize(
    ("name", "status", "reason"),
    [
        ("PatchesFunctions", "ok", ""),
        ("ChangesProcess", "ok", ""),
        ("LeavesThread", "ok", ""),
        ("LeavesProcess", "ok", ""),
        ("KeepsConnection", "failed", "exit code 4"),
        ("ClosesDescriptors", "failed", "closed the connection"),
        ("KillsGroup", "failed", "SIG"),
        ("StopsItself", "timeout", "over the limit"),
        ("ExitsZero", "failed", "exit code 0"),
        ("Recursion", "failed", "RecursionError"),
        ("ControlCharacters", "failed", "RuntimeError"),
        ("Complex", "failed", "complex"),
        ("WrongType", "failed", ""),
    ],
)
def test_a_method_changes_no_number_of_the_next_one(
    name: str, status: str, reason: str, folder: Path, expected: list[dict[str, object]]
) -> None:
    row = supervisor.run(job(f"./own.py:{name}", base=folder, seconds=3.0, memory_gb=2.0)).row
    assert row["status"] == status, row["reason"]
    assert reason in row["reason"]
    assert row["reason"].isprintable()
    assert harmless(folder) == expected
