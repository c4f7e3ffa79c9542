"""Time per step of ``dgp_ep``, compared with PyTorch and GPyTorch, and by inducing inputs, data points and layers.

A step processes 50 data points with 13 inputs, on one core; the gradient and Adam are included. PyTorch evaluates the
same energy by autograd, without an inverse of K, and first reproduces the value and the gradient. GPyTorch has its own
deep Gaussian process with 10 samples, which has another bound. All sides alternate, in double precision; each ratio is
the median over the rounds. Times are processor times, so other programs on the machine have little influence. Without
the extra ``peers``, the comparisons are skipped. The curves (``dgp_speed``) are of ``dgp_ep`` only.
"""

from __future__ import annotations

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from benchmarks import dgp_speed
from benchmarks.dgp_speed import BATCH, CHAINS, INDUCING, RATE, ROWS
from ep_bench.methods.dgp_ep.energy import DGPProblem, energy

SAMPLES = 10  # of GPyTorch, as in its documentation
STEPS, ROUNDS = 18, 9  # per round: two passes over the data points


def peers_of(hidden):
    """Return functions that apply a number of steps, by name, and the largest difference of PyTorch's energy."""
    for package in ("torch", "gpytorch"):
        pytest.importorskip(package, reason=f"{package} is not installed: pip install 'ep-bench[peers]'")
    import torch

    from benchmarks import dgp_peers

    torch.set_num_threads(1)
    structure, theta, X, y = dgp_speed.drawn(hidden)
    tied = dgp_peers.TiedEnergy(structure, ROWS, theta, RATE)
    sampled = dgp_peers.Sampled(hidden, X[: structure.inducing].copy(), ROWS, SAMPLES, RATE)
    A, b, rng = torch.from_numpy(X), torch.from_numpy(y), np.random.default_rng(1)

    def walker(side):
        def walk(steps):
            for _ in range(steps):
                rows = torch.from_numpy(rng.permutation(ROWS)[:BATCH])
                side.step(A[rows], b[rows])

        return walk

    return {"pytorch": walker(tied), "gpytorch": walker(sampled)}, apart(tied, structure, theta, A[:BATCH], b[:BATCH])


def apart(tied, structure, theta, X, y):
    """Return the largest difference of the energies and of their gradients, relative to the largest element."""
    value, gradient = energy(DGPProblem(structure, "gaussian", ROWS), theta, X.numpy(), y.numpy())
    theirs = tied.value(X, y)
    theirs.backward()
    by_value = abs(theirs.item() / value - 1.0)
    by_gradient = np.abs(tied.theta.grad.numpy() - gradient).max() / np.abs(gradient).max()
    assert max(by_value, by_gradient) < 1e-8
    return max(by_value, by_gradient)


@pytest.mark.parametrize("hidden", CHAINS[:2], ids=["none", "2"])
def bench_step_of_peers(benchmark, hidden):
    with threadpool_limits(1):
        sides, difference = peers_of(hidden)
        ours = dgp_speed.walker(hidden)
        every = {"our": ours, **sides}
        for walk in every.values():
            walk(2)
        turns = np.array([[dgp_speed.seconds(walk, STEPS) for walk in every.values()] for _ in range(ROUNDS)])
        for side, taken in zip(every, 1e3 * turns.T, strict=True):
            benchmark.extra_info[f"{side}_ms_per_step"] = f"{taken.min():.3f} minimum, {np.median(taken):.3f} median"
        for side, taken in zip(sides, turns.T[1:], strict=True):
            benchmark.extra_info[f"{side}_over_ours"] = round(float(np.median(taken / turns[:, 0])), 1)
        benchmark.extra_info["pytorch_difference"] = f"{difference:.1e}"
        benchmark.pedantic(ours, args=(STEPS,), rounds=ROUNDS, iterations=1)


@pytest.mark.parametrize("hidden", CHAINS[:2], ids=["none", "2"])
def bench_inducing_inputs(benchmark, hidden):
    with threadpool_limits(1):
        step, row = dgp_speed.by_inducing(hidden), dgp_speed.per_point(hidden)
        for M, one, two in zip(INDUCING, step, row, strict=True):
            benchmark.extra_info[f"M_{M}"] = f"{1e3 * one:.2f} ms per step, {1e6 * two:.2f} µs per data point"
        for words, chosen in (("all", slice(None)), ("the_last_two", slice(2, None))):
            M = INDUCING[chosen]
            powers = (
                f"{dgp_speed.slope(M, step[chosen]):.2f} per step, {dgp_speed.slope(M, row[chosen]):.2f} per data point"
            )
            benchmark.extra_info[f"power_of_M_over_{words}"] = powers
        benchmark.pedantic(dgp_speed.walker(hidden), args=(STEPS,), rounds=ROUNDS, iterations=1)


def bench_layers(benchmark):
    with threadpool_limits(1):
        taken = dgp_speed.by_layers()
        for hidden, value in zip(CHAINS, taken, strict=True):
            benchmark.extra_info[dgp_speed.name(hidden)] = f"{1e3 * value:.2f} ms per step"
        more = np.diff(taken)
        benchmark.extra_info["per_additional_layer"] = ", ".join(f"{1e3 * one:.2f}" for one in more) + " ms"
        benchmark.pedantic(dgp_speed.walker(CHAINS[-1]), args=(STEPS,), rounds=ROUNDS, iterations=1)
