"""Figures of the studies that are no grid of cells, from the arrays that they left."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from ep_bench.plotting import function_panels
from ep_bench.plotting.page import Picture, Section, Table
from ep_bench.report import conflicts, distance_table, fixed_hyperparameters
from ep_bench.report.additive_effects import additive_effects
from ep_bench.report.alpha_linear import alpha_linear
from ep_bench.report.ard_overfitting import ard_overfitting
from ep_bench.report.calibration import calibration
from ep_bench.report.conflict_evidence import evidence
from ep_bench.report.conflict_posteriors import posteriors
from ep_bench.report.discontinuity import discontinuity
from ep_bench.report.mountain_car import mountain_car
from ep_bench.report.network_convergence import network_convergence
from ep_bench.report.network_restarts import network_restarts
from ep_bench.results import store

# What the columns of an experiment's summary are.
CAPTIONS = {
    "additive_effects": "f along each input, the others being 0, within [-pi, pi] after the first draw, and at "
    "held-out inputs (all), in the unit of y: root mean squared error against the true function, its median over the "
    "draws and on how many of them it is the lowest, correlation with it, range of the mean and mean posterior "
    "deviation of f; to how many units an input has a weight whose 95 percent interval leaves 0 out, and its prior "
    "scale exp(phi / 2); draws, those whose fit failed or converged, the noise's deviation, log evidence (nats), "
    "seconds of a fit.",
    "ard_overfitting": "Of draws of the data: whose fit failed or converged, and on which the weaker input is pruned, "
    "below 0.01 of the variation of the mean of f, or both inputs are used, above 0.1, with the median of that share; "
    "on the first draw the share, each input's effect (unit of y), weight variances, to how many units an input has a "
    "weight whose 95 percent interval leaves 0 out, and the noise's deviation; seconds of a fit.",
    "calibration": "Ranks against the uniform law: Pearson's chi-square over as many bars as ranks, with its p-value; "
    "shift, the mean rank's distance from the middle, and spread, the mean squared distance's from its expectation, "
    "both in standard errors (an exact sampler's lie within 2 in 19 of 20 cases). First and second output are the "
    "network's at two further inputs.",
    "conflict_convergence": "How each scheme ended: sweeps, whether every mismatch of moments is below 1e-9, the "
    "largest of them, log Z (nats), and after how many sweeps a cavity was improper, so that log Z was not defined.",
    "conflict_evidence": "Differences of the log evidence from that of annealed importance sampling over the grid "
    "(nats), absolute and signed; points of the grid, at how many the robust scheme finds no solution, and at how many "
    "sequential sweeps, damped by 0.8, do not converge; hyperparameters of the highest evidence; the largest standard "
    "error of annealed importance sampling (nats).",
    "conflict_posteriors": "Mean, deviation and 1-Wasserstein distance from the first method of f(2), in the unit of "
    "y; hyperparameters (of chains, medians of draws), log evidence (nats) and seconds of the fit.",
    "conflict_tilted": "The tilted distribution's modes, moments and log normaliser (nats), and precisions of the two "
    "sites: after the first sweep of undamped sequential updates, the two last (site 1, 2), after the second (again), "
    "the precision of the first site's cavity then, at or below 0 where it is improper, and after parallel updates "
    "instead (together).",
    "discontinuity": "The mean of f about the discontinuity, on the first draw and as medians over all: root mean "
    "squared error (unit of y), total variation beyond that of a monotone function, overshoot, distance over which it "
    "rises from a tenth to nine tenths of the jump, and how far from the discontinuity it is last off the truth by "
    "more than the noise's deviation (units of x); draws, those whose fit failed or converged, and on which no method "
    "fluctuates less; the noise's deviation, log evidence (nats), seconds of a fit.",
    "fixed_predictions": "Against the first method, rows left out, standardised units: root mean squared difference of "
    "the means of f, mean ratio of its deviations, root mean squared difference of log densities, and the mean log "
    "density (nats); seconds of fits and predictions; folds that failed; the largest R-hat of a sampler's "
    "predictions, and that of the chains that gave the hyperparameters.",
    "fixed_times": "Mean seconds of an inference over the configurations at which every method finds a solution, their "
    "number, at how many a method finds none, and R-hat of the chains that gave the posterior means.",
    "mountain_car": "Against the true values on held-out states, in steps: root mean squared error of the predictive "
    "mean and, of noisy evaluations, mean log density (nats), over all of them, near the cliff and elsewhere, with "
    "standard errors over the draws of rows; on how many draws a method has the lowest error; the share of states near "
    "the cliff, the mean predictive deviation, seconds of a fit.",
    "network_convergence": "After how many sweeps every relative step of the sites is below 0.0001, with processor "
    "seconds, mean log density (nats, original units) and squared error (variances of the target) on the test rows of "
    "a fit that ends there; the same at the last sweep, or draw of a chain; the highest log density on the way and "
    "when; the relative step in the last sweep, and the least of all.",
    "network_restarts": "Of random starts on a standard split: how many converged, failed, or have a score or log "
    "evidence that is not finite; sweeps, the largest relative step at the end; root mean squared error and mean log "
    "density on the test rows (original units) and log evidence (nats): least, median and most of all that did not "
    "fail; log density at the highest log evidence; seconds of a fit, while other programs ran.",
    "cubic_toy": "Against the true function, in the unit of y: root mean squared error of the predictive mean inside "
    "the range of the data and outside of it; the share of the grid where the true function lies within 3 predictive "
    "deviations of the mean; seconds of the fit.",
}
Arrays = Mapping[str, Any]
ARRAYS, SUMMARY = "arrays.npz", "summary.csv"


def section(study: store.StudyResults) -> Section:
    """Return an experiment's figures (none without arrays or for an unknown experiment) and its tables."""
    entry = study.lock["experiment"]
    name = str(entry.get("name", "")) if isinstance(entry, Mapping) else str(entry)
    path = study.folder / ARRAYS
    pictures = []
    if name in DRAWERS and path.exists():
        with np.load(path, allow_pickle=False) as arrays:
            drawn = DRAWERS[name](dict(arrays), study)
            pictures = [drawn] if isinstance(drawn, Picture) else drawn
    anchor = "experiment-" + re.sub(r"\W+", "-", study.name)
    return Section(anchor, f"{study.name}: {name.replace('_', ' ')}", (), pictures, list(_tables(name, study)))


