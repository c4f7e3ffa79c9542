"""Gaussian processes compared with scikit-learn, GPy and GPyTorch: evidence and gradient, and learning, on one core.

All sides have a squared exponential with one lengthscale per input, a magnitude and a noise variance, and first return
the same evidence and gradient at the same hyperparameters. Learning starts at the same point and ends at an optimum of
L-BFGS under flat priors. The sides alternate; each ratio is the median over the rounds. One benchmark is an evaluation
at 15,000 data points of ours only, because scikit-learn needs an N x N array for each of 15 parameters.

GPy and GPyTorch (``gp_peers``, the extra ``peers``) are skipped if they are not installed. The comparisons with them
include FITC and the variational bound from the same centres of k-means, all under flat priors: single evaluations with
50 inducing inputs, whole fits with 50, 100 and 200 (``INDUCING``).
Our side learns with its default settings (exact: three starts; the first is that of the others). It also learns with
the smallest number of starts and steps that reach the evidence of the other side, and a second ratio reports this.
Each of the others runs between two runs of ours. Single evaluations of ours are those of ``search: many``.

``bench_searches`` compares whole sparse fits by both of our searches, and by GPy if the peers are installed, in
processor time (``sgp_searches`` writes it for several splits).
"""

from __future__ import annotations

import resource
import time
import warnings
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from threadpoolctl import threadpool_limits

import ep_bench
from ep_bench.covariances.exact_evidence import evidence
from ep_bench.covariances.inducing import centres
from ep_bench.covariances.sparse_evidence import evidence as sparse_evidence
from ep_bench.errors import UserError
from ep_bench.estimator import standardisation
from ep_bench.methods import gp, sgp
from ep_bench.types import Rows

INPUTS, ROUNDS = 13, 7
DATASETS = ["diabetes", "friedman1", "boston", "energy"]


def seconds(function, clock=time.perf_counter):
    begun = clock()
    found = function()
    return clock() - begun, found


def alternate(sides, rounds, clock=time.perf_counter):
    """Time S sides alternately; return seconds (rounds, S) and their last results."""
    taken = [[seconds(side, clock) for side in sides] for _ in range(rounds)]
    return np.array([[one for one, _ in turn] for turn in taken]), [found for _, found in taken[-1]]


def drawn(n):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, INPUTS))
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=n)
    return Rows(X, (y - y.mean()) / y.std())


def standardised(name, split=0):
    try:
        data = ep_bench.load_dataset(name)
    except UserError as error:
        pytest.skip(str(error))
    train, _ = ep_bench.standard_split(len(data.y), split)
    X, y = data.X[train], data.y[train]
    inputs, target = standardisation(X, y)
    return Rows(inputs.apply(X), target.apply(y[:, None])[:, 0])


def scikit_learn_model(rows, optimizer=None):
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
    model = scikit_learn_model(rows).fit(rows.X, rows.y)
    point = model.kernel_.theta

    def ours():
        return evidence(problem, theta)

    def other():
        return model.log_marginal_likelihood(point, eval_gradient=True, clone_kernel=False)

    with threadpool_limits(1):
        (value, gradient), (same, by_same) = ours(), other()
        np.testing.assert_allclose(value, same, rtol=1e-9)
        np.testing.assert_allclose(gradient[[INPUTS, *range(INPUTS), -1]], by_same, rtol=1e-7, atol=1e-7)
        note(benchmark, alternate((ours, other), ROUNDS if n < 1000 else 3)[0])
        benchmark.pedantic(ours, rounds=ROUNDS, iterations=1)


@pytest.mark.parametrize("name", DATASETS)
def bench_learning(benchmark, name):
    rows = standardised(name)
    config = gp.Config(prior="none", starts=1)

    def ours():
        return gp.fit(rows, config, np.random.default_rng(0))[0]

    def other():
        return scikit_learn_model(rows, "fmin_l_bfgs_b").fit(rows.X, rows.y)

    with threadpool_limits(1):
        gp.fit(rows, gp.Config(steps=1, starts=1), np.random.default_rng(0))
        taken, (state, model) = alternate((ours, other), 1)
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


INDUCING = (50, 100, 200)  # of whole fits; single evaluations have the first number
OFFERED = {"exact": ("gpy", "gpytorch"), "fitc": ("gpy",), "vfe": ("gpy", "gpytorch")}


def peer(name, rows, Z, approximation, hyper, jitter=None):
    for package in ("GPy", "gpytorch"):
        pytest.importorskip(package, reason=f"{package} is not installed: pip install 'ep-bench[peers]'")
    from benchmarks import gp_peers

    side = {"gpy": gp_peers.Gpy, "gpytorch": gp_peers.Gpytorch}[name]
    return side(rows, Z, approximation, *hyper, jitter=jitter)


def our_evidence(rows, Z, approximation, hyper):
    """Return a function that computes our evidence or bound and its gradient, and returns the value."""
    theta = np.log(np.append(hyper[0], hyper[1:]))
    if approximation == "exact":
        problem = gp.problem_of(rows, gp.Config())
        return lambda: evidence(problem, theta)[0]
    problem, point = sgp.problem_of(rows, sgp.Config(approximation=approximation)), np.append(theta, Z)
    return lambda: sparse_evidence(problem, point)[0]


def our_learning(rows, Z, approximation, starts, steps, **more):
    """Return a function that learns the hyperparameters and returns our evidence or bound."""
    options = {"prior": "none", "starts": starts, "steps": steps, **more}
    if approximation == "exact":
        return lambda: gp.fit(rows, gp.Config(**options), np.random.default_rng(0))[0].log_evidence
    config = sgp.Config(**options, approximation=approximation, inducing=len(Z))
    return lambda: sgp.fit(rows, config, np.random.default_rng(0), inducing_inputs=Z)[0].log_evidence


