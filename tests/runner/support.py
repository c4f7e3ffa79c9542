"""Jobs to run in tests: an embedded data set, and methods that misbehave on purpose."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from ep_bench import data, store
from ep_bench.runner.jobs import Job
from ep_bench.types import Cell, DatasetRef, SplitScheme

CONSTANT = "ep_bench.baselines:ConstantRegressor"
REF = DatasetRef("diabetes", "diabetes")

MISBEHAVING = '''
import os, signal, time
import numpy as np
from numba import njit
from ep_bench.baselines import ConstantRegressor

class Raises(ConstantRegressor):
    def fit(self, X, y):
        raise RuntimeError("no luck today")

class NotFinite(ConstantRegressor):
    def predict(self, X, return_std=False):
        mean, std = super().predict(X, return_std=True)
        mean[0] = np.nan
        return mean, std

class Exits(ConstantRegressor):
    def fit(self, X, y):
        os._exit(7)

class Crashes(ConstantRegressor):
    def fit(self, X, y):
        os.kill(os.getpid(), signal.SIGSEGV)

class Slow(ConstantRegressor):
    def fit(self, X, y):
        time.sleep(0.4)
        return super().fit(X, y)

@njit
def forever(x):
    while x > 0.0:
        x += 1.0
    return x

class Stuck(ConstantRegressor):
    def fit(self, X, y):
        forever(1.0)

class Hungry(ConstantRegressor):
    def fit(self, X, y):
        self.kept = []
        while True:
            self.kept.append(np.ones(2**21))

class Draws(ConstantRegressor):
    """Random numbers, threads' worth of BLAS: the numbers depend on the seed and nothing else."""
    def __init__(self, random_state=None):
        self.random_state = random_state
    def fit(self, X, y):
        super().fit(X, y)
        rng = np.random.default_rng(self.random_state)
        A = rng.normal(size=(200, 200))
        self.mean_ += float(np.linalg.svd(A @ A.T)[1][0]) * 1e-6
        return self

class Once(ConstantRegressor):
    """Kills its own process the first time, as if from outside."""
    def fit(self, X, y):
        if not os.path.exists(MARK):
            open(MARK, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().fit(X, y)

class Deaf(ConstantRegressor):
    """Closes every file, the one to the run too."""
    def fit(self, X, y):
        os.closerange(3, 256)
        time.sleep(99)

class Signalled(ConstantRegressor):
    def fit(self, X, y):
        signal.signal(40, signal.SIG_DFL)
        os.kill(os.getpid(), 40)

class Leaves(ConstantRegressor):
    """Ends the program politely."""
    def fit(self, X, y):
        super().fit(X, y)
        return self
    def predict(self, X, return_std=False):
        raise SystemExit(5)

class Parent(ConstantRegressor):
    """Starts a process of its own and waits for it."""
    def fit(self, X, y):
        import subprocess
        subprocess.run(["sleep", "97.31"])

class Global(ConstantRegressor):
    """Draws from the global generators."""
    def fit(self, X, y):
        import random
        super().fit(X, y)
        self.mean_ += np.random.normal() + random.random()
        return self

class Warns(ConstantRegressor):
    def fit(self, X, y):
        import warnings
        from sklearn.exceptions import ConvergenceWarning
        warnings.warn("stopped after 3 sweeps", ConvergenceWarning)
        return super().fit(X, y)

MARK = os.path.join(os.path.dirname(__file__), "mark")
'''


def write_methods(folder: Path) -> None:
    (folder / "bad.py").write_text(MISBEHAVING)


def job(use: str = CONSTANT, split: int = 0, base: Path | str = "/", tag: int = 0, **limits: Any) -> Job:
    """Return a job on the diabetes data; ``tag`` makes cells differ that would be the same."""
    use = use if ":" in use else f"./bad.py:{use}"
    checksum = data.describe(REF).checksum
    factors = {"method": use, "dataset": {"name": "diabetes", "checksum": checksum}, "split": split, "tag": tag}
    cell = Cell(use.rpartition(":")[2], "diabetes", split % 20, 1 + split, factors, store.factor_hash(factors))
    return Job(cell, "test", REF, SplitScheme(), use, {}, str(base), **limits)


def children(pid: int) -> list[int]:
    """Return all processes below one."""
    listed = subprocess.run(["ps", "-eo", "pid,ppid"], capture_output=True, text=True, check=True).stdout.split()[2:]
    pairs = [(int(a), int(b)) for a, b in zip(listed[::2], listed[1::2], strict=True)]
    found = [child for child, parent in pairs if parent == pid]
    return found + [below for child in found for below in children(child)]


def command_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
