"""A correct ridge regression, and variants with one fault each."""

from __future__ import annotations

import ctypes
import os

import numpy as np
from scipy.special import ndtri

from ep_bench import Predictive


class Honest:
    """Ridge regression with a Gaussian noise model; the penalty is small compared with the data."""

    def fit(self, X, y):
        self.shift, self.middle = X.mean(axis=0), y.mean()
        Z, t = X - self.shift, y - self.middle
        self.inverse = np.linalg.inv(Z.T @ Z + 1e-3 * np.eye(X.shape[1]))
        self.weights = self.inverse @ (Z.T @ t)
        self.noise = (np.sum((t - Z @ self.weights) ** 2) + 1e-3 * (y.var() or 1.0)) / len(y)
        return self

    def moments(self, X):
        """Return mean and variance of the function."""
        Z = X - self.shift
        return self.middle + Z @ self.weights, self.noise * np.sum((Z @ self.inverse) * Z, axis=1)

    def predict(self, X, return_std=False):
        mean, variance = self.moments(X)
        mean, std = self.answer(X, mean, np.sqrt(variance + self.noise))
        return (mean, std) if return_std else mean

    def answer(self, X, mean, std):
        """Return what is predicted, in which most variants are wrong."""
        return mean, std


class NoPrediction:
    def __init__(self):
        self.predict = None

    def fit(self, X, y):
        return self


class FailsAlways(Honest):
    def fit(self, X, y):
        return super().fit(X, y[:, 0])


class ColumnOfMeans(Honest):
    def answer(self, X, mean, std):
        return mean[:, None], std


class OneDeviationForAll(Honest):
    def answer(self, X, mean, std):
        return mean, std[0]


class NanSomewhere(Honest):
    def answer(self, X, mean, std):
        return np.where(X[:, 0] > 1.0, np.nan, mean), std


class NegativeDeviation(Honest):
    def answer(self, X, mean, std):
        return mean, np.where(X[:, 0] > 1.0, -std, std)


class Unseeded(Honest):
    def fit(self, X, y):
        super().fit(X, y)
        self.weights = self.weights * np.random.default_rng().normal(1.0, 0.01, len(self.weights))
        return self


class RandomWhenAsked(Honest):
    def answer(self, X, mean, std):
        return mean + 0.01 * np.random.default_rng().normal() * std, std


class DeafToRandomState(Honest):
    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X, y):
        super().fit(X, y)
        self.weights = self.weights * np.random.normal(1.0, 0.01, len(self.weights))  # noqa: NPY002
        return self


class WithoutNoise(Honest):
    def predict(self, X, return_std=False):
        mean, variance = self.moments(X)
        return (mean, np.sqrt(variance)) if return_std else mean


class Standardised(Honest):
    def fit(self, X, y):
        return super().fit(X, (y - y.mean()) / (y.std() or 1.0))


class Centred(Honest):
    def fit(self, X, y):
        return super().fit(X, y - y.mean())


class ScaleForgotten(Honest):
    def fit(self, X, y):
        super().fit(X, (y - y.mean()) / (y.std() or 1.0))
        self.middle, self.scale = y.mean(), y.std() or 1.0
        return self

    def answer(self, X, mean, std):
        return mean, std * self.scale


class VarianceForDeviation(Honest):
    def answer(self, X, mean, std):
        return mean, std**2


class DeviationOfStandardised(Honest):
    def fit(self, X, y):
        self.scale = y.std() or 1.0
        return super().fit(X, y)

    def answer(self, X, mean, std):
        return mean, std / self.scale


class WritesIntoX(Honest):
    def fit(self, X, y):
        X -= X.mean(axis=0)
        return super().fit(X, y)


class WritesIntoWhatItPredicts(Honest):
    def predict(self, X, return_std=False):
        X *= 1.0 + 1e-12
        return super().predict(X, return_std)


class RefusesReadOnly(Honest):
    def fit(self, X, y):
        if memoryview(X).readonly:
            raise ValueError("buffer source array is read-only")
        return super().fit(X, y)


class StandardisesTheBatch(Honest):
    def fit(self, X, y):
        return super().fit((X - X.mean(axis=0)) / (X.std(axis=0) + 1e-9), y)

    def predict(self, X, return_std=False):
        return super().predict((X - X.mean(axis=0)) / (X.std(axis=0) + 1e-9), return_std)


