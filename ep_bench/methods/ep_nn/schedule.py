"""The stages of a fit (section 3.3.1) and how it converges."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

import numpy as np

from ep_bench.methods.ep_nn.acceleration import Accelerator
from ep_bench.methods.ep_nn.approximation import ADVICE, NetworkApproximation, Point
from ep_bench.methods.ep_nn.sites import (
    CLIPPED,
    GROUPS,
    NEGATIVE,
    NEGATIVE_PRIORS,
    SHORTENED,
    SKIPPED_PRIORS,
    SKIPPED_ROWS,
    SKIPPED_SITES,
    SweepRecord,
    record,
)  # fmt: skip
from ep_bench.types import Array

PRIOR_SWEEPS = 40  # of EP on the input weights' priors when they are released
MORE_PRIOR_SWEEPS = 1000  # where they come only then
OUTPUTS_FROM, NOISE_FROM, WEIGHTS_FROM = 20, 40, 50  # sweeps before these sites are released
BLOCKS = 30  # of rows, of a parallel sweep before the priors are released
LAST = 10  # sweeps of a fit that settle what jumps have stirred
ASTRAY = 1.0  # a relative last step with which a fit returns to where it was least
PATIENCE = 150  # sweeps without a smaller step after which steps are halved
SHORTEST = 0.1
LOSS = 10.0  # nats of log evidence below the start of the last jump at which it is taken back


class SweepSchedule(NamedTuple):
    """How a fit goes."""

    sweeps: int  # over the rows, at most
    tolerance: float  # relative undamped step of every group of sites
    damping: float
    output_damping: float
    final_damping: float  # of all sites in the last stage
    keep_weight_priors: bool  # leave the input weights' Gaussian priors as they are
    once: bool  # update their sites until they settle, and no more
    release: float  # relative step below which they are released, after half of the sweeps at the latest
    learn_noise: bool
    accelerate: bool


class ConvergenceHistory:
    """What a fit told, sweep by sweep."""

    def __init__(self) -> None:
        """Start empty."""
        self.trace: dict[str, list[float]] = defaultdict(list)
        self.sizes: list[float] = []
        self.unsettled = False  # weights' priors that were updated once ended before they settled
        self.back: int | None = None  # sweep to whose end the fit went back

    def add(self, found: SweepRecord, approximation: NetworkApproximation, part: float) -> float:
        """Add a sweep; return the largest relative step of a group."""
        with np.errstate(invalid="ignore"):  # infinite steps of infinite sites: astray
            values = np.sqrt(found.steps[:, 0] / np.maximum(found.steps[:, 1], 1e-300))
        log_evidence, log_z = approximation.evidence()
        counts = found.counts
        self.trace["sum_log_z"].append(log_z)
        self.trace["log_evidence"].append(log_evidence)
        for name, value, cavity in zip(GROUPS, values, found.least, strict=True):
            self.trace[f"step_{name}"].append(float(value))
            self.trace[f"least_cavity_{name}"].append(float(cavity))
        sites = approximation.sites
        counted = {
            "skipped": counts[SKIPPED_ROWS] + counts[SKIPPED_SITES] + counts[SKIPPED_PRIORS],
            "shortened": counts[SHORTENED], "negative": counts[NEGATIVE] + counts[NEGATIVE_PRIORS],
            "clipped": counts[CLIPPED], "negative_output": (sites.sign < 0.0).sum(),
            "negative_noise": (sites.noise_precision < 0.0).sum(), "damping": part,
            "noise_deviation": float(np.exp(0.5 * approximation.post.noise[0])),
        }  # fmt: skip
        for name, value in counted.items():
            self.trace[name].append(float(value))
        largest = float(values.max())
        self.sizes.append(np.inf if np.isnan(largest) else largest)
        return self.sizes[-1]

    def reason(self) -> str:
        """Return why the fit has not converged, in words."""
        skipped = int(self.trace["skipped"][-1])
        words = f"a relative step of {self.sizes[-1]:.2g} after {len(self.sizes)} sweeps"
        words += f", {skipped} term{'s' * (skipped > 1)} without a proper cavity" if skipped else ""
        words += ", weights' priors that did not settle" if self.unsettled else ""
        return words + (f"; went back to sweep {self.back}" if self.back is not None else "")


def run(approximation: NetworkApproximation, schedule: SweepSchedule) -> tuple[ConvergenceHistory, bool]:
    """Fit; return the path and whether it converged."""
    path = ConvergenceHistory()
    first = min(WEIGHTS_FROM, schedule.sweeps)
    for number in range(first):
        if number == OUTPUTS_FROM:
            approximation.released.outputs = True
        if number == NOISE_FROM and schedule.learn_noise:
            approximation.release_noise(float(approximation.post.noise[0]), 2.0 / len(approximation.problem.y))
        blocks = 1 if approximation.problem.sequential else BLOCKS
        before = approximation.copied()
        found = approximation.sweep(schedule.damping, schedule.output_damping, 0.0, blocks)
        approximation.recover(before, found)
        path.add(found, approximation, schedule.damping)
    if schedule.sweeps > first and not schedule.keep_weight_priors:
        if schedule.release < np.inf:
            converge(approximation, schedule._replace(sweeps=schedule.sweeps // 2, tolerance=schedule.release), path)
        settled = settle_weight_priors(
            approximation, schedule.tolerance, MORE_PRIOR_SWEEPS if schedule.once else PRIOR_SWEEPS
        )
        path.unsettled = schedule.once and not settled
        if schedule.once:
            make_proper(approximation)
        approximation.released.weights, approximation.released.settled = True, schedule.once
    return path, converge(approximation, schedule, path) and not path.unsettled


def settle_weight_priors(approximation: NetworkApproximation, tolerance: float, sweeps: int = PRIOR_SWEEPS) -> bool:
    """Run EP on the input weights' priors alone, the likelihood's sites given; return whether it settled."""
    before, settled = approximation.copied(), False
    for _ in range(sweeps):
        found = record()
        approximation.sweep_weight_priors(1.0, found)
        settled = bool((found.steps[:, 0] <= tolerance**2 * found.steps[:, 1]).all())
        if settled:
            break
    return approximation.recover(before, found) and settled and not found.counts[SKIPPED_PRIORS]


def make_proper(approximation: NetworkApproximation) -> None:
    """Turn weights' prior sites of no positive precision, which cannot stand alone, into Gaussians of their scale."""
    prior, (precisions, locations) = approximation.prior, approximation.post.scales
    improper = prior.tau <= 0.0
    prior.tau[improper] = np.exp(-locations / precisions)[approximation.problem.groups[improper]]
    prior.nu[improper] = 0.0
    approximation.refresh()


