"""Tables of settings that change scores: schedules, noise priors, seeds and powers of EP."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd

from ep_bench.experiments import SUMMARY
from ep_bench.report.sections import seeds

from .forms import Entry, scores, table
from .stored import FIGURES, RESULTS, merged, methods_of, stored_study


def noise_priors() -> list[str]:
    """Return the log-likelihoods of HMC by the rate of its noise prior."""
    rates = [Entry("bnn-sampling", "HMC-1", "b = 0.01"), *(
        Entry("hmc-noise-prior", name, f"{name.partition('(')[2].rstrip(')')}, five splits")
        for name in methods_of("hmc-noise-prior")
    ), Entry("bnn-sampling", "HMC-1 (b = 2)", "b = 2")]  # fmt: skip
    return scores("ll", rates, ("bui2015", "HMC-1"), ("energy", "yacht"))


def schedules() -> list[str]:
    """Return the errors of backpropagation with decreasing and with constant steps, and the printed ones."""
    entries = [Entry("bp-schedule", name) for name in methods_of("bp-schedule")]
    return scores("rmse", entries, ("hernandez-lobato2015", "BP"))


def passes() -> list[str]:
    """Return scores of PBP, of PBP without two of its parts, and the error of the Gaussian in log Z, by passes."""
    rows, body = pd.read_csv(RESULTS / "pbp-passes" / SUMMARY), []
    for names, part in rows.groupby(["dataset", "method"], sort=False):
        own = part.set_index("passes")
        numbers = [f"{own.loc[40, name]:.3g}" for name in ("rmse", "ll", "function_std")]
        errors = [f"{own.loc[count, 'log_z_error']:.1g}" for count in (0, 1, 40)]
        body.append([*map(str, names), *numbers, f"{own.loc[400, 'function_std']:.3g}", *errors])
    head = ["RMSE", "LL", "SD of f", "SD, 400 passes", "Error, no pass", "1 pass", "40 passes"]
    return table(["Data set", "Method", *head], body)


def seed_spread(folder: str) -> list[str]:
    """Return the standard deviations of the log-likelihood over seeds and over splits."""
    study = stored_study(folder)
    body = []
    for (dataset, method), found in seeds.finished_cells(study).groupby(["dataset", "method"], sort=False):
        values = seeds.scores_by_seed(found, "ll", study.lock["seeds"])
        if len(values) > 1:
            one = seeds.spread(values)
            numbers = (one.mean, one.lowest, one.highest, one.seed_std, one.split_std)
            body.append([dataset, method, *map("{:.3f}".format, numbers), f"{one.seed_fraction:.0%}", str(len(values))])
    head = ["LL", "Lowest mean of a seed", "Highest", "SD, seeds", "SD, splits", "Due to the seed", "Splits"]
    return table(["Data set", "Entry", *head], body)


def thirty_points() -> list[str]:
    """Return noise, evidences and test scores of `dgp_ep` on 30 data points by alpha: medians over seeds."""
    rows = pd.read_csv(FIGURES / "dgp-alpha-thirty.csv")
    values = rows.groupby("model", sort=False)[["noise_deviation", "log_evidence", "untied", "test_ll"]].median()
    named = {"1": "alpha = 1", "0.5": "alpha = 0.5", "0.1": "alpha = 0.1", "0": "alpha = 0", "exact": "exact process"}
    body = []
    for name, (noise, own, untied, ll) in zip(values.index, values.to_numpy(), strict=True):
        numbers = [f"{noise:.2g}", f"{own:.1f}", "" if pd.isna(untied) else f"{untied:.1f}", f"{ll:.2f}"]
        body.append([named.get(str(name), str(name)), *numbers])
    return table(["Fit", "Noise SD", "Log evidence of the fit", "Untied EP", "Test LL"], body)


def alphas(file: str) -> list[str]:
    """Return mean log-likelihoods of validation points of `dgp_ep` by alpha."""
    rows = pd.read_csv(FIGURES / file)
    means = rows.pivot_table("ll", "dataset", "alpha").sort_index(axis=1, ascending=False)
    medians = rows.groupby("alpha")["ll_median"].mean()
    body = [[str(dataset), *map("{:.2f}".format, values)] for dataset, values in means.iterrows()]
    body += [["mean", *map("{:.2f}".format, means.mean())]]
    body += [["mean of medians", *(f"{medians[alpha]:.2f}" for alpha in means.columns)]]
    return table(["Data set", *(f"alpha = {alpha:g}" for alpha in means.columns)], body)


def hmc_samplers() -> list[str]:
    """Return effective samples per CPU second at the worst and median test input, and R-hat: means over seeds."""
    rows, body = pd.read_csv(FIGURES / "hmc-samplers.csv"), []
    columns = ["ess_worst_per_second", "ess_median_per_second", "r_hat"]
    means = rows.groupby(["variant", "case"], sort=False)[columns].mean()
    cases = rows["case"].unique()
    for variant in rows["variant"].unique():
        found = [means.loc[variant, case] if (variant, case) in means.index else None for case in cases]
        numbers = ["" if one is None else "{:.2f}, {:.1f} ({:.2f})".format(*one) for one in found]
        body.append([str(variant), *numbers])
    return table(["Sampler", *cases], body)


def hmc_calibration() -> list[str]:
    """Return the largest departures from uniform ranks by case, over its quantities; the last column has the limit."""
    rows = pd.concat(pd.read_csv(folder / SUMMARY) for folder in sorted(RESULTS.glob("hmc-calibration*")))
    body = []
    for case, part in rows.groupby("case", sort=False):
        largest = (part[name].abs().max() for name in ("shift", "spread"))
        count = f"{part['replications'].iloc[0]:,}"
        smallest = f"{part['p_value'].min():.2g}"
        body.append([str(case), count, *map("{:.1f}".format, largest), smallest, f"{0.05 / len(part):.2g}"])
    return table(["Case", "Data sets", "Largest shift", "Largest spread", "Smallest p-value", "5 % level"], body)


def bb_alpha_rates() -> list[str]:
    """Return energies and validation scores of `bb_alpha` by its first step size, those of `vi` next to its limit."""
    rows = pd.read_csv(FIGURES / "bb-alpha-rates.csv")
    pairs = rows.pivot_table(["energy", "ll"], ["dataset", "alpha"], "rate", sort=False)
    limits = rows[rows["method"] == "vi"].set_index("dataset")[["energy", "ll"]]
    body = []
    for (dataset, alpha), values in zip(pairs.index, pairs.to_numpy(), strict=True):
        first = alpha == rows["alpha"].min()
        vi = map("{:.2f}".format, limits.loc[dataset]) if first else ["", ""]
        body.append([str(dataset) if first else "", f"{alpha:g}", *map("{:.2f}".format, values), *vi])
    head = [f"{name}, {rate:g}" for name, rate in pairs.columns]
    return table(["Data set", "Alpha", *head, "energy, `vi`", "ll, `vi`"], body)


def recalibration() -> list[str]:
    """Return calibration and scores before and after recalibration, as means over data sets and splits."""
    body = []
    for method in methods_of("recalibration"):
        name = next(name for name in ("Bayesian ridge", "PBP", "BP") if method.startswith(name))
        own, plain = (_means_by_dataset("recalibration", label) for label in (method, name))
        change = own["ll"] - plain["ll"]  # missing for quantiles
        body.append([
            method, *(f"{own[column].mean():.1%}" for column in ("coverage50", "coverage90")),
            f"{own['pit_error'].mean():.3f}", "–" if change.isna().all() else f"{change.mean():+.2f}",
            f"{np.exp(np.log(own['crps'] / plain['crps']).mean()) - 1.0:+.1%}",
        ])  # fmt: skip
    return table(
        ["Entry", "50 % intervals", "90 % intervals", "Calibration error", "Change of LL", "Change of CRPS"], body
    )


def _means_by_dataset(folder: str, method: str) -> pd.DataFrame:
    rows = merged(folder).ok()
    found: pd.DataFrame = rows[rows["method"] == method].groupby("dataset").mean(numeric_only=True)
    return found


TABLES: dict[str, Callable[[], list[str]]] = {
    "noise-priors": noise_priors,
    "seed-spread": partial(seed_spread, "seed-spread"),
    "bp-schedule": schedules,
    "pbp-passes": passes,
    "dgp-alpha": partial(alphas, "dgp-alpha.csv"),
    "dgp-alpha-hidden": partial(alphas, "dgp-alpha-hidden.csv"),
    "dgp-thirty": thirty_points,
    "hmc-samplers": hmc_samplers,
    "hmc-calibration": hmc_calibration,
    "bb-alpha-rates": bb_alpha_rates,
    "recalibration": recalibration,
}
