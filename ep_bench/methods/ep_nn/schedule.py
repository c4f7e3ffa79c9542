"""The stages of a fit (section 3.3.1) and its convergence."""

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

PRIOR_SWEEPS = 40  # of EP on the priors of input weights at their release
MORE_PRIOR_SWEEPS = 1000  # the same if they are updated only then
OUTPUTS_FROM, NOISE_FROM, WEIGHTS_FROM = 20, 40, 50  # sweeps before the release of these sites
BLOCKS = 30  # blocks of data points in a parallel sweep before the priors are released
LAST = 10  # last sweeps of a fit, without extrapolation
DIVERGED = 1.0  # relative step at the end of a fit above which the best sweep is restored
PATIENCE = 150  # sweeps without a smaller step after which the damping factor is halved
MIN_DAMPING = 0.1
EVIDENCE_SWEEPS, EVIDENCE_CHANGE = 50, 0.1  # stop of `evidence`: its range over the last sweeps, nats
MAX_LOSS = 10.0  # decrease of the log evidence, nats, at which an extrapolation step is rolled back


class SweepSchedule(NamedTuple):
    """Options of the stages of a fit."""

    sweeps: int  # over the data points, at most
    tolerance: float  # relative undamped step of every group of sites at convergence
    damping: float  # delta of input and theta sites in the first stages
    output_damping: float  # delta of output sites in the first stages
    final_damping: float  # delta of all sites in the last stage
    keep_weight_priors: bool  # keep the initial Gaussian priors of input weights
    once: bool  # update the sites of these priors only until they converge
    release: float  # relative step below which they are released, after half of the sweeps at the latest
    learn_noise: bool
    accelerate: bool
    evidence: bool = False  # also end the last stage if the log evidence is stable
    final_output: float = 1.0  # upper limit of delta of output sites in the last stage
    prior: float = 1.0  # upper limit of delta of prior sites of input weights and of scales


class ConvergenceHistory:
    """Trace and convergence of a fit, per sweep."""

    def __init__(self) -> None:
        self.trace: dict[str, list[float]] = defaultdict(list)
        self.sizes: list[float] = []  # largest relative step of a group
        self.unsettled = False  # the priors of weights, updated once, did not converge
        self.restored: int | None = None  # sweep to which the fit returned
        self.evidence_moved: float | None = None  # nats in the last sweeps, if a stable evidence is a criterion
        self.criterion = ""  # that ended the last stage: step or evidence; empty if neither was met

    def add(self, found: SweepRecord, approximation: NetworkApproximation, part: float) -> float:
        """Add a sweep with damping factor ``part``; return the largest relative step of a group."""
        with np.errstate(invalid="ignore"):  # infinite steps of infinite sites, if the fit diverges
            values = np.sqrt(found.steps[:, 0] / np.maximum(found.steps[:, 1], 1e-300))
        log_evidence, log_z = approximation.evidence()
        counts = found.counts
        self.trace["sum_log_z"].append(log_z)
        self.trace["log_evidence"].append(log_evidence)
        for name, value, cavity in zip(GROUPS, values, found.min_cavity, strict=True):
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

    def evidence_range(self, first: int) -> float:
        """Return the range of the log evidence over the last sweeps, nats; inf if fewer followed sweep ``first``."""
        values = np.array(self.trace["log_evidence"][first:][-EVIDENCE_SWEEPS - 1 :])
        enough = len(values) > EVIDENCE_SWEEPS and bool(np.isfinite(values).all())
        return float(np.ptp(values)) if enough else np.inf

    def reason(self) -> str:
        """Return the reason why the fit has not converged."""
        skipped = int(self.trace["skipped"][-1])
        words = f"a relative step of {self.sizes[-1]:.2g} after {len(self.sizes)} sweeps"
        words += f", {skipped} term{'s' * (skipped > 1)} without a proper cavity" if skipped else ""
        if self.evidence_moved is not None and np.isfinite(self.evidence_moved):
            words += f", a log evidence that moved by {self.evidence_moved:.2g} nats in {EVIDENCE_SWEEPS} sweeps"
        words += ", priors of weights that did not converge" if self.unsettled else ""
        words += f"; returned to sweep {self.restored}" if self.restored is not None else ""
        return f"{words}; more sweeps, another damping or restarts may help"


