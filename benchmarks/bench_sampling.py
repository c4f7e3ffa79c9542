"""The sampler ``hmc`` compared with JAX on one core: time per gradient, effective samples of predictions per second.

Both sides use float64 and are compiled before they are timed. One gradient is U(w) and its derivatives by all weights
at fixed variances, evaluated many times in one compiled loop on either side. A second ratio compares with the four
matrix products that every implementation needs, by the BLAS of NumPy: X W, Z v, X' D, Z' r.

The effective samples are those of ArviZ (bulk) for the outputs at the same 64 inputs, over chains that run one after
the other. The time is that of whole fits, with initialisation and warm-up (a third of the iterations) on all sides,
without compilation. Without the extra ``peers``, which installs JAX, NumPyro and BlackJAX, the comparisons are skipped.
"""

from __future__ import annotations

import os
import time
import warnings
from functools import cache

import numba
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from ep_bench import Estimator, load_dataset, standard_split
from ep_bench.estimator import warm_up
from ep_bench.methods.hmc.trajectory import NetworkRows, potential
from ep_bench.models import mlp, residuals
from ep_bench.numerics import mcmc_diagnostics

HIDDEN, BETA = 50, 2.0
ROUNDS = 25
SIZES = {"boston": (455, 13, 200), "kin8nm": (7373, 8, 15)}  # data points, inputs, gradients per round
DATA = ("boston", "concrete", "yacht")
CHAINS, OUR_WARMUP, OUR_DRAWS = 2, 750, 1500
THEIR_WARMUP, THEIR_DRAWS = (
    100,
    200,
)  # a minute or two per side: their trees take 1,023 gradients, our trajectories 500 on average
WEIGHT_PRIOR, NOISE_PRIOR = (0.1, 0.1), (0.1, 0.01)


@pytest.fixture(autouse=True)
def _one_core():
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    with threadpool_limits(1):
        yield
    os.sched_setaffinity(0, cores)


def peers_of(*packages):
    for package in packages:
        pytest.importorskip(package, reason=f"{package} is not installed: pip install 'ep-bench[peers]'")
    from benchmarks import jax_sampling

    return jax_sampling


def seconds(function):
    begun = time.perf_counter()
    result = function()
    return time.perf_counter() - begun, result


@numba.njit(cache=True)
def take_gradients(rows, w, tau, work, g, count):
    total = 0.0
    for _ in range(count):
        total += potential(rows, w, BETA, tau, work, g)[0]
    return total


@numba.njit(cache=True)
def take_products(X, W, v, D, r, count):
    Z, f, by_W, by_v = np.empty_like(D), np.empty_like(r), np.empty_like(W), np.empty_like(v)
    for _ in range(count):
        np.dot(X, W, Z)
        np.dot(Z, v, f)
        np.dot(X.T, D, by_W)
        np.dot(Z.T, r, by_v)
    return f[0] + by_v[0] + by_W[0, 0]


def setting(name, activation):
    """Return data, weights and prior precisions, and two sides: our gradient, and the four products alone."""
    n, d, count = SIZES[name]
    rng = np.random.default_rng(0)
    X, y, layers = rng.standard_normal((n, d)), rng.standard_normal(n), mlp.layout(d, (HIDDEN,))
    w, tau = mlp.initial_weights(layers, rng), rng.uniform(0.5, 2.0, mlp.count(layers))
    rows = NetworkRows(X, y, layers, residuals.ACTIVATIONS[activation])
    work = residuals.workspace(layers, rows.kind, len(y))
    g, W, v = np.empty_like(w), w[: d * HIDDEN].reshape(d, HIDDEN).copy(), w[-HIDDEN - 1 : -1].copy()
    D, r = rng.standard_normal((n, HIDDEN)), rng.standard_normal(n)
    sides = (
        lambda: take_gradients(rows, w, tau, work, g, count),
        lambda: take_products(X, W, v, D, r, count),
    )
    return X, y, w, tau, g, sides


def microseconds(sides, count):
    """Return the shortest time per gradient, or per set of products, of each side; the sides alternate."""
    turns = np.array([[seconds(side)[0] for side in sides] for _ in range(ROUNDS)])
    return (1e6 * turns.min(axis=0) / count).tolist()


@pytest.mark.parametrize("name", SIZES)
def bench_gradient(benchmark, name):
    peers = peers_of("jax")
    X, y, w, tau, g, (our_side, products) = setting(name, "relu")
    sides = (our_side, peers.gradients(w, X, y, HIDDEN, BETA, tau, count=SIZES[name][2]), products)
    ours, (_, theirs), _ = (side() for side in sides)
    np.testing.assert_allclose(ours, theirs, rtol=1e-11)
    np.testing.assert_allclose(
        g, peers.jax.grad(peers.potential)(w, X, y, HIDDEN, BETA, tau), rtol=1e-9, atol=1e-11 * abs(g).max()
    )
    our_us, jax_us, products_us = microseconds(sides, SIZES[name][2])
    benchmark.pedantic(our_side, rounds=ROUNDS, iterations=1)
    benchmark.extra_info["our_us"], benchmark.extra_info["jax_us"] = round(our_us, 1), round(jax_us, 1)
    benchmark.extra_info["products_us"] = round(products_us, 1)
    benchmark.extra_info["jax_over_ours"] = round(jax_us / our_us, 2)
    benchmark.extra_info["ours_over_products"] = round(our_us / products_us, 2)