def converge(approximation: NetworkApproximation, schedule: SweepSchedule, path: ConvergenceHistory) -> bool:
    """Sweep until no group of sites has a relative undamped step above the tolerance, and none was skipped.

    Returns whether that came. Where the least step has not fallen for ``PATIENCE`` sweeps, sweeps go round: they are
    damped more from there on. Raises FloatingPointError where no proper posterior is left to go back to.
    """
    return LastStage(approximation, schedule, path).run()


class LastStage:
    """Sweeps over all sites, with jumps in between that are taken back where they lead astray."""

    def __init__(self, approximation: NetworkApproximation, schedule: SweepSchedule, path: ConvergenceHistory) -> None:
        """Begin at the sites as they are."""
        self.approximation, self.schedule, self.path = approximation, schedule, path
        self.accelerator = Accelerator() if schedule.accelerate else None
        self.part, self.first, self.best = schedule.final_damping, len(path.sizes), BestSweep(approximation)
        self.jump: Jump | None = None  # the last one
        path.back = None  # an earlier stage may have gone back

    def run(self) -> bool:
        """Return whether the sweeps converged."""
        begun = len(self.path.sizes)
        while len(self.path.sizes) < self.schedule.sweeps:
            try:
                if self._settled():
                    return True
            except FloatingPointError:
                if self._rolled_back():
                    continue
                if self.best.sweep is None:
                    raise
                self.path.back = self.best.restore(self.approximation)
                return False
            self._damp_where_sweeps_go_round()
        if len(self.path.sizes) > begun:
            self._restore_best()
        return False

    def _settled(self) -> bool:
        """Sweep once, and jump where that helps; return whether the fit has converged."""
        approximation, path = self.approximation, self.path
        before, path.back = approximation.copied(), None
        found = approximation.sweep(self.part, self.part, self.part)
        size = path.add(found, approximation, self.part)
        if self.jump is not None and self.jump.has_diverged(path) and self._rolled_back():
            return False
        close = size < self.schedule.tolerance and path.trace["skipped"][-1] == 0.0
        if close and np.isfinite(path.trace["log_evidence"][-1]) and approximation.recover(before, found):
            return True
        self.best.consider(approximation, size, path)
        ends = len(path.sizes) > self.schedule.sweeps - LAST
        here = Jump(approximation.copied(), path.trace["log_evidence"][-1], len(path.sizes))
        if self.accelerator is not None and not ends and accelerate(approximation, self.accelerator, before, size):
            self.jump = here
        else:
            approximation.recover(before, found)
            path.trace["shortened"][-1] = float(found.counts[SHORTENED])
        return False

    def _rolled_back(self) -> bool:
        """Go back to where the last jump began, if there was one and a posterior is there; return whether so."""
        jump, self.jump = self.jump, None
        if jump is None or self.accelerator is None:
            return False
        here = self.approximation.copied()
        if not self.approximation.restored(jump.start):
            self.approximation.restored(here)
            return False
        self.accelerator.restart()
        self.path.back = jump.sweep
        return True

    def _damp_where_sweeps_go_round(self) -> None:
        sizes, first = self.path.sizes, self.first
        if len(sizes) - first >= 2 * PATIENCE and min(sizes[-PATIENCE:]) > min(sizes[first:-PATIENCE]):
            self.part, self.first = min(self.part, max(0.5 * self.part, SHORTEST)), len(sizes)
            if self.accelerator is not None:
                self.accelerator.forget()

    def _restore_best(self) -> None:
        """Go back to the best sweep from one that is astray; stay where there was none, but a posterior is there."""
        path, best = self.path, self.best
        astray = not path.sizes[-1] <= ASTRAY
        if best.sweep is None and (not astray or self.approximation.refresh()):
            return
        if astray or not np.isfinite(path.trace["log_evidence"][-1]):
            path.back = best.restore(self.approximation)


