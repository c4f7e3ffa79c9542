"""Time per step of ``vi`` and ``bb_alpha``, compared with the same models in PyTorch, on one core.

Both sides apply the same steps to the same data alternately, each with its own noise. They first return the same
objective and gradient for the same noise. Without the extra ``peers``, which installs PyTorch, all is skipped. Each
ratio is the median over the rounds. Our side uses float64; PyTorch uses float32, its default, and float64, each plain
and compiled.
"""

from __future__ import annotations

import time

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from ep_bench.methods import bb_alpha
from ep_bench.methods.bb_alpha.training import train_epoch
from ep_bench.methods.vi.training import weights_epoch
from ep_bench.models import meanfield, mlp, variational_bound
from ep_bench.models.empirical_prior import prior_groups
from ep_bench.numerics.adam import moments
from ep_bench.numerics.normal_rng import stream
from ep_bench.types import Rows

BATCH, ALPHA, RATE = 32, 0.5, 1e-3
ROUNDS, FEW_ROUNDS = 7, 2  # epochs per side; the second for MANY_POINTS data points or more
MANY_POINTS = 10_000
SIZES = {"vi-boston": (455, 13, 50, 10), "vi-protein": (41157, 9, 100, 10),
         "bb_alpha-boston": (455, 13, 100, 50), "bb_alpha-protein": (41157, 9, 100, 50)}  # fmt: skip
VARIANTS = [("float32", False), ("float32", True), ("float64", False), ("float64", True)]


class StepProblem:
    """Data and initial parameters, the scratch of a method, and its epoch."""

    def __init__(self, name):
        self.method = name.split("-")[0]
        rows, self.d, self.hidden, self.samples = SIZES[name]
        self.n, self.rounds = rows, ROUNDS if rows < MANY_POINTS else FEW_ROUNDS
        self.steps_per_epoch = -(-rows // BATCH)
        rng = np.random.default_rng(0)
        self.X, self.y = rng.standard_normal((self.n, self.d)), rng.standard_normal(self.n)
        self.order = rng.permutation(self.n)
        self.layers = mlp.layout(self.d, (self.hidden,))
        self.size = mlp.count(self.layers)
        self.theta = np.full(2 * self.size + 1, -3.0)
        self.theta[: self.size] = mlp.initial_weights(self.layers, rng)
        self.theta[-1] = 0.0
        package = variational_bound if self.method == "vi" else bb_alpha.energy
        sizes = (self.samples, BATCH, self.size, self.hidden, self.hidden)
        self.work = package.workspace(*sizes)
        self.gradient, self.steps, self.words = np.empty_like(self.theta), moments(len(self.theta)), stream(rng)
        self.prior = np.ones(self.size)

    def epoch(self):
        shared = (self.X, self.y, self.order, BATCH, self.theta, self.steps, self.gradient, self.layers, self.work)
        if self.method == "vi":
            groups = prior_groups(self.layers, 0)
            return weights_epoch(*shared, self.words, self.prior, groups, False, True, RATE, None)
        return train_epoch(*shared, self.words, ALPHA, 1.0, RATE, RATE)

    def objective(self, X, y, noise):
        """Return the objective and the gradient of one batch for fixed noise."""
        work, weights = self.work, self.theta[: self.size]
        work.noise[:] = noise
        if self.method == "vi":
            work.std[:] = np.exp(self.theta[self.size : -1])
            meanfield.scale_noise(weights, work.std, work.noise, work.W)
            value = variational_bound.bound(self.theta, X, y, self.layers, self.n, self.prior, work, self.gradient)
        else:
            bb_alpha.energy.fill_factor(self.theta, 1.0, work, self.n)
            meanfield.scale_noise(weights, work.vectors[0], work.noise, work.W)
            energy = bb_alpha.energy.energy
            value = energy(self.theta, X, y, self.layers, self.n, ALPHA, 1.0, work, self.gradient)
        return value, self.gradient


def assert_same_objective(problem, objective, options, torch):
    noise = np.random.default_rng(1).standard_normal((problem.samples, problem.size))
    X, y = problem.X[:BATCH], problem.y[:BATCH]
    ours, gradient = problem.objective(X, y, noise)
    theta = torch.tensor(problem.theta, requires_grad=True)
    theirs = objective(theta, *map(torch.from_numpy, (X, y, noise)), problem.n, problem.hidden, *options)
    theirs.backward()
    np.testing.assert_allclose(ours, theirs.item(), rtol=1e-11)
    np.testing.assert_allclose(gradient, theta.grad.numpy(), rtol=1e-9, atol=1e-11 * abs(gradient).max())


def seconds(function):
    begun = time.perf_counter()
    function()
    return time.perf_counter() - begun


@pytest.mark.parametrize(("kind", "compiled"), VARIANTS, ids=["float32", "float32c", "float64", "float64c"])
@pytest.mark.parametrize("name", SIZES)
def bench_step(benchmark, name, kind, compiled):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'ep-bench[peers]'")
    from benchmarks import torch_networks as peers

    torch.set_num_threads(1)
    problem = StepProblem(name)
    vi_options, alpha_options = (1.0,), (1.0, ALPHA)
    objective = peers.vi_bound if problem.method == "vi" else peers.bb_alpha_energy
    options = vi_options if problem.method == "vi" else alpha_options
    with threadpool_limits(1):
        assert_same_objective(problem, objective, options, torch)
        peer = peers.Trainer(
            objective, problem.theta, problem.X, problem.y, problem.samples, problem.hidden, RATE, BATCH, *options,
            kind=getattr(torch, kind), compiled=compiled,
        )  # fmt: skip
        problem.epoch(), peer.epoch(problem.order)
        pair = (problem.epoch, lambda: peer.epoch(problem.order))
        turns = np.array([[seconds(side) for side in pair] for _ in range(problem.rounds)])
        benchmark.pedantic(problem.epoch, rounds=problem.rounds, iterations=1)
    benchmark.extra_info["our_us_per_step"], benchmark.extra_info["torch_us_per_step"] = np.round(
        1e6 * turns.min(axis=0) / problem.steps_per_epoch
    ).tolist()
    benchmark.extra_info["torch_over_ours"] = round(float(np.median(turns[:, 1] / turns[:, 0])), 2)


def bench_fit_of_bb_alpha(benchmark):
    """A whole fit: 100 units, 500 epochs, 50 samples, 455 data points with 13 inputs."""
    rng = np.random.default_rng(0)
    train = Rows(rng.standard_normal((455, 13)), rng.standard_normal(455))

    def fit():
        begun = time.process_time()
        bb_alpha.fit(train, bb_alpha.Config(), np.random.default_rng(1))
        benchmark.extra_info["processor_seconds"] = round(time.process_time() - begun, 2)

    with threadpool_limits(1):
        bb_alpha.fit(train, bb_alpha.Config(epochs=1), np.random.default_rng(1))
        benchmark.pedantic(fit, rounds=1, iterations=1)