@pytest.mark.parametrize("activation", ["tanh", "probit"])
@pytest.mark.parametrize("name", SIZES)
def bench_smooth_gradient(benchmark, name, activation):
    """The values and slopes of these units take longer than the matrix products."""
    *_, sides = setting(name, activation)
    for side in sides:
        side()
    our_us, products_us = microseconds(sides, SIZES[name][2])
    benchmark.pedantic(sides[0], rounds=ROUNDS, iterations=1)
    benchmark.extra_info["our_us"], benchmark.extra_info["products_us"] = round(our_us, 1), round(products_us, 1)
    benchmark.extra_info["ours_over_products"] = round(our_us / products_us, 2)


@cache
def problem(name):
    """Return standardised training data, and the monitored inputs."""
    data = load_dataset(name)
    rows = standard_split(len(data.y), 0)[0]
    X, y = data.X[rows], data.y[rows]
    X, y = (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()
    return X, y, mcmc_diagnostics.monitored_inputs(X, np.random.default_rng(0))


def measures(predictions, spent):
    """Return the recorded measures of predictions (chains, draws, inputs) that took ``spent`` seconds."""
    from arviz_stats.base import array_stats

    axes = {"chain_axis": 0, "draw_axis": 1}
    effective = np.asarray(array_stats.ess(predictions, method="bulk", **axes))
    r_hat = np.asarray(array_stats.rhat(predictions, **axes))
    return {
        "seconds": round(spent, 1),
        "median_per_second": round(float(np.median(effective)) / spent, 3),
        "minimum_per_second": round(float(effective.min()) / spent, 3),
        "effective": [round(float(x)) for x in (np.median(effective), effective.min())],
        "r_hat": [round(float(x), 3) for x in (np.median(r_hat), r_hat.max())],
    }


@cache
def ours(name):
    X, y, monitored = problem(name)
    options = {
        "hidden": [HIDDEN], "chains": CHAINS, "warmup": OUR_WARMUP, "samples": OUR_DRAWS,
        "stored": CHAINS * OUR_DRAWS, "weight_prior": WEIGHT_PRIOR, "noise_prior": NOISE_PRIOR,
    }  # fmt: skip
    estimator = Estimator("hmc", standardize=False, random_state=0, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # R-hat is printed
        warm_up("hmc", options)
        spent, _ = seconds(lambda: estimator.fit(X, y))
    state = estimator.state_
    found = residuals.outputs(monitored, state.W, state.layers, residuals.RELU)
    return measures(found.reshape(CHAINS, OUR_DRAWS, -1), spent)


def theirs(peers, name, sampler):
    X, y, monitored = problem(name)
    rng, layers = np.random.default_rng(1), mlp.layout(X.shape[1], (HIDDEN,))
    start = np.append(mlp.initial_weights(layers, rng), [0.0, 0.0])

    def density(z):
        return peers.log_density(z, X, y, HIDDEN, WEIGHT_PRIOR, NOISE_PRIOR)

    chain = peers.SAMPLERS[sampler](density, start, THEIR_WARMUP, THEIR_DRAWS)
    keys = peers.jax.random.split(peers.jax.random.key(0), CHAINS)
    spent, drawn = seconds(lambda: [peers.jax.block_until_ready(chain(key)) for key in keys])
    W = np.concatenate([np.asarray(z)[:, :-2] for z, _ in drawn])
    found = residuals.outputs(monitored, W, layers, residuals.RELU).reshape(CHAINS, THEIR_DRAWS, -1)
    return {**measures(found, spent), "gradients_per_draw": round(float(np.mean([steps for _, steps in drawn])))}


@pytest.mark.parametrize("sampler", ["numpyro", "blackjax"])
@pytest.mark.parametrize("name", DATA)
def bench_predictions(benchmark, name, sampler):
    peers = peers_of("jax", sampler)
    mine, other = ours(name), {}
    benchmark.pedantic(lambda: other.update(theirs(peers, name, sampler)), rounds=1, iterations=1)
    benchmark.extra_info["ours"], benchmark.extra_info[sampler] = mine, other
    for kind in ("median_per_second", "minimum_per_second"):
        benchmark.extra_info[f"ours_over_theirs,_{kind}"] = round(mine[kind] / other[kind], 2)