def _tables(name: str, study: store.StudyResults) -> Iterator[Table]:
    """Yield the distances from the reference, where there is one, and the summary without them."""
    path = study.folder / SUMMARY
    if not path.exists():
        return
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        rows, head = list(reader), list(reader.fieldnames or ())
    if name == "fixed_times" and (relative := fixed_hyperparameters.relative(path)) is not None:
        yield Table(*relative)
    truth = _reference(study)
    if truth is not None and distance_table.DISTANCE in head:
        yield Table(*distance_table.table(rows, truth, _judgement(study)))
        head = [column for column in head if column not in distance_table.COLUMNS]
    if rows:
        yield Table(head, [[_short(row[column]) for column in head] for row in rows], CAPTIONS.get(name, "Summary"))


def _reference(study: store.StudyResults) -> str | None:
    """Return the label of the method that stands for the truth."""
    found = study.lock.get("options", {}).get("reference")
    return None if found is None else str(found)


def _judgement(study: store.StudyResults) -> dict[str, float]:
    """Return what the reference's own diagnostics are by name, where it has any."""
    path = study.folder / ARRAYS
    if not path.exists():
        return {}
    with np.load(path, allow_pickle=False) as arrays:
        if "judged" not in arrays:
            return {}
        return dict(zip(arrays["judged"].tolist(), arrays["judgement"].tolist(), strict=True))


def _short(text: str) -> str:
    try:
        return f"{float(text):.5g}" if re.search(r"[.e]", text) else text
    except ValueError:
        return text


def cubic_toy(arrays: Arrays, study: store.StudyResults) -> Picture:
    """Return one panel a method: mean and 3 standard deviations, data and true function; a reference comes first.

    Arrays: grid, truth (G,); x, y (n,); labels (M,); mean_i, std_i (G,) of method i.
    """
    grid, truth, x, y = (np.asarray(arrays[name]) for name in ("grid", "truth", "x", "y"))
    none = np.empty(0)
    labels, first = [str(label) for label in arrays["labels"]], _reference(study)
    titles = [f"{label} (reference)" if label == first else label for label in labels]
    panels = [
        function_panels.FunctionPanel(titles[i], grid, arrays[f"mean_{i}"], arrays[f"std_{i}"], truth, x, y, none, none)
        for i in sorted(range(len(labels)), key=lambda i: labels[i] != first)
    ]
    entries = study.lock.get("options", {}).get("methods", ())
    figures = "figure 1 of Hernández-Lobato and Adams (2015)"
    if any(entry.get("use") == "bb_alpha" for entry in entries):
        figures += " and the toy figure of black-box alpha (Hernández-Lobato et al. 2016, supplement, figure 5)"
    return function_panels.draw(
        panels, f"cubic-toy-{study.name}", f"Predictions on the cubic toy data, as in {figures}: "
    )


DRAWERS: dict[str, Callable[[Arrays, store.StudyResults], Picture | list[Picture]]] = {
    "cubic_toy": cubic_toy,
    "alpha_linear": lambda arrays, study: alpha_linear(arrays, study.name),
    "calibration": lambda arrays, study: calibration(arrays, study.name),
    "mountain_car": lambda arrays, study: mountain_car(arrays, study.name),
    "conflict_evidence": lambda arrays, study: evidence(arrays, study.name),
    "conflict_posteriors": lambda arrays, study: posteriors(arrays, study.name),
    "conflict_tilted": lambda arrays, study: conflicts.tilted(arrays, study.name),
    "conflict_convergence": lambda arrays, study: conflicts.convergence(arrays, study.name),
    "fixed_predictions": lambda arrays, study: fixed_hyperparameters.predictions(arrays, study.name),
    "fixed_times": lambda arrays, study: fixed_hyperparameters.times(arrays, study.name),
    "ard_overfitting": lambda arrays, study: ard_overfitting(arrays, study.name),
    "additive_effects": lambda arrays, study: additive_effects(arrays, study.name),
    "discontinuity": lambda arrays, study: discontinuity(arrays, study.name),
    "network_restarts": lambda arrays, study: network_restarts(arrays, study.name),
    "network_convergence": lambda arrays, study: network_convergence(arrays, study.name),
}
