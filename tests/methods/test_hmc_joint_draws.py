"""The whole transition by the test of joint distributions (Geweke 2004).

One simulator draws hyperparameters, weights and targets from the prior. The other alternates transitions of the sampler
given the targets with draws of the targets given weights and noise. If conditionals, orbits, acceptance and masses are
correct, both have the same distribution. Deliberately wrong steps are detected.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ep_bench.methods.hmc import hyperparameters
from ep_bench.methods.hmc import walker as walker_module
from ep_bench.methods.hmc.adaptation import pooled
from ep_bench.methods.hmc.walker import Walker
from ep_bench.models import residuals
from tests.methods.hmc_support import TOLERANCE, small_model, standard_error

CASES = [
    ("relu", "ard", "one", (3,)), ("relu", "gaussian", "one", (3, 2)), ("tanh", "gaussian", "one", (3,)),
    ("probit", "gaussian", "layer", (3,)),
]  # fmt: skip
FURTHER_CASES = [
    *CASES, ("relu", "gaussian", "one", (3,)), ("relu", "gaussian", "layer", (3,)), ("tanh", "ard", "one", (3,)),
]  # fmt: skip
SEED, CHAINS, STEP, STEPS = 5, 2, 0.5, 4  # long steps, so that many trajectories are rejected
REPLICATIONS, TURNS = 4000, 5
MANY = 8000  # draws per chain; half of them find the faults below, at 5 standard errors or more


def from_prior(model, rng, n):
    """Return draws of weights (n, P), noise (n,), prior variances (n, G) and targets (n, N) from the prior."""
    groups = model.group.max() + 1
    prior = hyperparameters.draw_variance(np.full((n, groups), model.weight_prior[0]), model.weight_prior[1], rng)
    noise = hyperparameters.draw_variance(np.full(n, model.noise_prior[0]), model.noise_prior[1], rng)
    W = np.sqrt(prior[:, model.group]) * rng.standard_normal((n, len(model.group)))
    f = residuals.outputs(model.rows.X, W, model.rows.layers, model.rows.kind)
    return W, noise, prior, f + np.sqrt(noise)[:, None] * rng.standard_normal(f.shape)


def in_turns(model, rng, n):
    """Return the same from n alternating transitions of the sampler and draws of the targets."""
    start = from_prior(model, rng, 1)
    y = start[3][0].copy()
    model = replace(model, rows=model.rows._replace(y=y))
    walker = Walker(model, rng)
    walker.w, walker.noise, walker.prior = start[0][0].copy(), float(start[1][0]), start[2][0].copy()
    walker.curvature[:] = np.linspace(1.0, 3.0, len(walker.w))
    out = []
    for _ in range(n):
        take_turn(walker)
        out.append((walker.w.copy(), walker.noise, walker.prior.copy(), y.copy()))
    return [np.array(part) for part in zip(*out, strict=True)]


def take_turn(walker):
    """Make one transition given the targets, then draw the targets, in place."""
    rows = walker.model.rows
    walker.error = walker._potential(walker.w)[1]
    walker.draw_hyperparameters()
    walker.move(STEP, STEPS)
    f = residuals.outputs(rows.X, walker.w[None], rows.layers, rows.kind)[0]
    rows.y[:] = f + np.sqrt(walker.noise) * walker.rng.standard_normal(len(f))
    if walker.single is not None:
        walker.single.y[:] = rows.y


def quantities(model, W, noise, prior, y):
    """Return functions (n, M) of the draws, with light tails."""
    logs = np.column_stack([np.log(noise), np.log(prior)])
    squashed, targets = np.tanh(W), np.tanh(y)
    squares = np.log([np.bincount(model.group, weights=w * w) for w in W])
    units = model.rows.layers[-1, 1]
    first, last = squashed[:, :units], squashed[:, -1 - units : -1]
    mixed = np.column_stack([squashed[:, -1] * targets[:, 0], logs[:, 0] * logs[:, 1], targets[:, 0] * targets[:, -1]])
    return np.column_stack([logs, logs**2, squashed, squashed**2, squares, targets, targets**2, first * last, mixed])


def distances(model, seed, draws):
    """Return the distances (M,) between the means of both simulators, in standard errors."""
    rng = np.random.default_rng(seed)
    free = quantities(model, *from_prior(model, rng, 40_000))
    bound = np.array([quantities(model, *in_turns(model, stream, draws)) for stream in rng.spawn(CHAINS)])
    errors = [standard_error(bound[:, :, m]) for m in range(free.shape[1])]
    return np.abs(bound.mean(axis=(0, 1)) - free.mean(axis=0)) / np.hypot(errors, free.std(axis=0) / np.sqrt(len(free)))


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize(("activation", "prior", "scales", "hidden"), FURTHER_CASES)
def test_the_transition_leaves_the_joint_distribution_invariant(activation, prior, scales, hidden):
    model = small_model(activation=activation, prior=prior, scales=scales, hidden=hidden)
    assert distances(model, SEED, MANY).max() < TOLERANCE


def changes(model, seed):
    """Return the mean changes (M,) of functions of independent draws from the prior by a few turns, in standard errors.

    The masses are pooled, and the gradients are in single precision if the network permits it. Replications are
    independent, so their standard errors need no effective sample size.
    """
    rng = np.random.default_rng(seed)
    before, after = from_prior(model, rng, REPLICATIONS), []
    model = replace(model, rows=model.rows._replace(y=before[3][0].copy()))
    walker = Walker(model, rng, is_single=True)
    walker.curvature = pooled(np.linspace(1.0, 3.0, len(walker.w)), model.rows.layers)
    for w, noise, prior, y in zip(*before, strict=True):
        walker.w, walker.noise, walker.prior, model.rows.y[:] = w.copy(), float(noise), prior.copy(), y
        if walker.single is not None:
            walker.single.y[:] = y
        for _ in range(TURNS):
            take_turn(walker)
        after.append((walker.w.copy(), walker.noise, walker.prior.copy(), model.rows.y.copy()))
    ends = [np.array(part) for part in zip(*after, strict=True)]
    differences = quantities(model, *ends) - quantities(model, *before)
    return np.abs(differences.mean(axis=0)) / (differences.std(axis=0) / np.sqrt(REPLICATIONS))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("activation", "prior", "scales", "hidden"),
    [
        ("relu", "gaussian", "one", (3,)),
        *CASES,
    ],
)
@pytest.mark.exhaustive
def test_pooled_masses_and_single_precision_leave_the_joint_distribution_invariant(activation, prior, scales, hidden):
    model = small_model(activation=activation, prior=prior, scales=scales, hidden=hidden, rows=8)
    assert changes(model, SEED).max() < TOLERANCE


def wrong_power(monkeypatch):
    right = hyperparameters._slice_update
    monkeypatch.setattr(hyperparameters, "_slice_update", lambda power, *rest: right(power + 1.0, *rest))


def wrong_outgoing(monkeypatch):
    """Treat each unit as if it had one outgoing weight, as in the last hidden layer; here the first has 3 units."""
    right = hyperparameters._slice_update
    monkeypatch.setattr(
        hyperparameters,
        "_slice_update",
        lambda power, incoming, *rest: right(power + (len(incoming) == 3), incoming, *rest),
    )


def wrong_noise_shape(monkeypatch):
    right = hyperparameters.draw_variance
    monkeypatch.setattr(
        hyperparameters,
        "draw_variance",
        lambda shape, rate, rng: right(shape * (1.0 if np.ndim(shape) else 0.7), rate, rng),
    )


def wrong_counts(monkeypatch):
    """Count two weights too few per group."""
    right = hyperparameters.draw_prior_variances

    def short(w, group, prior, rng):
        return right(w, group, (prior[0] - 1.0, prior[1]), rng)

    monkeypatch.setattr(hyperparameters, "draw_prior_variances", short)


def wrong_acceptance(monkeypatch):
    """Accept every trajectory that does not diverge. (A limit of 3 nats would be too small a fault to detect.)"""
    right = walker_module.leapfrog

    def lenient(*arguments):
        change, error, gradients = right(*arguments)
        return 0.0 if change < np.inf else change, error, gradients

    monkeypatch.setattr(walker_module, "leapfrog", lenient)


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("spoil", "hidden"),
    [(wrong_power, (3,)), (wrong_noise_shape, (3,)), (wrong_counts, (3,)), (wrong_acceptance, (3,)),
     (wrong_outgoing, (3, 2))],
    ids=lambda value: getattr(value, "__name__", str(value)),
)  # fmt: skip
def test_a_wrong_step_is_detected(monkeypatch, spoil, hidden):
    """The correct step passes with the same seed."""
    spoil(monkeypatch)
    assert distances(small_model(activation="relu", hidden=hidden), SEED, MANY).max() > TOLERANCE + 2


@pytest.mark.exhaustive
def test_a_wrong_acceptance_of_single_precision_is_detected(monkeypatch):
    wrong_acceptance(monkeypatch)
    assert changes(small_model(activation="relu", rows=8), SEED).max() > TOLERANCE + 2