class Jump(NamedTuple):
    """Where a jump began."""

    start: Point
    log_evidence: float
    sweep: int

    def has_diverged(self, path: ConvergenceHistory) -> bool:
        """Return whether the sweeps since then have lost evidence that the jump had."""
        return bool(np.isfinite(self.log_evidence)) and not path.trace["log_evidence"][-1] >= self.log_evidence - LOSS


class BestSweep:
    """The point of the least step so far that has an evidence."""

    def __init__(self, approximation: NetworkApproximation) -> None:
        """Begin without any."""
        self.size = np.inf
        self.sweep: int | None = None
        self.point = approximation.copied()

    def consider(self, approximation: NetworkApproximation, size: float, path: ConvergenceHistory) -> None:
        """Keep the point that the last sweep of ``path`` ended at if it is better."""
        if size < self.size and np.isfinite(path.trace["log_evidence"][-1]):
            self.size, self.sweep, self.point = size, len(path.sizes), approximation.copied()

    def restore(self, approximation: NetworkApproximation) -> int:
        """Go back there; return after which sweep it was. Raises FloatingPointError if there is no posterior."""
        if self.sweep is None or not approximation.restored(self.point):
            raise FloatingPointError(f"no sweep of the last stage left a proper posterior to go back to{ADVICE}")
        return self.sweep


def forget_turned_signs(approximation: NetworkApproximation, before: Point) -> Array:
    """Return the start of a step with alphas whose sign has turned as at its end: they have no direction to follow."""
    start, signs = before[0].copy(), before[1]
    turned, alpha = approximation.sites.sign != signs, approximation.sites.alpha
    place = 2 * approximation.sites.tau.size
    start[place : place + alpha.size].reshape(alpha.shape)[turned] = alpha[turned]
    return start


def accelerate(approximation: NetworkApproximation, accelerator: Accelerator, before: Point, size: float) -> bool:
    """Go where the accelerator says, q with it; stay where the sweep ended and return False if there is no q."""
    vector, here = approximation.vector, approximation.vector.copy()
    start = forget_turned_signs(approximation, before)
    proposed = accelerator.propose(start, here - start, group_weights(approximation), size)
    if np.allclose(proposed, here, rtol=1e-12, atol=0.0):
        return False
    vector[:] = proposed
    if approximation.problem.clip:
        np.maximum(approximation.sites.tau, 0.0, out=approximation.sites.tau)
    alpha = approximation.sites.alpha
    alpha[alpha[:, -1] < 0.0] *= -1.0
    if np.isfinite(vector).all() and approximation.refresh():
        return True
    vector[:] = here
    accelerator.restart()
    return False


def group_weights(approximation: NetworkApproximation) -> Array:
    """Return weights that give every array of sites the same length, 1; 0 for the priors' of v, which follow others."""
    weights = np.empty_like(approximation.vector)
    place = 0
    for array in (*approximation.sites[:6], *approximation.prior[:4]):
        with np.errstate(over="ignore"):  # of a fit gone astray: no weight
            length = np.sqrt((array**2).sum())
        weights[place : place + array.size] = 1.0 / max(length, 1e-6 * np.sqrt(array.size))
        place += array.size
    weights[place:] = 0.0
    return weights
