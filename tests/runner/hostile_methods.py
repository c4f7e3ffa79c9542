"""Methods that attack the processes that run them, with the expected status and reason of their cells."""

from __future__ import annotations

from pathlib import Path

# Name of the class -> (allowed statuses, separated by |; a part of the reason).
HOSTILE: dict[str, tuple[str, str]] = {
    "PatchesMean": ("ok", ""),
    "PatchesSqrt": ("ok", ""),
    "PatchesScoring": ("ok", ""),
    "PatchesPredictive": ("ok", ""),
    "PatchesTime": ("failed", "invalid answer"),
    "PatchesJson": ("failed", ""),
    "WritesThroughGc": ("ok", ""),
    "ClearsPath": ("ok|failed", ""),
    "ClearsModules": ("ok|failed", ""),
    "ChangesFolder": ("ok", ""),
    "LeavesTimer": ("ok|failed", ""),
    "LeavesThread": ("ok", ""),
    "SeedsGenerators": ("ok", ""),
    "ChangesErrorState": ("ok", ""),
    "ChangesEnvironment": ("ok", ""),
    "FiltersWarnings": ("ok", ""),
    "WritesToDescriptors": ("failed", ""),
    "WritesOneByte": ("failed", ""),
    "BigHeader": ("failed", "invalid answer"),
    "SendsPickle": ("failed", "invalid answer"),
    "DeepJson": ("failed", "invalid answer"),
    "HugeArray": ("failed", "invalid answer"),
    "ClosesDescriptors": ("failed", "closed the connection"),
    "ForksAndAnswers": ("ok|failed", ""),
    "KeepsConnection": ("failed", "exit code 4"),
    "KillsParent": ("failed", "killed from outside"),
    "TermsParent": ("ok", ""),
    "InterruptsParent": ("ok", ""),
    "StopsParent": ("ok", ""),
    "KillsGroup": ("failed", "SIG"),
    "StopsItself": ("timeout", ""),
    "StrRaises": ("failed", "Rude; its message cannot be shown"),
    "ExitsGenerator": ("failed", "GeneratorExit"),
    "ExitsSystem": ("failed", "SystemExit: 7"),
    "Interrupts": ("failed", "KeyboardInterrupt"),
    "RaisesControl": ("failed", "RuntimeError"),
    "ExitsZero": ("failed", "exit code 0"),
    "Recursion": ("failed", "RecursionError"),
    "Memory": ("memory", "MemoryError"),
    "Complex": ("failed", "complex"),
    "Masked": ("failed", "masked"),
    "WrongTrace": ("failed", ""),
    "Daemon": ("ok", ""),
    "LimitsItself": ("ok|failed", ""),
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

class PatchesSqrt(ConstantRegressor):
    def fit(self, X, y):
        super().fit(X, y)
        np.sqrt = lambda x: x * 0.0
        return self

class PatchesScoring(ConstantRegressor):
    def fit(self, X, y):
        from ep_bench import scoring
        scoring.score = lambda *a: {"rmse": 0.0, "ll": 99.0}
        scoring.crps = lambda *a: 0.0
        return super().fit(X, y)

class PatchesPredictive(ConstantRegressor):
    def fit(self, X, y):
        from ep_bench.predictions import Predictive
        Predictive.logpdf = lambda self, y: np.zeros(len(y)) + 99.0
        return super().fit(X, y)

class PatchesTime(ConstantRegressor):
    def fit(self, X, y):
        time.perf_counter = time.process_time = time.monotonic = lambda: 0.0
        return super().fit(X, y)

class PatchesJson(ConstantRegressor):
    def fit(self, X, y):
        import json
        json.dumps = lambda *a, **k: "{}"
        return super().fit(X, y)

class WritesThroughGc(ConstantRegressor):
    def fit(self, X, y):
        for found in gc.get_objects():
            if type(found) is np.ndarray and found.dtype == np.float64 and found.size > 100:
                try:
                    found.setflags(write=True)
                    found[...] = 7.0
                except ValueError:
                    pass
        return super().fit(X, np.array(y))

class ClearsPath(ConstantRegressor):
    def fit(self, X, y):
        sys.path.clear()
        return super().fit(X, y)

class ClearsModules(ConstantRegressor):
    def fit(self, X, y):
        super().fit(X, y)
        for name in [name for name in sys.modules if name.startswith(("ep_bench", "sklearn"))]:
            del sys.modules[name]
        return self

class ChangesFolder(ConstantRegressor):
    def fit(self, X, y):
        os.chdir("/")
        os.umask(0o777)
        return super().fit(X, y)

class LeavesTimer(ConstantRegressor):
    def fit(self, X, y):
        signal.signal(signal.SIGALRM, lambda *_: os._exit(9))
        signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
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

class ChangesErrorState(ConstantRegressor):
    def fit(self, X, y):
        np.seterr(all="raise")
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

def write_everywhere(content):
    for descriptor in range(3, 41):
        try:
            os.write(descriptor, content)
        except OSError:
            pass

class WritesToDescriptors(ConstantRegressor):
    def fit(self, X, y):
        write_everywhere(b"\\x7f\\xff\\xff\\xff" + b"x" * 64)
        return super().fit(X, y)

class WritesOneByte(ConstantRegressor):
    def fit(self, X, y):
        write_everywhere(b"E")
        return super().fit(X, y)

class BigHeader(ConstantRegressor):
    def fit(self, X, y):
        write_everywhere(struct.pack(">4sI", b"EPB1", 2**32 - 1))
        return super().fit(X, y)

class SendsPickle(ConstantRegressor):
    def fit(self, X, y):
        import pickle
        write_everywhere(pickle.dumps({"what": 1}))
        return super().fit(X, y)

def frame(text):
    return struct.pack(">4sI", b"EPB1", len(text)) + text

class DeepJson(ConstantRegressor):
    def fit(self, X, y):
        write_everywhere(frame(b"[" * 100_000))
        return super().fit(X, y)

class HugeArray(ConstantRegressor):
    def fit(self, X, y):
        write_everywhere(frame(b'{"header": {}, "arrays": [{"dtype": "<f8", "shape": [1000000000, 1000000000]}]}'))
        return super().fit(X, y)

class ClosesDescriptors(ConstantRegressor):
    def fit(self, X, y):
        os.closerange(3, 256)
        time.sleep(99)

class ForksAndAnswers(ConstantRegressor):
    def fit(self, X, y):
        super().fit(X, y)
        if os.fork() == 0:
            return self
        os.wait()
        return self

class KeepsConnection(ConstantRegressor):
    """A child keeps the connection open after the end of the process."""
    def fit(self, X, y):
        if os.fork() == 0:
            os.setsid()
            time.sleep(99)
        os._exit(4)

class KillsParent(ConstantRegressor):
    def fit(self, X, y):
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(99)

class TermsParent(ConstantRegressor):
    def fit(self, X, y):
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGALRM):
            os.kill(os.getppid(), number)
        return super().fit(X, y)

class InterruptsParent(ConstantRegressor):
    def fit(self, X, y):
        os.kill(os.getppid(), signal.SIGINT)
        return super().fit(X, y)

class StopsParent(ConstantRegressor):
    def fit(self, X, y):
        os.kill(os.getppid(), signal.SIGSTOP)
        return super().fit(X, y)

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

class ExitsGenerator(ConstantRegressor):
    def fit(self, X, y):
        raise GeneratorExit

class ExitsSystem(ConstantRegressor):
    def fit(self, X, y):
        sys.exit(7)

class Interrupts(ConstantRegressor):
    def fit(self, X, y):
        raise KeyboardInterrupt

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

class LimitsItself(ConstantRegressor):
    def fit(self, X, y):
        import resource
        resource.setrlimit(resource.RLIMIT_NOFILE, (8, 8))
        return super().fit(X, y)
'''


def write_hostile_methods(folder: Path) -> None:
    """Write the methods into ``hostile.py``."""
    (folder / "hostile.py").write_text(SOURCE)
