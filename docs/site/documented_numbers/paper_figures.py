"""Tables of the figures of the papers: what the paper states about each, what the stored results show, and a verdict.

The papers print no numbers for their figures. Each function tests the statements of the text next to a figure, and
returns which hold, and the numbers behind them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from .active_learning import claim, order_of_methods, smaller_gains
from .markdown import enumerated, table
from .stored import PUBLISHED, RESULTS, TextRow, convergence, rows_of, selected, stored_study, summary

SCALE_MIXTURES = {
    "student-t-friedman": "friedman-outliers", "student-t-boston": "boston", "student-t-concrete": "concrete",
}  # fmt: skip

Found = tuple[Sequence[bool], str]


def by(column: str, rows: Sequence[TextRow], number: str) -> dict[str, float]:
    """Return the numbers of a column by the entries of another one."""
    return {row[column]: float(row[number]) for row in rows}


def toy_distances() -> Found:
    """Figure 1 of the PBP paper."""
    found = by("method", summary("toy"), "wasserstein")
    pbp, bp, vi = (found[name] for name in ("PBP", "BP", "VI (Graves)"))
    return [2 * max(pbp, bp) < vi], f"Wasserstein distance from HMC: PBP {pbp:.1f}, BP {bp:.1f}, VI {vi:.1f}"


def toy_spread() -> Found:
    """Figure 5 of the supplement on black-box alpha."""
    arrays = np.load(RESULTS / "toy" / "arrays.npz")
    labels = arrays["labels"].tolist()
    names = [name for name in labels if name.startswith("BB")]  # by increasing alpha
    spreads = [float(arrays[f"std_{labels.index(name)}"].mean()) for name in names]
    values = ", ".join(f"{value:.1f}" for value in spreads)
    return [spreads == sorted(spreads)], f"mean standard deviation from alpha = -1 to 1: {values}"


def linear_variances() -> Found:
    """Figures 1 to 4 of the supplement on black-box alpha."""
    worst = max(float(row["relative_difference"]) for row in summary("alpha-linear"))
    return [worst < 1e-6], f"largest relative difference {worst:.0e}"


def mountain_car() -> Found:
    """Figure 1 of Bui et al."""
    rows = by("method", summary("mountain-car"), "lowest_rmse")
    counts = "; ".join(f"{name}: {number:.0f}" for name, number in rows.items())
    return [], f"draws of the data with the lowest RMSE: {counts}"


def posteriors() -> Found:
    """Figure 1 of Jylanki et al. (2011), example 1."""
    spread = by("method", selected(summary("student-t-posteriors"), example="1"), "deviation")
    others = [spread["LA"] < spread["MCMC"], spread["fVB"] < spread["MCMC"]]
    names = ", ".join(f"{name} {spread[name]:.2f}" for name in ("MCMC", "EP", "LA", "fVB"))
    return [spread["EP"] > 0.8 * spread["MCMC"], *others], f"standard deviations of f(2) in example 1: {names}"


def tilted() -> Found:
    """Figure 2 of Jylanki et al. (2011)."""
    modes = by("eta", summary("student-t-tilted"), "modes")
    return [modes["1.0"] > 1, modes["0.5"] == 2], f"{modes['1.0']:.0f} and {modes['0.5']:.0f} modes"


def sweeps() -> Found:
    """Figure 3 of Jylanki et al. (2011)."""
    gap, undefined = (by("scheme", summary("student-t-convergence"), name) for name in ("mismatch", "undefined"))
    fast, damped, parallel, slow = ("sequential, δ = 0.8", "sequential, δ = 0.5", "parallel, δ = 0.5", "double loop")
    holds = [gap[fast] > 0.01, gap[damped] < gap[fast], gap[parallel] > gap[damped], undefined[parallel] > 0,
             undefined[slow] == 0, gap["3 parallel, double loop"] < gap[slow]]  # fmt: skip
    names = ", ".join(f"{name} {gap[name]:.1g}" for name in (fast, damped, parallel, slow))
    return holds, f"mismatch of moments after 100 sweeps: {names}"


def evidences() -> Found:
    """Figure 4 of Jylanki et al. (2011)."""
    rows = {(row["example"], row["eta"]): row for row in summary("student-t-evidence")}
    error = {place: float(row["mean_error"]) for place, row in rows.items()}
    holds = [abs(error["1", "1.0"]) < 1.0 and abs(error["1", "0.5"]) < 1.0, error["2", "1.0"] > 1.0,
             error["2", "0.5"] < 0.0]  # fmt: skip
    names = ", ".join(f"{error[place]:+.2f}" for place in rows)
    return holds, f"mean error, nats (example 1 with power 1 and 0.5, example 2 likewise): {names}"


def fixed_predictions() -> Found:
    """Figure 5 of Jylanki et al. (2011)."""
    rows = {row["method"]: row for row in summary("student-t-fixed")}
    ratio, gap = ({name: float(row[column]) for name, row in rows.items()}
                  for column in ("deviation_ratio", "log_density_rms"))  # fmt: skip
    holds = [gap["EP"] == min(gap[name] for name in ("LA", "EP", "fVB", "VB")), max(ratio["fVB"], ratio["VB"]) < 1.0,
             abs(ratio["LA"] - 1.0) < abs(ratio["VB"] - 1.0)]  # fmt: skip
    names = ", ".join(f"{name} {ratio[name]:.2f}" for name in ("EP", "LA", "fVB", "VB"))
    return holds, f"standard deviations relative to chains: {names}"


def fixed_times() -> Found:
    """Third row of table 1 of Jylanki et al. (2011): a factor of 2 is allowed."""
    rows, pairs = summary("student-t-times"), []
    for row in selected(rows_of(PUBLISHED / "seed_tables.csv"), source="jylanki2011", metric="cputime-relative-fixed"):
        times = [float(one["relative"]) for one in selected(rows, method=row["method"])]
        pairs += [(row["method"], float(np.mean(times)), float(row["mean"]))] * (row["method"] != "LA1" and bool(times))
    names = ", ".join(f"{name} {ours:.2g} ({printed:g})" for name, ours, printed in pairs)
    return [0.5 < ours / printed < 2.0 for _, ours, printed in pairs], f"here, and printed in parentheses: {names}"


def ard_overfitting() -> Found:
    """Figure 2 of Jylanki et al. (2014)."""
    rows = {row["method"]: row for row in summary("nn-ep-case1")}
    pruned, used, draws = int(rows["GP-ARD"]["pruned"]), int(rows["NN-EP"]["used"]), int(rows["NN-EP"]["draws"])
    holds = [2 * pruned > draws, 2 * used > draws]
    return holds, f"GP-ARD prunes an input on {pruned} of {draws} draws; NN-EP uses both on {used}"


def additive_effects() -> Found:
    """Figures 3 and 4 of Jylanki et al. (2014)."""
    rows = {row["input"]: row for row in selected(summary("nn-ep-case2"), method="ARD priors")}
    whole, draws = rows["all"], rows["all"]["draws"]
    text = (
        f"ARD priors have the lower error on {whole['lowest_rmse']} of {draws} draws, and for the irrelevant input on"
    )
    holds = [whole["lowest_rmse"] == draws, rows["1"]["lowest_rmse"] == draws]
    return holds, f"{text} {rows['1']['lowest_rmse']}; {whole['converged']} fits of {draws} converged"


def discontinuity() -> Found:
    """Figure 5 of Jylanki et al. (2014)."""
    network, process = (selected(summary("nn-ep-case3"), method=name)[0] for name in ("NN-EP", "GP"))
    calm, draws = int(network["least_fluctuation"]), int(network["draws"])
    holds = [2 * calm > draws, float(network["width_median"]) > float(process["width_median"])]
    widths = f"{network['width_median']} and {process['width_median']}"
    text = f"NN-EP fluctuates less on {calm} of {draws} draws; median widths of its step and of the GP's: {widths}"
    return holds, f"{text}; {network['converged']} fits of NN-EP converged"


FIGURES: dict[str, list[tuple[str, str, Callable[[], Found]]]] = {
    "hernandez-lobato2015": [
        ("figure 1", "PBP and BP are much closer to HMC than VI", toy_distances),
        ("table 2", "significantly lower RMSE of HMC-A and PBP-A, on boston, energy, power and yacht", claim),
        ("table 2", "PBP is usually better than EP and LA", order_of_methods),
        ("figure 2", "active choice works less well in EP and LA than in PBP and HMC", smaller_gains),
    ],
    "bui2015": [("figure 1", "a picture of one fit, without a statement to test", mountain_car)],
    "hernandez-lobato2016": [
        ("figures 1 to 4", "closed forms of the fitted covariance", linear_variances),
        ("figure 5", "the predictive variance increases with alpha", toy_spread),
    ],
    "jylanki2011": [
        ("figure 1", "example 1: EP covers the uncertainty between the observations; LA and fVB do not", posteriors),
        ("figure 2", "several modes; with half of the likelihoods, two", tilted),
        ("figure 3", "sequential EP oscillates, parallel EP more; the double loop does not, and is slow", sweeps),
        ("figure 4", "example 1: accurate; example 2: EP overestimates, fractional EP underestimates", evidences),
        ("figure 5", "EP is most accurate; fVB and VB underestimate standard deviations, LA less", fixed_predictions),
        ("table 1, row 3", "times at fixed hyperparameters, relative to LA1; a factor of 2 is allowed", fixed_times),
    ],
    "jylanki2014": [
        ("figure 2", "GP-ARD prunes one of two relevant inputs; NN-EP uses both", ard_overfitting),
        ("figures 3, 4", "ARD priors give more accurate effects, and none of the irrelevant input", additive_effects),
        ("figure 5", "the mean of the GP fluctuates at the jump; the step of NN-EP is smoother", discontinuity),
    ],
}  # fmt: skip


def figures(source: str) -> list[str]:
    """Return the table of the figures of a paper."""
    body = []
    for place, statement, test in FIGURES[source]:
        holds, text = test()
        body.append([place, statement, text, _verdict(holds)])
    return table(["Place", "The paper", "Stored results", "Verdict"], body)


def _verdict(holds: Sequence[bool]) -> str:
    if not holds:
        return "–"
    return "agrees" if all(holds) else "agrees in part" if any(holds) else "does not agree"


TABLES: dict[str, Callable[[], list[str]]] = {f"figures-{source}": partial(figures, source) for source in FIGURES}


def toy_reference() -> str:
    """Return R-hat and divergences of the chains of the cubic toy problem."""
    arrays = np.load(RESULTS / "toy" / "arrays.npz")
    found = dict(zip(arrays["judged"].tolist(), arrays["judgement"].tolist(), strict=True))
    chains = stored_study("toy").lock["options"]["methods"][0]
    trajectories = chains["chains"] * chains["samples"]
    return (
        f"R-hat of the predictions is {found['r_hat_predictions']:.3f}. "
        f"Of their {trajectories:,} trajectories, {found['divergences']:.0f} diverged"
    )


def conflict_reference() -> str:
    """Return the largest R-hat of the chains on two contradicting observations."""
    largest = max(float(row["r_hat"]) for row in summary("student-t-posteriors") if row["r_hat"])
    return f"R-hat is at most {largest:.3f}"


def figure_6_reference() -> str:
    """Return on how many splits the chains of figure 6 of Jylanki et al. have converged or nearly converged."""
    parts = []
    for folder, dataset in SCALE_MIXTURES.items():
        found = convergence(folder, "SM", dataset)
        parts.append(f"{found.converged + found.nearly} of {found.judged} splits of {dataset}")
    return f"R-hat of its predictions is at most 1.05 on {enumerated(parts)}"


def figure_5_hyperparameters() -> str:
    """Return the largest R-hat of the chains that determine the hyperparameters of figure 5 of Jylanki et al."""
    largest = max(float(row["r_hat_of_hyperparameters"]) for row in summary("student-t-fixed"))
    return f"have not mixed: R-hat is up to {largest:.2f}"


FACTS = [("papers/hernandez-lobato2015.md", toy_reference), ("papers/jylanki2011.md", conflict_reference),
    ("papers/jylanki2011.md", figure_6_reference), ("papers/jylanki2011.md", figure_5_hyperparameters),
]  # fmt: skip
