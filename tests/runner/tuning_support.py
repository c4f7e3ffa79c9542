"""Methods for the tests of tuned cells, and plans of studies with them."""

from __future__ import annotations

from pathlib import Path

from ep_bench.runner.plan import Plan
from tests.runner import support

RIDGE = '{use: "sklearn.linear_model:Ridge", tune: {trials: 8, score: rmse, space: {alpha: {log: [0.001, 1000]}}}}'

SPIES = '''
import time
import numpy as np
from ep_bench.baselines import ConstantRegressor

class Spy(ConstantRegressor):
    """Records the targets that it is fitted to."""
    seen = []
    def __init__(self, a=0.5, random_state=None):
        self.a, self.random_state = a, random_state
    def fit(self, X, y):
        type(self).seen.append(np.array(y))
        return super().fit(X, y)

class Other(Spy):
    seen = []

class Spread(ConstantRegressor):
    """Predicts a given standard deviation and a shifted mean; declares a search space."""
    tune_space = {"std": {"log": [1.0, 1000.0]}, "off": [0.0, 500.0]}
    def __init__(self, std=1.0, off=0.0):
        self.std, self.off = std, off
    def predict(self, X, return_std=False):
        mean = super().predict(X) + self.off
        return (mean, np.full(len(X), self.std)) if return_std else mean

class Fails(ConstantRegressor):
    def __init__(self, a=0.0, seed=None):
        self.a = a
    def fit(self, X, y):
        if self.a > 0.5:
            raise FloatingPointError("too much of a")
        if self.a > 0.3:
            import warnings
            from sklearn.exceptions import ConvergenceWarning
            warnings.warn("stopped early", ConvergenceWarning)
        return super().fit(X, y)

class Needs(ConstantRegressor):
    def __init__(self, a):
        self.a = a

class Global(ConstantRegressor):
    """Draws from the global generator."""
    def __init__(self, a=0.5):
        self.a = a
    def fit(self, X, y):
        super().fit(X, y)
        self.mean_ += self.a * np.random.normal()
        return self

class Slow(ConstantRegressor):
    def __init__(self, a=0.5):
        self.a = a
    def fit(self, X, y):
        time.sleep(0.25)
        return super().fit(X, y)

class Hidden(ConstantRegressor):
    """Points; other methods depend on the fit."""
    def __init__(self, a=0):
        self.a = a
    def predict(self, X):
        return super().predict(X)
    def __getattr__(self, name):
        raise AttributeError(name)

class Levels:
    """Quantiles of a Gaussian of a given width."""
    def __init__(self, width=1.0):
        self.width = width
    def fit(self, X, y):
        self.mean_ = float(np.mean(y))
        return self
    def predict(self, X):
        return np.full(len(X), self.mean_)
    def predict_quantiles(self, X, levels):
        from scipy.stats import norm
        return np.tile(self.mean_ + self.width * norm.ppf(levels), (len(X), 1))
'''


def with_methods(folder: Path) -> Path:
    """Write the methods into m.py and return the folder."""
    (folder / "m.py").write_text(SPIES)
    return folder


def plan_of(
    folder: Path, *entries: str, datasets: str = "[diabetes]", splits: str = "count: 2", head: str = ""
) -> Plan:
    lines = "".join(f"  - {entry}\n" for entry in entries)
    text = f"study: s\n{head}datasets: {datasets}\nsplits: {{scheme: standard, {splits}}}\nmethods:\n{lines}"
    return support.plan_of(folder, text)