def sparse_rows(name, inducing=INDUCING[0], split=0):
    rows = standardised(name, split)
    return rows, centres(rows.X, inducing, np.random.default_rng(0))


@pytest.mark.parametrize("name", ["diabetes", "boston"])
@pytest.mark.parametrize("approximation", OFFERED)
def bench_evidence_of_peers(benchmark, approximation, name):
    rows, Z = sparse_rows(name)
    d = rows.X.shape[1]
    hyper = (np.linspace(1.5, 6.0, d), 1.7, 0.07)
    ours = our_evidence(rows, Z, approximation, hyper)
    with threadpool_limits(1):
        value = ours()
        for other in OFFERED[approximation]:
            # GPyTorch adds no jitter to the exact evidence if none is needed
            model = peer(other, rows, Z, approximation, hyper, jitter=1e-11)
            difference = abs(model.evidence() / value - 1.0)
            assert difference < 1e-6
            taken, _ = alternate((ours, model.evidence), ROUNDS)
            benchmark.extra_info[f"{other}_difference"] = f"{difference:.1e}"
            benchmark.extra_info[f"{other}_over_ours"] = round(float(np.median(taken[:, 1] / taken[:, 0])), 1)
        benchmark.extra_info["evidence"] = round(value, 4)
        benchmark.pedantic(ours, rounds=ROUNDS, iterations=1)


def learning_of_peers(rows, Z, approximation):
    """Return functions, by name, that learn from the common start and return the evidence or bound."""
    d = rows.X.shape[1]
    start = (np.full(d, np.sqrt(d)), 1.0, 0.1)

    def model(name):
        return peer(name, rows, Z, approximation, start)

    sides = {"gpy": lambda: model("gpy").learn()}
    if "gpytorch" in OFFERED[approximation]:
        sides |= {f"gpytorch_{one}": lambda one=one: model("gpytorch").learn(one) for one in ("adam", "lbfgs")}
    if approximation == "exact":
        sides["scikit_learn"] = lambda: (
            scikit_learn_model(rows, "fmin_l_bfgs_b").fit(rows.X, rows.y).log_marginal_likelihood_value_
        )
    return sides


def compare_learning(benchmark, side, learn, ours, defaults):
    """Record the ratios to our default settings, and to our smallest number of starts and steps as good as theirs."""
    before, value = seconds(ours(*defaults))
    spent, other = seconds(learn)
    after, _ = seconds(ours(*defaults))
    benchmark.extra_info[f"{side}_evidence"] = round(other, 2)
    benchmark.extra_info[f"{side}_seconds"] = round(spent, 2)
    benchmark.extra_info[f"{side}_over_ours"] = round(spent / (0.5 * (before + after)), 1)
    for starts, steps in (*((1, steps) for steps in (10, 20, 50, 100, 200, 500)), (3, 500)):
        taken, reached = seconds(ours(starts, steps))
        if reached > other - 0.01:
            words = f"{spent / taken:.1f} at {reached:.2f}: {starts} starts of {steps} steps"
            benchmark.extra_info[f"{side}_over_ours_at_equal_evidence"] = words
            break
    return value


WHOLE_FITS = [(name, inducing) for name in OFFERED for inducing in (INDUCING if name != "exact" else INDUCING[:1])]


@pytest.mark.parametrize("name", ["diabetes", "boston"])
@pytest.mark.parametrize(("approximation", "inducing"), WHOLE_FITS)
def bench_learning_of_peers(benchmark, approximation, inducing, name):
    rows, Z = sparse_rows(name, inducing)  # an exact process does not use Z
    defaults = (gp.Config().starts if approximation == "exact" else sgp.Config().starts, sgp.Config().steps)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # both sides can warn that they end before an optimum
        ours = partial(our_learning, rows, Z, approximation)
        ours(1, 1)()
        for side, learn in learning_of_peers(rows, Z, approximation).items():
            value = compare_learning(benchmark, side, learn, ours, defaults)
        benchmark.extra_info["our_evidence"] = round(value, 2)
        benchmark.pedantic(ours(*defaults), rounds=1, iterations=1)


def compared_searches(name, inducing, approximation, split=0):
    """Return evidences or bounds (nats) of whole fits, and CPU seconds divided by those of ``search: trials``."""
    rows, Z = sparse_rows(name, inducing, split)
    learning = partial(our_learning, rows, Z, approximation, 1)
    sides = {one: learning(sgp.Config().steps, search=one) for one in ("trials", "many")}
    if find_spec("GPy") and find_spec("gpytorch"):
        sides["gpy"] = learning_of_peers(rows, Z, approximation)["gpy"]
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # all sides can warn that they end before an optimum
        for one in ("trials", "many"):
            learning(1, search=one)()  # compiles
        taken, values = alternate(sides.values(), 1, time.process_time)
    found: dict[str, Any] = {}
    for side, spent, value in zip(sides, taken[0], values, strict=True):
        found[side], found[f"{side}_over_trials"] = round(value, 2), round(float(spent / taken[0, 0]), 2)
    return found


@pytest.mark.parametrize("inducing", INDUCING)
@pytest.mark.parametrize("name", ["diabetes", "boston", "concrete", "kin8nm"])
@pytest.mark.parametrize("approximation", ["fitc", "vfe"])
def bench_searches(benchmark, approximation, name, inducing):
    benchmark.pedantic(
        lambda: benchmark.extra_info.update(compared_searches(name, inducing, approximation)), rounds=1, iterations=1
    )
