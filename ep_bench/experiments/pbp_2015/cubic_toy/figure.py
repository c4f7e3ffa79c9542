"""Figure of the cubic toy problem, and the table of distances from the reference."""

from __future__ import annotations

import itertools

import numpy as np

from ep_bench.experiments.pbp_2015.cubic_toy import distance_table, function_panels
from ep_bench.experiments.record import ExperimentResults, by_method
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


def measures(results: ExperimentResults) -> dict[str, float]:
    """Return ratios of distances from the reference, and of black-box alpha how its band and its error change."""
    distance = by_method(results.summary, distance_table.DISTANCE)
    found = {
        f"distance of {first} relative to {second}": distance[first] / distance[second]
        for first, second in itertools.permutations(distance, 2)
        if distance[second] > 0.0
    }
    of_seeds: dict[str, list[float]] = {}
    for name, value in distance.items():
        of_seeds.setdefault(name.partition(" #")[0], []).append(value)
    for first, second in itertools.permutations(of_seeds, 2):
        if len(of_seeds[second]) > 1:
            ratio = max(of_seeds[first]) / min(of_seeds[second])
            found[f"largest distance of {first} relative to the smallest of {second}"] = ratio
            means = (float(np.mean(of_seeds[name])) for name in (first, second))
            found[f"mean distance of {first} relative to {second}"] = next(means) / next(means)
    arrays, alphas = results.arrays, _alphas(results)
    if arrays and len(alphas) > 1:
        places = {str(label): i for i, label in enumerate(arrays["labels"])}
        ordered = [places[label] for label in sorted(alphas, key=lambda label: alphas[label])]
        bands = [float(np.mean(arrays[f"std_{i}"])) for i in ordered]
        found["smallest ratio of standard deviations at successive alphas"] = min(
            wide / narrow for narrow, wide in itertools.pairwise(bands)
        )
        errors = by_method(results.summary, "rmse_inside")
        found |= {f"error at the data, {label}": errors[label] for label in alphas}
    return found


def _alphas(results: ExperimentResults) -> dict[str, float]:
    """Return alpha by the label of the entry."""
    return {str(one["label"]): float(one["alpha"]) for one in results.options.get("methods", ()) if "alpha" in one}
