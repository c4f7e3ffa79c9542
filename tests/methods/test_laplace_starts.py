"""Several starts of the Laplace approximation: the best evidence is kept."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

from ep_bench.methods.laplace import STARTS, WEAK_START, Config, evidence, fit
from ep_bench.methods.laplace.evidence import FINALISTS, SCREENING, Precisions, UpdateSettings, best_of, maximise
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


def test_the_best_screened_starts_continue_and_the_highest_evidence_is_kept(problem):
    found, evidences = best_of(problem, starts_of(problem, 5), SETTINGS)
    screening = SETTINGS._replace(updates=SCREENING)
    screened = [maximise(problem, w, precisions, screening) for w, precisions in starts_of(problem, 5)]
    assert evidences == [each.approximation.log_evidence for each in screened]
    assert len(set(evidences)) > FINALISTS  # the strongest priors collapse
    left = SETTINGS._replace(updates=SETTINGS.updates - SCREENING)
    finished = {
        place: maximise(problem, each.weights, each.precisions, left)
        for place in np.argsort(evidences)[-FINALISTS:]
        for each in [screened[place].approximation]
    }
    best = max(finished, key=lambda place: finished[place].approximation.log_evidence)
    assert found.approximation.log_evidence == finished[best].approximation.log_evidence
    whole = screened[best].trace["log_evidence"] + finished[best].trace["log_evidence"][1:]
    assert found.trace["log_evidence"] == whole
    assert len({len(values) for values in found.trace.values()}) == 1


def test_a_single_start_has_all_its_updates_at_once(problem):
    start = starts_of(problem, 1)
    found, evidences = best_of(problem, start, SETTINGS)
    whole = maximise(problem, *start[0], SETTINGS)
    assert found.trace == whole.trace
    assert evidences == [whole.approximation.log_evidence]


def test_without_starts_there_is_one_fit_with_a_weak_prior(problem):
    """Its weights are the first draws of the generator."""
    state, trace = fitted(starts=0)
    w = mlp.initial_weights(problem.layers, np.random.default_rng(1))
    prior, noise = WEAK_START
    whole = maximise(problem, w, Precisions(np.full(2, prior), noise), SETTINGS._replace(updates=50))
    assert trace == whole.trace
    assert np.array_equal(state.weights, whole.approximation.weights)


def test_more_starts_do_not_lower_the_screened_evidence():
    few, many = (fitted(starts=count)[0].start_evidences for count in (2, 10))
    assert many[:2] == few
    assert len(many) == 10
    assert max(many) >= max(few)
    assert many[0] != many[len(STARTS)]  # equal precisions, other weights


def test_fixed_precisions_apply_to_all_starts():
    state, trace = fitted(starts=3, prior_variance=0.5, noise_variance=0.02)
    assert trace["prior_deviation"] == pytest.approx([math.sqrt(0.5)] * len(trace["prior_deviation"]))
    assert trace["noise_deviation"] == pytest.approx([math.sqrt(0.02)] * len(trace["noise_deviation"]))
    assert len(set(state.start_evidences)) == 3


def test_the_linear_model_has_one_start():
    train = rows()
    state, _ = fit(train, Config(hidden=(), starts=4), np.random.default_rng(0))
    assert len(state.start_evidences) == 1


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
