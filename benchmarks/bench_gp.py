"""Exact Gaussian-process regression beside scikit-learn's: evidence with its gradient, and learning, one core each.

Both sides have a squared exponential with a lengthscale an input, a magnitude and a noise variance, and first give the
same evidence and gradient at the same hyperparameters. Learning starts at the same point, from where both go to an
optimum by L-BFGS under flat priors. Each ratio is the median of ratios taken in turns. The last row is one evaluation
at 15,000 rows, ours alone: the other needs an array of N x N for each of 15 parameters.
"""

from __future__ import annotations

import resource
import time

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from threadpoolctl import threadpool_limits

import ep_bench
from ep_bench.estimator import standardisation
from ep_bench.methods import gp
from ep_bench.methods.gp.evidence import evidence
from ep_bench.types import Rows, UserError

INPUTS, ROUNDS = 13, 7
DATASETS = ["diabetes", "friedman1", "boston", "energy"]


def seconds(function):
    begun = time.perf_counter()
    found = function()
    return time.perf_counter() - begun, found


def turns(sides, rounds):
    """Time both sides in turns; return seconds (rounds, 2) and what they returned last."""
    taken = [[seconds(side) for side in sides] for _ in range(rounds)]
    return np.array([[one for one, _ in pair] for pair in taken]), [found for _, found in taken[-1]]


def drawn(n):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, INPUTS))
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=n)
    return Rows(X, (y - y.mean()) / y.std())


def standardised(name):
    try:
        data = ep_bench.load_dataset(name)
    except UserError as error:
        pytest.skip(str(error))
    train, _ = ep_bench.standard_split(len(data.y), 0)
    X, y = data.X[train], data.y[train]
    inputs, target = standardisation(X, y)
    return Rows(inputs.apply(X), target.apply(y[:, None])[:, 0])


def theirs(rows, optimizer=None):
    d = rows.X.shape[1]
    kernel = ConstantKernel(1.0, (1e-8, 1e8)) * RBF(np.full(d, np.sqrt(d)), (1e-4, 1e5)) + WhiteKernel(0.1, (1e-8, 1e8))
    return GaussianProcessRegressor(kernel, alpha=0.0, optimizer=optimizer)


def note(benchmark, taken, per=1e3):
    names = ("our_ms", "scikit_learn_ms") if per == 1e3 else ("our_seconds", "scikit_learn_seconds")
    for name, value in zip(names, np.median(taken, axis=0), strict=True):
        benchmark.extra_info[name] = round(float(per * value), 2)
    benchmark.extra_info["scikit_learn_over_ours"] = round(float(np.median(taken[:, 1] / taken[:, 0])), 1)


@pytest.mark.parametrize("n", [500, 1500])
def bench_evidence_and_gradient(benchmark, n):
    rows = drawn(n)
    problem = gp.problem_of(rows, gp.Config())
    theta = problem.hyper.start()
    model = theirs(rows).fit(*rows)
    point = model.kernel_.theta

    def ours():
        return evidence(problem, theta)

    def other():
        return model.log_marginal_likelihood(point, eval_gradient=True, clone_kernel=False)

    with threadpool_limits(1):
        (value, gradient), (same, by_same) = ours(), other()
        np.testing.assert_allclose(value, same, rtol=1e-9)
        np.testing.assert_allclose(gradient[[INPUTS, *range(INPUTS), -1]], by_same, rtol=1e-7, atol=1e-7)
        note(benchmark, turns((ours, other), ROUNDS if n < 1000 else 3)[0])
        benchmark.pedantic(ours, rounds=ROUNDS, iterations=1)


@pytest.mark.parametrize("name", DATASETS)
def bench_learning(benchmark, name):
    rows = standardised(name)
    config = gp.Config(prior="none", starts=1)

    def ours():
        return gp.fit(rows, config, np.random.default_rng(0))[0]

    def other():
        return theirs(rows, "fmin_l_bfgs_b").fit(*rows)

    with threadpool_limits(1):
        gp.fit(rows, gp.Config(steps=1, starts=1), np.random.default_rng(0))
        taken, (state, model) = turns((ours, other), 1)
        note(benchmark, taken, per=1.0)
        benchmark.extra_info["our_evidence"] = round(state.log_evidence, 4)
        benchmark.extra_info["scikit_learn_evidence"] = round(model.log_marginal_likelihood_value_, 4)
        benchmark.pedantic(ours, rounds=1, iterations=1)


def bench_fifteen_thousand_rows(benchmark):
    problem = gp.problem_of(drawn(15_000), gp.Config())
    theta = problem.hyper.start()
    with threadpool_limits(1):
        benchmark.pedantic(lambda: evidence(problem, theta), rounds=1, iterations=1)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    benchmark.extra_info["peak_gb_of_the_process"] = round(peak / 2**20, 1)
