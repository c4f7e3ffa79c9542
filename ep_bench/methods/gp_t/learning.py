"""Hyperparameters of highest posterior density, and the integral over nu (Jylanki et al. 2011, section 6.2).

With ``nu: integrate`` the other hyperparameters are learned at each of 15 values nu_j, and the posterior is a mixture:

    p(f | y) = sum_j w_j q(f | y, theta_j, sigma_j, nu_j),   w_j ~ q(theta_j, sigma_j, nu_j | y).

Searches start at the value next to 4 and proceed outwards. Each starts from the result at the neighbouring value.
Values without a solution are omitted, with a warning.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial

import numpy as np
from scipy.special import logsumexp

from ep_bench.covariances import matrix
from ep_bench.covariances.map_search import learn
from ep_bench.methods.gp_t import em
from ep_bench.methods.gp_t.inference import (
    SEARCH_LIMITS,
    START_NU,
    Evidence,
    StudentTProblem,
    evidence,
    infer,
    unreliable_evidence,
)
from ep_bench.methods.gp_t.posterior import InferenceResult, divided
from ep_bench.methods.gp_t.state import PosteriorMixture, PosteriorPart
from ep_bench.types import Array, Rows

NU = np.exp(np.exp(np.linspace(np.log(np.log(1.5)), np.log(np.log(20.0)), 15)))  # the values of the paper, section 6.2
SAME = 1e-5  # largest difference (nats) between evidences of the same fixed point


def at_one_nu(problem: StudentTProblem, rng: np.random.Generator) -> tuple[PosteriorMixture, list[float]]:
    """Return the posterior at a fixed or learned nu, and the values of the search (nats)."""
    part, path = _part(problem, rng)
    return PosteriorMixture(
        problem.covariance, problem.hyper, problem.X, (part,), np.ones(1), part.log_evidence, part.converged
    ), path


def over_nu(problem: StudentTProblem, rng: np.random.Generator) -> tuple[PosteriorMixture, list[float]]:
    """Return the mixture over NU, and the values (nats) of the search of the part with the highest probability.

    Warns with scikit-learn's ConvergenceWarning if values of nu are omitted. Raises FloatingPointError if all are.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        parts, paths, failures = _parts(problem, rng)
    _warn_once(caught)
    if not parts:
        raise FloatingPointError(f"at none of {len(NU)} values of nu; {failures[-1]}")
    if failures:
        from ep_bench.errors import ConvergenceWarning

        words = f"omitted {len(failures)} of {len(NU)} values of nu: {failures[0]}"
        warnings.warn(words, ConvergenceWarning, stacklevel=3)
    prior = _log_prior_of_nu(np.array(list(parts)), problem)
    posterior = prior + [part.log_evidence + problem.hyper.log_prior(part.theta)[0] for part in parts.values()]
    probabilities = np.exp(posterior - logsumexp(posterior))
    mean = float(logsumexp(prior + [part.log_evidence for part in parts.values()]))
    converged = not failures and all(part.converged for part in parts.values())
    state = PosteriorMixture(
        problem.covariance, problem.hyper, problem.X, tuple(parts.values()), probabilities, mean, converged
    )
    return state, paths[int(np.argmax(probabilities))]


def _warn_once(caught: Sequence[warnings.WarningMessage]) -> None:
    """Issue the first warning of each category, with the number of the others."""
    for category in dict.fromkeys(one.category for one in caught):
        first, *others = [one.message for one in caught if one.category is category]
        more = f" (and {len(others)} more such warnings at other values of nu)" if others else ""
        warnings.warn(f"{first}{more}", category, stacklevel=4)


def _part(
    problem: StudentTProblem, rng: np.random.Generator, start: Array | None = None
) -> tuple[PosteriorPart, list[float]]:
    """Return the posterior with the free hyperparameters learned, and the values of the search (nats).

    ``start`` (P,) is the starting point, by default those of ``map_search.starting_points``.
    """
    hyper, config = problem.hyper, problem.config
    found: InferenceResult | None = None
    if config.optimize and hyper.free.any():
        if config.inference == "fvb":
            rows = Rows(problem.X, problem.y)
            best, found = em.learn(rows, problem.covariance, hyper, config, rng, start)
        else:
            search = Evidence(problem, SEARCH_LIMITS)
            best = learn(search, hyper, config, rng, start)
            found = search.final(best.point)
            if abs(found.log_evidence + hyper.log_prior(best.point)[0] + best.value) > SAME:
                # the search followed another fixed point: continue without its sites
                best = learn(partial(evidence, problem), hyper, config, rng, best.point)
                found = infer(problem, best.point)
        theta, iterations, converged = best.point, best.iterations, best.converged
        path = [value for _, value in best.path]
        checked = True
    else:
        theta, iterations, converged, path = hyper.start(), 0, True, []
        checked = config.evidence_check is not None
    found = found or infer(problem, theta)
    if checked and (words := unreliable_evidence(problem, theta, found)):
        advice = "set evidence_check, or a smaller fraction" if config.evidence_check is None else "set fraction: 0.5"
        warnings.warn(f"{words}; {advice}", UserWarning, stacklevel=4)
    site_blocks = divided(matrix(problem.covariance, theta[:-2], problem.X), found.precisions)
    part = PosteriorPart(
        theta, found.weights, site_blocks, found.precisions, found.log_evidence,
        iterations or found.iterations, converged, found.stage,
    )  # fmt: skip
    return part, path


def _parts(
    problem: StudentTProblem, rng: np.random.Generator
) -> tuple[dict[float, PosteriorPart], list[list[float]], list[str]]:
    """Return the parts by nu in increasing order, the values of their searches, and the messages of failures."""
    middle = int(np.argmin(np.abs(NU - START_NU)))
    found: dict[float, tuple[PosteriorPart, list[float]]] = {}
    failures = []
    for order in (range(middle, len(NU)), range(middle - 1, -1, -1)):
        start = found[NU[middle]][0].theta if NU[middle] in found else None
        for nu in NU[order]:
            try:
                found[nu] = _part(problem._replace(hyper=problem.hyper.fixing("nu", nu)), rng, start)
            except FloatingPointError as error:
                failures.append(f"nu {nu:.3g}: {error}")
            else:
                start = found[nu][0].theta
    increasing = sorted(found)
    return {nu: found[nu][0] for nu in increasing}, [found[nu][1] for nu in increasing], failures


def _log_prior_of_nu(nu: Array, problem: StudentTProblem) -> Array:
    """Return normalised log probabilities (J,) of values of nu (J,) on the grid of log log nu."""
    log_nu = np.log(nu)
    density = np.zeros(len(nu))
    if problem.config.prior != "none":
        density = np.log(log_nu) - 0.5 * ((log_nu - problem.hyper.median[-1]) / problem.hyper.std[-1]) ** 2
    return np.asarray(density - logsumexp(density))
