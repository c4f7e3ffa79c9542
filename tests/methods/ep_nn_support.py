"""Common parts of the tests of EP for networks: conversion of sites between method and twin, small problems."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from ep_bench.methods.ep_nn import schedule
from ep_bench.methods.ep_nn.approximation import NetworkApproximation, NetworkProblem
from ep_bench.methods.ep_nn.priors import GAUSSIAN
from ep_bench.methods.ep_nn.sites import GROUPS, LikelihoodSites, SweepRecord, record
from tests.twins import plain_ep_nn as plain

VALUES = json.loads((Path(__file__).parents[1] / "reference_values" / "ep_nn.json").read_text(encoding="utf-8"))
PLAN = schedule.SweepSchedule(400, 1e-4, 0.8, 0.5, 0.8, False, False, np.inf, True, False)


def tiny(**changes):
    """Return the twin's model of the tiny problem of the reference values."""
    given = VALUES["tiny"]["inputs"]
    K, w_tau, v_tau = given["K"], 1 / np.array(given["prior_w_var"]), 1 / np.array(given["prior_v_var"])
    model = {
        "X": np.array(given["X"]), "y": np.array(given["y"]), "K": K, "eta": given["eta"],
        "noise": np.log(given["noise_variance"]), "w_tau": np.tile(w_tau, (K, 1)),
        "w_nu": np.tile(w_tau * given["prior_w_mean"], (K, 1)), "v_tau": v_tau, "v_nu": v_tau * given["prior_v_mean"],
    }  # fmt: skip
    return plain.Model(**{**model, **changes})


def approximation(
    model, *, sequential=False, order=None, kind=GAUSSIAN, groups=None, scale_prior=(-9.2, 6.25), prior_eta=0.8
):
    """Return the method's approximation of a twin's model, with empty sites of the likelihood."""
    n, K = len(model.y), model.K
    groups = np.zeros(model.w_tau.shape, np.int64) if groups is None else groups
    problem = NetworkProblem(
        np.ascontiguousarray(model.X, dtype=float), np.array(model.y, dtype=float),
        np.array([model.is_linear(k) for k in range(K)]), groups,
        kind, scale_prior, model.noise_prior, (4.0, 1.0), model.eta, prior_eta, sequential, model.clip, model.probit,
    )  # fmt: skip
    ours = NetworkApproximation(
        problem, 0.0 if model.noise is None else model.noise, np.arange(n) if order is None else order
    )
    prior = ours.prior
    prior.tau[:], prior.nu[:], prior.output_tau[:], prior.output_nu[:] = (
        model.w_tau,
        model.w_nu,
        model.v_tau,
        model.v_nu,
    )
    if model.noise is None:
        ours.released.noise = True
    assert ours.refresh()
    return ours


def some_sites(model, seed=0, size=0.3):
    """Return random proper sites for the twin, some of negative precision."""
    rng, sites = np.random.default_rng(seed), plain.Sites.empty(len(model.y), model.K)
    sites.tau[:] = size * rng.uniform(-0.3, 1.0, sites.tau.shape)
    sites.nu[:], sites.b[:] = size * rng.normal(size=sites.nu.shape), size * rng.normal(size=sites.b.shape)
    for T in sites.T:
        alpha = rng.normal(size=len(T)) * size
        T[:] = np.outer(alpha, alpha) * rng.choice([1.0, 1.0, -0.1])
    if model.noise is None:
        sites.t[:], sites.r[:] = (
            0.4 + 0.1 * rng.uniform(size=sites.t.shape),
            -1.0 + 0.3 * rng.normal(size=sites.r.shape),
        )
    return sites


def given_sites():
    """Return the fixed point of the tiny problem."""
    given = {key: np.array(value) for key, value in VALUES["tiny"]["fixed_point"].items()}
    T = np.einsum("n,na,nb->nab", given["alpha_sign"], given["alpha"], given["alpha"])
    return plain.Sites(given["tau"], given["nu"], T, given["beta"], np.zeros(len(T)), np.zeros(len(T)))


def put(ours, sites):
    """Copy the twin's sites to the method's approximation."""
    theirs = ours.sites
    theirs.tau[:], theirs.nu[:], theirs.beta[:] = sites.tau, sites.nu, sites.b
    theirs.noise_precision[:], theirs.noise_location[:] = sites.t, sites.r
    for i, T in enumerate(sites.T):
        values, vectors = np.linalg.eigh(T)
        j = np.argmax(abs(values))
        alpha = np.sqrt(abs(values[j])) * vectors[:, j]
        theirs.alpha[i] = -alpha if alpha[-1] < 0 else alpha
        theirs.sign[i] = 1.0 if values[j] >= 0 else -1.0
    assert ours.refresh()


def taken(ours):
    """Return the method's sites in the form of the twin."""
    found = ours.sites
    T = np.einsum("n,na,nb->nab", found.sign, found.alpha, found.alpha)
    return plain.Sites(
        found.tau.copy(),
        found.nu.copy(),
        T,
        found.beta.copy(),
        found.noise_precision.copy(),
        found.noise_location.copy(),
    )


def close(found, expected, tolerance):
    """Assert equality within a tolerance relative to the maximum of an array."""
    expected = np.asarray(expected)
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * max(abs(expected).max(), 1e-3))


def sites_close(found, expected, tolerance):
    for name in ("tau", "nu", "T", "b", "t", "r"):
        close(getattr(found, name), getattr(expected, name), tolerance)


def posteriors_close(ours, q, tolerance):
    """Assert that the posteriors of method and twin are equal."""
    for k, (mean, S) in enumerate(q.w):
        close(ours.post.weight_mean[k], mean, tolerance)
        close(ours.post.weight_covariance[k], S, tolerance)
    close(ours.post.output_mean, q.v[0], tolerance)
    close(ours.post.output_covariance, q.v[1], tolerance)
    close(ours.post.noise, q.theta, tolerance)


def settle(ours, damping=0.5, output_damping=None, tolerance=1e-11, max_sweeps=3000):
    """Sweep to the fixed point; return the number of sweeps."""
    for turn in range(max_sweeps):
        steps = ours.sweep(damping, output_damping or damping, damping).steps
        assert ours.refresh()
        if (steps[:, 0] <= tolerance**2 * np.maximum(steps[:, 1], 1e-300)).all():
            return turn + 1
    raise AssertionError(f"no fixed point: {np.sqrt(steps[:, 0] / steps[:, 1])}")


def stub(sizes):
    """Return an approximation whose sweeps only report steps of given sizes, and the list of their arguments."""
    calls = []

    def sweep(*damping):
        calls.append(damping)
        steps = np.zeros((len(GROUPS), 2))
        steps[0] = sizes(len(calls)) ** 2, 1.0
        return SweepRecord(record().counts, steps, record().min_cavity)

    n = 3
    sites = LikelihoodSites(
        *np.zeros((2, n, 1)), np.zeros((n, 2)), np.zeros((n, 2)), np.zeros(n), np.zeros(n), np.ones(n)
    )
    post = SimpleNamespace(noise=np.zeros(2))
    one = SimpleNamespace(
        vector=np.zeros(4),
        sites=sites,
        post=post,
        sweep=sweep,
        evidence=lambda: (0.0, 0.0),
        recover=lambda *_: True,
        refresh=lambda: True,
        snapshot=lambda: (np.zeros(4), np.ones(n)),
    )
    return one, calls