def run(approximation: NetworkApproximation, schedule: SweepSchedule) -> tuple[ConvergenceHistory, bool]:
    """Fit; return the history and whether the fit converged."""
    history = ConvergenceHistory()
    first = min(WEIGHTS_FROM, schedule.sweeps)
    for number in range(first):
        if number == OUTPUTS_FROM:
            approximation.released.outputs = True
        if number == NOISE_FROM and schedule.learn_noise:
            approximation.release_noise(float(approximation.post.noise[0]), 2.0 / len(approximation.problem.y))
        blocks = 1 if approximation.problem.sequential else BLOCKS
        before = approximation.snapshot()
        found = approximation.sweep(schedule.damping, schedule.output_damping, 0.0, blocks)
        approximation.recover(before, found)
        history.add(found, approximation, schedule.damping)
    if schedule.sweeps > first and not schedule.keep_weight_priors:
        if schedule.release < np.inf:
            earlier = schedule._replace(sweeps=schedule.sweeps // 2, tolerance=schedule.release, evidence=False)
            converge(approximation, earlier, history)
        sweeps = MORE_PRIOR_SWEEPS if schedule.once else PRIOR_SWEEPS
        settled = settle_weight_priors(approximation, schedule.tolerance, sweeps, schedule.prior)
        history.unsettled = schedule.once and not settled
        if schedule.once:
            make_proper(approximation)
        approximation.released.weights, approximation.released.settled = True, schedule.once
    return history, converge(approximation, schedule, history) and not history.unsettled


def settle_weight_priors(
    approximation: NetworkApproximation, tolerance: float, sweeps: int = PRIOR_SWEEPS, damping: float = 1.0
) -> bool:
    """Run EP on the priors of input weights with fixed sites of the likelihood; return whether it converged."""
    before, settled = approximation.snapshot(), False
    for _ in range(sweeps):
        found = record()
        approximation.sweep_weight_priors(damping, found)
        settled = bool((found.steps[:, 0] <= tolerance**2 * found.steps[:, 1]).all())
        if settled:
            break
    return approximation.recover(before, found) and settled and not found.counts[SKIPPED_PRIORS]


def make_proper(approximation: NetworkApproximation) -> None:
    """Replace prior sites of weights without positive precision by Gaussians of the expected scale."""
    prior, (precisions, locations) = approximation.prior, approximation.post.scales
    improper = prior.tau <= 0.0
    prior.tau[improper] = np.exp(-locations / precisions)[approximation.problem.groups[improper]]
    prior.nu[improper] = 0.0
    approximation.refresh()


def converge(approximation: NetworkApproximation, schedule: SweepSchedule, history: ConvergenceHistory) -> bool:
    """Sweep until the relative undamped step of every group is below the tolerance and no site was skipped.

    With ``schedule.evidence``, a log evidence that is stable to 0.1 nats over 50 sweeps is sufficient instead of the
    step. Returns whether this was reached. If the minimum step has not decreased for ``PATIENCE`` sweeps, the damping
    factor is halved. Raises FloatingPointError if no proper posterior is left and none can be restored.
    """
    return LastStage(approximation, schedule, history).run()


class LastStage:
    """Sweeps over all sites, with extrapolation steps that are rolled back if they diverge."""

    def __init__(
        self, approximation: NetworkApproximation, schedule: SweepSchedule, history: ConvergenceHistory
    ) -> None:
        self.approximation, self.schedule, self.history = approximation, schedule, history
        self.accelerator = Accelerator() if schedule.accelerate else None
        self.begun = len(history.sizes)
        self.part, self.first, self.best = schedule.final_damping, len(history.sizes), BestSweep(approximation)
        self.extrapolation: Extrapolation | None = None  # the last one
        history.restored, history.criterion = None, ""  # set by an earlier stage

    def run(self) -> bool:
        """Return whether the sweeps converged."""
        while len(self.history.sizes) < self.schedule.sweeps:
            try:
                if self._settled():
                    return True
            except FloatingPointError:
                if self._rolled_back():
                    continue
                if self.best.sweep is None:
                    raise
                self.history.restored = self.best.restore(self.approximation)
                return False
            self._damp_cycles()
        if len(self.history.sizes) > self.begun:
            self._restore_best()
        return False

    def _settled(self) -> bool:
        """Sweep once, and extrapolate if possible; return whether the fit has converged."""
        approximation, history = self.approximation, self.history
        before, history.restored = approximation.snapshot(), None
        output, prior = min(self.part, self.schedule.final_output), min(self.part, self.schedule.prior)
        found = approximation.sweep(self.part, output, prior)
        size = history.add(found, approximation, self.part)
        if self.extrapolation is not None and self.extrapolation.has_diverged(history) and self._rolled_back():
            return False
        criterion = self._criterion(size)
        if criterion and np.isfinite(history.trace["log_evidence"][-1]) and approximation.recover(before, found):
            history.criterion = criterion
            return True
        self.best.consider(approximation, size, history)
        ends = len(history.sizes) > self.schedule.sweeps - LAST
        here = Extrapolation(approximation.snapshot(), history.trace["log_evidence"][-1], len(history.sizes))
        if self.accelerator is not None and not ends and accelerate(approximation, self.accelerator, before, size):
            self.extrapolation = here
        else:
            approximation.recover(before, found)
            history.trace["shortened"][-1] = float(found.counts[SHORTENED])
        return False

    def _criterion(self, size: float) -> str:
        """Return the criterion that the last sweep, with step ``size``, has met; empty if none."""
        if self.history.trace["skipped"][-1] > 0.0:
            return ""
        if size < self.schedule.tolerance:
            return "step"
        if not self.schedule.evidence:
            return ""
        self.history.evidence_moved = self.history.evidence_range(self.begun)
        return "evidence" if self.history.evidence_moved <= EVIDENCE_CHANGE else ""

    def _rolled_back(self) -> bool:
        """Return to the start of the last extrapolation; return False if there is none or its posterior is improper."""
        last, self.extrapolation = self.extrapolation, None
        if last is None or self.accelerator is None:
            return False
        here = self.approximation.snapshot()
        if not self.approximation.restore(last.start):
            self.approximation.restore(here)
            return False
        self.accelerator.restart()
        self.history.restored = last.sweep
        return True

    def _damp_cycles(self) -> None:
        """Halve the damping factor if the steps have stopped decreasing."""
        sizes, first = self.history.sizes, self.first
        if len(sizes) - first >= 2 * PATIENCE and min(sizes[-PATIENCE:]) > min(sizes[first:-PATIENCE]):
            self.part, self.first = min(self.part, max(0.5 * self.part, MIN_DAMPING)), len(sizes)
            if self.accelerator is not None:
                self.accelerator.forget()

    def _restore_best(self) -> None:
        """Restore the best sweep if the last one diverged; without a best sweep keep the last one if it is proper."""
        history, best = self.history, self.best
        diverged = not history.sizes[-1] <= DIVERGED
        if best.sweep is None and (not diverged or self.approximation.refresh()):
            return
        if diverged or not np.isfinite(history.trace["log_evidence"][-1]):
            history.restored = best.restore(self.approximation)


class Extrapolation(NamedTuple):
    """Start of an extrapolation step."""

    start: Point
    log_evidence: float  # nats
    sweep: int

    def has_diverged(self, history: ConvergenceHistory) -> bool:
        """Return whether the log evidence has fallen by more than ``MAX_LOSS`` since."""
        return (
            bool(np.isfinite(self.log_evidence))
            and not history.trace["log_evidence"][-1] >= self.log_evidence - MAX_LOSS
        )


class BestSweep:
    """The sweep of minimum step so far with a finite evidence."""

    def __init__(self, approximation: NetworkApproximation) -> None:
        self.size = np.inf
        self.sweep: int | None = None
        self.point = approximation.snapshot()

    def consider(self, approximation: NetworkApproximation, size: float, history: ConvergenceHistory) -> None:
        """Keep the sites of the last sweep if its step ``size`` is smaller."""
        if size < self.size and np.isfinite(history.trace["log_evidence"][-1]):
            self.size, self.sweep, self.point = size, len(history.sizes), approximation.snapshot()

    def restore(self, approximation: NetworkApproximation) -> int:
        """Restore the best sweep and return its number. Raises FloatingPointError if it has no proper posterior."""
        if self.sweep is None or not approximation.restore(self.point):
            raise FloatingPointError(f"no sweep of the last stage has a proper posterior{ADVICE}")
        return self.sweep


def align_changed_signs(approximation: NetworkApproximation, before: Point) -> Array:
    """Return the start of a step, with sites of v whose sign has changed replaced by those at its end."""
    start, signs = before[0].copy(), before[1]
    changed, alpha = approximation.sites.sign != signs, approximation.sites.alpha
    place = 2 * approximation.sites.tau.size
    start[place : place + alpha.size].reshape(alpha.shape)[changed] = alpha[changed]
    return start


def accelerate(approximation: NetworkApproximation, accelerator: Accelerator, before: Point, size: float) -> bool:
    """Move to the proposal of the accelerator and recompute q; if q is not proper, undo this and return False."""
    vector, here = approximation.vector, approximation.vector.copy()
    start = align_changed_signs(approximation, before)
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
    """Return weights (P,) that scale every array of sites to norm 1, and are 0 for the prior sites of v."""
    weights = np.empty_like(approximation.vector)
    place = 0
    for array in (*approximation.sites[:6], *approximation.prior[:4]):
        with np.errstate(over="ignore"):  # weight 0 if the fit diverges
            length = np.sqrt((array**2).sum())
        weights[place : place + array.size] = 1.0 / max(length, 1e-6 * np.sqrt(array.size))
        place += array.size
    weights[place:] = 0.0
    return weights
