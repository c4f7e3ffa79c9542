"""Jobs for tests: an embedded data set, and methods that misbehave."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from ep_bench import data
from ep_bench.results import store
from ep_bench.runner.jobs import Job
from ep_bench.runner.plan import make_plan
from ep_bench.spec import read_study
from ep_bench.types import MEASURED_COLUMNS, Cell, DatasetRef, SplitScheme

CONSTANT = "ep_bench.baselines:ConstantRegressor"
REF = DatasetRef("diabetes", "diabetes")

RAISED = "RuntimeError: no luck today (bad.py:8)"  # the reason of Raises
MISBEHAVING = '''
import itertools, os, signal, sys, time
import numpy as np
from ep_bench.baselines import ConstantRegressor

class Raises(ConstantRegressor):
    def fit(self, X, y):
        raise RuntimeError("no luck today")

class NotFinite(ConstantRegressor):
    def predict(self, X, return_std=False):
        mean, std = super().predict(X, return_std=True)
        mean[0] = np.nan
        return mean, std

class Crashes(ConstantRegressor):
    def fit(self, X, y):
        os.kill(os.getpid(), signal.SIGSEGV)

class Slow(ConstantRegressor):
    def fit(self, X, y):
        time.sleep(0.4)
        return super().fit(X, y)

class Busy(ConstantRegressor):
    """Uses half a second of CPU time in a process of its own, after it has stored the id of this process."""
    def fit(self, X, y):
        open(MARK, "w").write(str(os.getpid()))
        if (pid := os.fork()) == 0:
            while time.process_time() < 0.5:
                pass
            os._exit(0)
        os.waitpid(pid, 0)
        return super().fit(X, y)

class PrintsAndCrashes(ConstantRegressor):
    """Prints 80 MiB, and a line after a pause in which their file is made small; then crashes."""
    def fit(self, X, y):
        for _ in range(80):
            print("x" * 2**20)
        sys.stdout.flush()
        time.sleep(2.5)
        print("the end", flush=True)
        os.kill(os.getpid(), signal.SIGSEGV)

class Stuck(ConstantRegressor):
    """Never returns from compiled code, which handles no signal."""
    def fit(self, X, y):
        all(itertools.repeat(True))

class Hungry(ConstantRegressor):
    def fit(self, X, y):
        self.kept = []
        while True:
            self.kept.append(np.ones(2**21))

class Draws(ConstantRegressor):
    """Uses random numbers and threaded BLAS; its scores depend on the seed only."""
    def __init__(self, random_state=None):
        self.random_state = random_state
    def fit(self, X, y):
        super().fit(X, y)
        rng = np.random.default_rng(self.random_state)
        A = rng.normal(size=(200, 200))
        self.mean_ += float(np.linalg.svd(A @ A.T)[1][0]) * 1e-6
        return self

class Once(ConstantRegressor):
    """Kills its own process the first time, as another program could."""
    def fit(self, X, y):
        if not os.path.exists(MARK):
            open(MARK, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().fit(X, y)

class Leaves(ConstantRegressor):
    """Exits from its process."""
    def fit(self, X, y):
        super().fit(X, y)
        return self
    def predict(self, X, return_std=False):
        raise SystemExit(5)

class Parent(ConstantRegressor):
    """Starts a process and waits for it."""
    def fit(self, X, y):
        import subprocess
        subprocess.run(["sleep", "97.31"])

class Litters(ConstantRegressor):
    """Leaves a process running that has its own memory and session."""
    def fit(self, X, y):
        import subprocess, sys
        code = "import time; kept = b'x' * (300 << 20); print(flush=True); time.sleep(99)  # litter"
        child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, start_new_session=True)
        child.stdout.readline()
        return super().fit(X, y)

class Runaway(ConstantRegressor):
    """Starts processes and never returns; two have their own sessions, and one of these is an orphan."""
    def fit(self, X, y):
        import subprocess
        subprocess.Popen(["sleep", "97.31"])
        subprocess.Popen(["sleep", "97.32"], start_new_session=True)
        subprocess.run(["setsid", "sh", "-c", "setsid sleep 97.33 &"])
        open(MARK, "w").close()
        time.sleep(99)

class Shares(ConstantRegressor):
    """An array that four forks read: 200 MB in total, although each process counts it as resident."""
    def fit(self, X, y):
        array = np.ones(25 << 20)
        def read():
            array.sum()
            time.sleep(1.0)
            os._exit(0)
        forks = [pid for pid in (os.fork() for _ in range(4)) if pid or read()]
        for pid in forks:
            os.waitpid(pid, 0)
        return super().fit(X, y)

class Divides(ConstantRegressor):
    """Allocates memory in each of three forks."""
    def fit(self, X, y):
        def eat():
            array = np.ones(25 << 20)
            time.sleep(99)
        forks = [pid for pid in (os.fork() for _ in range(3)) if pid or eat()]
        for pid in forks:
            os.waitpid(pid, 0)
        return super().fit(X, y)

class Pid(ConstantRegressor):
    """Appends the id of its process to a file."""
    def fit(self, X, y):
        with open(MARK, "a") as file:
            print(os.getpid(), file=file)
        return super().fit(X, y)

class Parallel(Pid):
    """Uses workers of joblib, a pool and a short process, and leaves none of them running."""
    def fit(self, X, y):
        import joblib, multiprocessing, subprocess
        assert joblib.Parallel(n_jobs=2)(joblib.delayed(abs)(-k) for k in range(4)) == [0, 1, 2, 3]
        with multiprocessing.get_context("spawn").Pool(2) as pool:
            pool.map(abs, range(4))
        self.short = subprocess.Popen(["sleep", "0.2"])
        return super().fit(X, y)

class Threads(Pid):
    """Leaves a thread running, as libraries do."""
    def fit(self, X, y):
        import threading
        threading.Thread(target=time.sleep, args=(99,), daemon=True).start()
        return super().fit(X, y)

class Talks(ConstantRegressor):
    """Prints 200 megabytes, then crashes."""
    def fit(self, X, y):
        block = b"chatter " * (1 << 17)
        for _ in range(200):
            os.write(1, block)
        os.write(1, b"the last word\\n")
        os._exit(3)

class Global(ConstantRegressor):
    """Draws from the global generators."""
    def fit(self, X, y):
        import random
        super().fit(X, y)
        self.mean_ += np.random.normal() + random.random()
        return self

class States(ConstantRegressor):
    def fit(self, X, y):
        self.converged_ = False
        return super().fit(X, y)

class Warns(ConstantRegressor):
    def fit(self, X, y):
        import warnings
        from sklearn.exceptions import ConvergenceWarning
        warnings.warn("stopped after 3 sweeps", ConvergenceWarning)
        return super().fit(X, y)

MARK = os.path.join(os.path.dirname(__file__), "mark")
SECONDS = "97.34"
'''


def plan_of(folder: Path, text: str) -> Any:
    """Write a study and return its plan; its results are in the folder ``results``."""
    (folder / "study.yaml").write_text(text)
    return make_plan(read_study(folder / "study.yaml"), folder / "results")


def jobs_of(folder: Path, text: str) -> list[Job]:
    """Write a study and return the jobs of its plan."""
    return [planned.job for planned in plan_of(folder, text).cells]


def write_methods(folder: Path) -> None:
    (folder / "bad.py").write_text(MISBEHAVING)


def job(use: str = CONSTANT, split: int = 0, base: Path | str = "/", tag: int = 0, **limits: Any) -> Job:
    """Return a job on the diabetes data; ``tag`` distinguishes cells that would be equal."""
    use = use if ":" in use else f"./bad.py:{use}"
    checksum = data.describe(REF).checksum
    factors = {"method": use, "dataset": {"name": "diabetes", "checksum": checksum}, "split": split, "tag": tag}
    cell = Cell(use.rpartition(":")[2], "diabetes", split % 20, 1 + split, factors, store.factor_hash(factors))
    return Job(cell, "test", REF, SplitScheme(), use, {}, str(base), **limits)


def scores(row: store.Row) -> store.Row:
    """Return what two runs of a cell have in common: no times and no memory."""
    return {column: value for column, value in row.items() if column not in MEASURED_COLUMNS}


def scores_in(folder: Path) -> list[store.Row]:
    return [scores(row) for row in store.read_rows(folder / store.RESULTS)]


def cells_in(folder: Path) -> int:
    return len(list((folder / store.CELLS).glob("*.json")))


def change_environment(folder: Path) -> None:
    """Make the rows of a folder those of another processor."""
    shutil.rmtree(folder / store.CELLS, ignore_errors=True)
    path = folder / store.LOCK
    lock = json.loads(path.read_text())
    for environment in lock["environments"].values():
        environment["machine"]["processor"] = "another"
    path.write_text(json.dumps(lock))


def children(pid: int) -> list[int]:
    """Return all descendants of a process."""
    try:
        return [child.pid for child in psutil.Process(pid).children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def parent_of(pid: int) -> int | None:
    """Return the parent of a process, or None if the process has ended."""
    try:
        return psutil.Process(pid).ppid()
    except psutil.NoSuchProcess:
        return None


def command_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def running(*words: str) -> list[int]:
    """Return the processes whose command line is these words."""
    wanted = b"".join(word.encode() + b"\0" for word in words)
    return [int(path.name) for path in Path("/proc").glob("[0-9]*") if command_of(int(path.name)) == wanted]


def becomes_true(condition: Callable[[], object], seconds: float = 60.0) -> bool:
    """Wait until a condition is true; return whether this happened in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.05)
    return True
