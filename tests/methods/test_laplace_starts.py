"""Several starts of the Laplace approximation: the best evidence is kept."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

from ep_bench.methods.laplace import STARTS, WEAK_START, Config, evidence, fit
from ep_bench.methods.laplace.evidence import PATIENCE, Precisions, UpdateSettings, best_of, maximise
from ep_bench.methods.laplace.mode_search import ModeProblem
from ep_bench.models import mlp
from tests.methods.support import wave


def rows():
    return wave(60, 2, seed=0, noise=0.1)


def fitted(**options):
    with warnings.catch_warnings(action="ignore"):
        return fit(rows(), Config(hidden=(8,), **options), np.random.default_rng(1))


@pytest.fixture
def problem():
    train = rows()
    return ModeProblem(train.X, train.y, mlp.layout(2, (8,)))


SETTINGS = UpdateSettings("full", True, False, False, 30, 200)


def starts_of(problem, count=4):
    rng = np.random.default_rng(3)
    return [
        (mlp.initial_weights(problem.layers, rng), Precisions(np.full(2, 60 * strength), 1.0))
        for strength in STARTS[:count]
    ]


def test_all_starts_are_compared_and_the_highest_evidence_is_kept(problem):
    found, evidences = best_of(problem, starts_of(problem, 5), SETTINGS)
    fits = [maximise(problem, w, precisions, SETTINGS) for w, precisions in starts_of(problem, 5)]
    assert evidences == [each.approximation.log_evidence for each in fits]
    best = max(fits, key=lambda fit: fit.approximation.log_evidence)
    assert found.approximation.log_evidence == best.approximation.log_evidence
    assert found.trace == best.trace
    assert len({len(values) for values in found.trace.values()}) == 1


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_the_update_of_the_highest_evidence_is_returned(activation):
    state, trace = fitted(activation=activation, steps=20)
    assert state.log_evidence == max(trace["log_evidence"])
    best = int(np.argmax(trace["log_evidence"]))
    assert state.noise_variance == pytest.approx(trace["noise_deviation"][best] ** 2)
    assert len(trace["log_evidence"]) <= best + 1 + PATIENCE


@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("hessian", ["full", "diag", "kron", "last"])
def test_the_evidence_is_monotone_in_updates_and_starts(activation, hessian):
    """Short searches (20 steps) leave the mode unfinished, so that the evidence of single updates falls too."""
    for name, counts in {"updates": (1, 2, 4, 8, 16), "starts": (1, 2, 4, 8, 10)}.items():
        options = {"updates": 8, "starts": 3, "activation": activation, "hessian": hessian, "steps": 20}
        evidences = [fitted(**options | {name: count})[0].log_evidence for count in counts]
        assert evidences == sorted(evidences)


def test_an_update_that_fails_does_not_discard_the_earlier_ones(problem, monkeypatch):
    """Otherwise a larger number of updates could lower the evidence."""
    start = starts_of(problem, 1)[0]
    before = maximise(problem, *start, SETTINGS._replace(updates=2))
    calls, real = [], evidence.approximate

    def fourth_fails(*arguments):
        calls.append(arguments)
        if len(calls) == 4:
            raise FloatingPointError("not finite")
        return real(*arguments)

    monkeypatch.setattr(evidence, "approximate", fourth_fails)
    found = maximise(problem, *start, SETTINGS)
    assert found.approximation.log_evidence == before.approximation.log_evidence
    assert found.unfinished == "update 3 failed: not finite"


def test_a_single_start_has_all_its_updates_at_once(problem):
    start = starts_of(problem, 1)
    found, evidences = best_of(problem, start, SETTINGS)
    whole = maximise(problem, *start[0], SETTINGS)
    assert found.trace == whole.trace
    assert evidences == [whole.approximation.log_evidence]


def test_without_starts_there_is_one_fit_with_a_weak_prior(problem):
    """Its weights are the first draws of the generator, and only a fixed point or the limit ends its updates."""
    state, trace = fitted(starts=0)
    w = mlp.initial_weights(problem.layers, np.random.default_rng(1))
    prior, noise = WEAK_START
    whole = maximise(problem, w, Precisions(np.full(2, prior), noise), SETTINGS._replace(updates=50, patience=51))
    assert trace == whole.trace
    assert np.array_equal(state.weights, whole.approximation.weights)


def test_a_start_that_fails_is_omitted(problem, monkeypatch):
    calls = []

    def sometimes(*arguments):
        calls.append(arguments)
        if len(calls) in {1, 3}:
            raise FloatingPointError("not finite")
        return maximise(*arguments)

    monkeypatch.setattr(evidence, "maximise", sometimes)
    found, evidences = best_of(problem, starts_of(problem), SETTINGS)
    assert [math.isinf(value) for value in evidences] == [True, False, True, False]
    assert math.isfinite(found.approximation.log_evidence)


def test_the_failure_of_all_starts_is_raised(problem, monkeypatch):
    def fails(*_):
        raise FloatingPointError("not finite")

    monkeypatch.setattr(evidence, "maximise", fails)
    with pytest.raises(FloatingPointError, match="not finite"):
        best_of(problem, starts_of(problem), SETTINGS)


def test_strong_priors_find_a_higher_evidence_than_the_weak_one():
    assert fitted()[0].log_evidence > fitted(starts=0)[0].log_evidence