class CountsTheBatch(Honest):
    """Adds a thousandth of the mean of the test inputs."""

    def predict(self, X, return_std=False):
        return super().predict(X - 1e-3 * X.mean(axis=0), return_std)


class SmoothsTheOrder(Honest):
    """Mixes each prediction with that of the row before."""

    def predict(self, X, return_std=False):
        mean, std = super().predict(X, return_std=True)
        mean = 0.9 * mean + 0.1 * np.roll(mean, 1)
        return (mean, std) if return_std else mean


class AlwaysReturnsBoth(Honest):
    def predict(self, X, return_std=False):
        return super().predict(X, return_std=True)


class RemembersRows(Honest):
    def __init__(self):
        self.rows = []

    def fit(self, X, y):
        self.rows.append((X, y))
        return super().fit(*(np.concatenate(part) for part in zip(*self.rows, strict=True)))


class FailsOnOneRow(Honest):
    def fit(self, X, y):
        self.second = y[1]
        return super().fit(X, y)


class NanWithConstantInput(Honest):
    def fit(self, X, y):
        with np.errstate(all="ignore"):
            scale = np.where(X.std(axis=0) > 1e-12, 1.0, np.nan) if len(X) > 1 else 1.0
        super().fit(X, y)
        self.weights = self.weights * scale
        return self


class FailsWide(Honest):
    def fit(self, X, y):
        if X.shape[1] > len(X):
            raise np.linalg.LinAlgError("Singular matrix")
        return super().fit(X, y)


class NanWithConstantTarget(Honest):
    def fit(self, X, y):
        super().fit(X, y)
        self.weights = self.weights * (np.nan if len(y) > 1 and np.ptp(y) == 0.0 else 1.0)
        return self


class FailsOnDuplicates(Honest):
    def fit(self, X, y):
        if len(np.unique(X, axis=0)) < len(X):
            raise np.linalg.LinAlgError("Singular matrix")
        return super().fit(X, y)


class TwoAnswers(Honest):
    def predict_dist(self, X):
        mean, variance = self.moments(X)
        return Predictive.gaussian(mean + 0.5 * np.sqrt(self.noise), variance + self.noise)


class FailsOnManyScales(Honest):
    """Worth advice, no fault."""

    def fit(self, X, y):
        if X.std(axis=0).max() > 1e5:
            raise ValueError("inputs are far from standardised")
        return super().fit(X, y)


class EndlessLoop(Honest):
    def fit(self, X, y):
        while X.shape[1] > len(X):
            pass
        return super().fit(X, y)


class EndsTheProcess(Honest):
    def fit(self, X, y):
        if X.shape[1] > len(X):
            os._exit(3)
        return super().fit(X, y)


class Segfault(Honest):
    def fit(self, X, y):
        if X.shape[1] > len(X):
            ctypes.string_at(0)
        return super().fit(X, y)


class SpinsAlways(Honest):
    def fit(self, X, y):
        while True:
            pass


class CannotBeBuilt(Honest):
    def __init__(self):
        raise OSError("no such device")


class QuantilesOfNoUnit(Honest):
    """Minus the level for all data points."""

    def predict(self, X):
        return self.moments(X)[0]

    def predict_quantiles(self, X, levels):
        return np.tile(-np.asarray(levels), (len(X), 1))


class QuantilesOfAnotherUnit(QuantilesOfNoUnit):
    """Ascending, and right for targets with standard deviation 1."""

    def predict_quantiles(self, X, levels):
        mean, variance = self.moments(X)
        spread = np.sqrt((variance + self.noise) / (self.noise * 40))
        return mean[:, None] + 5.0 * spread[:, None] * ndtri(levels) / spread.max()


class QuantilesOfTheFunction(QuantilesOfNoUnit):
    """The noise is missing."""

    def predict_quantiles(self, X, levels):
        mean, variance = self.moments(X)
        return mean[:, None] + np.sqrt(variance)[:, None] * ndtri(levels)


class InfiniteQuantiles(QuantilesOfNoUnit):
    def predict_quantiles(self, X, levels):
        mean, variance = self.moments(X)
        found = mean[:, None] + np.sqrt(variance + self.noise)[:, None] * ndtri(levels)
        found[:, -1] = np.inf
        return found
