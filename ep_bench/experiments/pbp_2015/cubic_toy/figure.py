"""Figure of the cubic toy problem, and the table of distances from the reference."""

from __future__ import annotations

import numpy as np

from ep_bench.experiments.pbp_2015.cubic_toy import distance_table, function_panels
from ep_bench.experiments.record import Claim, ExperimentResults, by_method, in_words
from ep_bench.plotting.page import Picture, Table


def draw(results: ExperimentResults) -> list[Picture]:
    """Return a figure with one panel per method: mean and 3 standard deviations, data and true function.

    The reference is the first panel. Arrays: grid, truth (G,); x, y (n,); labels (M,); mean_i, std_i (G,) of method i.
    """
    arrays, reference = results.arrays, results.options.get("reference")
    truth = function_panels.Truth(*(np.asarray(arrays[name]) for name in ("grid", "truth", "x", "y")))
    labels = [str(label) for label in arrays["labels"]]
    titles = [f"{label} (reference)" if label == reference else label for label in labels]
    panels = [
        function_panels.FunctionPanel(titles[i], arrays[f"mean_{i}"], arrays[f"std_{i}"])
        for i in sorted(range(len(labels)), key=lambda i: labels[i] != reference)
    ]
    figures = "figure 1 of Hernández-Lobato and Adams (2015)"
    if any(entry.get("use") == "bb_alpha" for entry in results.options.get("methods", ())):
        figures += " and the toy figure of black-box alpha (Hernández-Lobato et al. 2016, supplement, figure 5)"
    about = f"Predictions on the cubic toy data, as in {figures}: "
    return [function_panels.draw(panels, truth, f"cubic-toy-{results.study}", about)]


def tables(results: ExperimentResults) -> list[Table]:
    """Return the table of distances from the reference; none without a reference."""
    reference, arrays = results.options.get("reference"), results.arrays
    if reference is None or distance_table.DISTANCE not in results.summary[0]:
        return []
    diagnostics: dict[str, float] = {}
    if "judged" in arrays:
        diagnostics = dict(zip(arrays["judged"].tolist(), arrays["judgement"].tolist(), strict=True))
    return [distance_table.table(results.summary, str(reference), diagnostics)]


def claims(results: ExperimentResults) -> list[Claim]:
    """Return the statements on figure 1 of the paper, and on figure 5 of the supplement of black-box alpha."""
    distance, found = by_method(results.summary, distance_table.DISTANCE), []
    if {"PBP", "BP", "VI (Graves)"} <= distance.keys():
        near = {name: distance[name] for name in ("PBP", "BP", "VI (Graves)")}
        holds = max(near["PBP"], near["BP"]) < 0.5 * near["VI (Graves)"]
        text = "PBP and BP are much closer to HMC than the variational inference of Graves"
        found.append(Claim(text, holds, f"1-Wasserstein distances from HMC are {in_words(near)}"))
    arrays = results.arrays
    alphas = {
        str(one.get("label")): float(one["alpha"]) for one in results.options.get("methods", ()) if "alpha" in one
    }
    stds = {str(name): float(np.mean(arrays[f"std_{i}"])) for i, name in enumerate(arrays["labels"])} if arrays else {}
    ordered = {name: stds[name] for name in sorted(alphas, key=lambda name: alphas[name]) if name in stds}
    if len(ordered) > 1:
        holds = bool(np.all(np.diff(list(ordered.values())) > 0.0))
        text = "the predictive variance of black-box alpha increases with alpha"
        found.append(Claim(text, holds, f"mean standard deviations are {in_words(ordered)}"))
    return found
