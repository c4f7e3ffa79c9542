"""For tests of a Student-t likelihood: the course of the plain schemes of EP, and an evidence by quadrature."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np
from scipy import stats
from scipy.special import logsumexp

from ep_bench.methods.gp_t.double_loop import double_loop
from ep_bench.methods.gp_t.sites import SiteModel, SitePosterior, empty, log_evidence
from ep_bench.methods.gp_t.sweeps import parallel, sequential
from ep_bench.types import Array


def exact_evidence(K: Array, y: Array, nu: float, scale: float) -> float:
    """Return the log evidence of two data points by the trapezoidal rule over both function values."""
    f, step = np.linspace(-9.0, 9.0, 2001, retstep=True)
    first, second = stats.t.logpdf(y[:, None], nu, f, scale)
    prior = stats.multivariate_normal(np.zeros(2), K).logpdf(np.stack(np.meshgrid(f, f, indexing="ij"), axis=-1))
    return float(logsumexp(prior + first[:, None] + second) + 2 * np.log(step))


class SchemeTrace(NamedTuple):
    """The course of a scheme, with one entry per sweep or per round of the outer loop."""

    mismatch: Array  # (T,) infinite if a cavity was improper
    log_evidence: Array  # (T,) nats, NaN if a cavity was improper
    precisions: Array  # (T, N) of the sites


def trace(
    K: Array, y: Array, nu: float, scale: float, eta: float, scheme: str, damping: float, rounds: int,
    before: int = 0,
) -> SchemeTrace:  # fmt: skip
    """Return the course of a plain scheme from empty sites over ``rounds``, of which ``before`` are parallel sweeps.

    It is shorter if the scheme cannot continue.
    """
    model = SiteModel(K, y, nu, scale, eta)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        path = list(islice(parallel(model, empty(model), damping), before))
        last = path[-1] if path else empty(model)
        path += islice(_scheme(model, last, scheme, damping), rounds - before)
        evidence = [log_evidence(now, eta) for now in path]
    return SchemeTrace(
        np.array([now.mismatch for now in path]), np.array(evidence), np.array([now.tau for now in path])
    )


def _scheme(model: SiteModel, start: SitePosterior, scheme: str, damping: float) -> Iterator[SitePosterior]:
    if scheme == "double_loop":
        return double_loop(model, start)
    return (parallel if scheme == "parallel" else sequential)(model, start, damping)
