"""Methods that attack the processes that run them, with the expected status and reason of their cells."""

from __future__ import annotations

from pathlib import Path

# Name of the class -> (allowed statuses, separated by |; a part of the reason).
HOSTILE: dict[str, tuple[str, str]] = {
    "PatchesMean": ("ok", ""),
    "PatchesScoring": ("ok", ""),
    "ChangesFolder": ("ok", ""),
    "LeavesThread": ("ok", ""),
    "SeedsGenerators": ("ok", ""),
    "ChangesEnvironment": ("ok", ""),
    "FiltersWarnings": ("ok", ""),
    "ClosesDescriptors": ("failed", "closed the connection"),
    "KeepsConnection": ("failed", "exit code 4"),
    "KillsGroup": ("failed", "SIG"),
    "StopsItself": ("timeout", ""),
    "StrRaises": ("failed", "Rude; its message cannot be shown"),
    "ExitsSystem": ("failed", "SystemExit: 7"),
    "RaisesControl": ("failed", "RuntimeError"),
    "ExitsZero": ("failed", "exit code 0"),
    "Recursion": ("failed", "RecursionError"),
    "Memory": ("memory", "MemoryError"),
    "Complex": ("failed", "complex"),
    "Masked": ("failed", "masked"),
    "WrongTrace": ("failed", ""),
    "Daemon": ("ok", ""),
}


SOURCE = '''
import gc, os, signal, struct, subprocess, sys, threading, time
import numpy as np
from ep_bench.baselines import ConstantRegressor

class Calm(ConstantRegressor):
    """Harmless; uses the global generator."""
    def fit(self, X, y):
        super().fit(X, y)
        self.mean_ += np.random.normal()
        return self

class PatchesMean(ConstantRegressor):
    def fit(self, X, y):
        np.mean = np.ndarray.__class__ and (lambda *a, **k: 1e6)
        np.random.normal = lambda *a, **k: 1e6
        return super().fit(X, y)

class PatchesScoring(ConstantRegressor):
    def fit(self, X, y):
        from ep_bench import scoring
        scoring.score = lambda *a: {"rmse": 0.0, "ll": 99.0}
        scoring.crps = lambda *a: 0.0
        return super().fit(X, y)

class ChangesFolder(ConstantRegressor):
    def fit(self, X, y):
        os.chdir("/")
        os.umask(0o777)
        return super().fit(X, y)

class LeavesThread(ConstantRegressor):
    def fit(self, X, y):
        def spin():
            while True:
                np.mean = lambda *a, **k: 0.0
                time.sleep(0.001)
        threading.Thread(target=spin, daemon=True).start()
        return super().fit(X, y)

class SeedsGenerators(ConstantRegressor):
    def fit(self, X, y):
        np.random.seed = lambda *a: None
        return super().fit(X, y)

class ChangesEnvironment(ConstantRegressor):
    def fit(self, X, y):
        os.environ.clear()
        os.environ["EP_BENCH_DATA"] = "/nowhere"
        return super().fit(X, y)

class FiltersWarnings(ConstantRegressor):
    def fit(self, X, y):
        import warnings
        warnings.simplefilter("error")
        return super().fit(X, y)

class ClosesDescriptors(ConstantRegressor):
    def fit(self, X, y):
        os.closerange(3, 256)
        time.sleep(99)

class KeepsConnection(ConstantRegressor):
    """A child keeps the connection open after the end of the process."""
    def fit(self, X, y):
        if os.fork() == 0:
            os.setsid()
            time.sleep(99)
        os._exit(4)

class KillsGroup(ConstantRegressor):
    def fit(self, X, y):
        os.kill(0, signal.SIGTERM)
        time.sleep(99)

class StopsItself(ConstantRegressor):
    def fit(self, X, y):
        os.kill(os.getpid(), signal.SIGSTOP)

class Rude(Exception):
    def __str__(self):
        raise ValueError("no")
    __repr__ = __str__

class StrRaises(ConstantRegressor):
    def fit(self, X, y):
        raise Rude

class ExitsSystem(ConstantRegressor):
    def fit(self, X, y):
        sys.exit(7)

class RaisesControl(ConstantRegressor):
    def fit(self, X, y):
        raise RuntimeError("\\x1b[31m=cmd|' /c calc'!A0\\x07\\u202e\\ud800")

class ExitsZero(ConstantRegressor):
    def fit(self, X, y):
        os._exit(0)

class Recursion(ConstantRegressor):
    def fit(self, X, y):
        return self.fit(X, y)

class Memory(ConstantRegressor):
    def fit(self, X, y):
        raise MemoryError("MemoryError")

class Complex(ConstantRegressor):
    def predict(self, X, return_std=False):
        mean, std = super().predict(X, return_std=True)
        return mean + 1j, std

class Masked(ConstantRegressor):
    def predict(self, X, return_std=False):
        mean, std = super().predict(X, return_std=True)
        return np.ma.masked_less(mean, 1e9), std

class WrongTrace(ConstantRegressor):
    def predict_dist(self, X):
        return {"kind": "Predictive"}

class Daemon(ConstantRegressor):
    """Leaves a process in a session of its own that writes to all descriptors."""
    def fit(self, X, y):
        if os.fork() == 0:
            os.setsid()
            if os.fork():
                os._exit(0)
            time.sleep(99)
        os.wait()
        return super().fit(X, y)

'''


def write_hostile_methods(folder: Path) -> None:
    """Write the methods into ``hostile.py``."""
    (folder / "hostile.py").write_text(SOURCE)
