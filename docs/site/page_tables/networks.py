"""Tables of neural networks: scores, variants, chains, and what benchmarks measured into ``docs/figures``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd

from ep_bench.report.sections import seeds

from .forms import NAMES, NONE, Entry, of_rows, pairs, score, scores, signed, table, with_error
from .stored import FIGURES, FIVE, LARGE, Row, curves, methods_of, rows_of, stored_study, summary

HMC = ("bui2015", "HMC-1")
ENSEMBLES = [Entry("ensemble", name) for name in ("Ensemble", "Ensemble adversarial")]
VI = ("VI-1, empirical prior", "VI-1, noise head", "VI-1 heteroscedastic")
DEFAULT_STEPS = {"bb_alpha": 0.002, "dropout": 0.005, "ensemble": 0.01, "dgp_ep": 0.002}
MIXED = 1.05  # R-hat


def _entries(folder: str, *left_out: str) -> list[Entry]:
    return [Entry(folder, name) for name in methods_of(folder) if name not in left_out]


def optimisation(column: str) -> list[str]:
    """Return networks that are fitted by optimisation, deep ensembles included."""
    return scores([column], [*_entries("bnn-optimisation"), *ENSEMBLES])


def sampling(column: str) -> list[str]:
    """Return networks by sampling and Laplace's approximation, with the published HMC."""
    return scores([column], _entries("bnn-sampling", "PBP-1", "VI-1"), published_rows=[HMC])


def ensembles(*columns: str) -> list[str]:
    """Return deep ensembles, with the published ones."""
    source = [] if "seconds" in columns else [("lakshminarayanan2017", "Deep ensemble M=5")]
    return scores(columns, _entries("ensemble"), published_rows=source)


def ep_networks() -> list[str]:
    """Return networks by EP next to PBP."""
    return scores(["rmse", "ll"], [*_entries("ep-nn", "PBP-1"), Entry("bnn-optimisation", "PBP-1")], (*FIVE, *LARGE))


def ep_restarts() -> list[str]:
    """Return the spread of EP over random starts."""
    columns = {
        "Data set": ("dataset", "s"), "Entry": ("method", "s"), "Starts": ("restarts", "s"),
        "Converged": ("converged", "s"), "LL, lowest": ("ll_least", ".3f"), "LL, median": ("ll_median", ".3f"),
        "LL, highest": ("ll_most", ".3f"), "LL of the highest evidence": ("ll_of_highest_evidence", ".3f"),
    }  # fmt: skip
    return of_rows(summary("nn-ep-restarts"), columns)


def vi_parts() -> list[str]:
    """Return VI with the empirical prior, with the noise head and with both, compared with VI-1."""
    both = [(Entry("vi-parts", "VI-1"), Entry("vi-parts", name)) for name in VI]
    return pairs(both, ("VI-1", "entry"), yardstick=("wu2019-dvi", "MCVI-1 (mean-field reparam S=10)"))


def vi_depth() -> list[str]:
    """Return variants of one and two layers on boston."""
    columns = {
        "Variant": ("variant", "s"), "Negative bound": ("negative_bound", ".3f"), "Divergence": ("divergence", ".3f"),
        "Noise, standard deviation": ("noise_deviation", ".3f"), "Validation LL": ("validation_ll", ".3f"),
        "Active units": ("active_units", "s"),
    }  # fmt: skip
    return of_rows(rows_of(FIGURES / "vi-depth-boston.csv"), columns)


def vi_noise_head() -> list[str]:
    """Return fits with heteroscedastic noise by data set and step size."""
    columns = {
        "Data set": ("dataset", "s"), "Step size": ("rate", "s"), "End": ("end", lambda text: text.partition(":")[0]),
        "Lowest objective": ("lowest", "s"), "Highest": ("highest", "s"), "Mean of the last 20 epochs": ("last", "s"),
        "Log variance, median": ("median_log_variance", "s"), "Spread, median": ("median_spread", "s"),
        "Spread, largest": ("largest_spread", "s"), "Largest input there": ("input_there", "s"),
    }  # fmt: skip
    return of_rows(rows_of(FIGURES / "vi-noise-head.csv"), columns)


def dropout_steps() -> list[str]:
    """Return dropout with the step size of the program, and with its batches too, compared with our step size."""
    names = ("Dropout-1, step size 0.001", "Dropout-1, program")
    both = [(Entry("dropout-steps", "Dropout-1, step size 0.005"), Entry("dropout-steps", name)) for name in names]
    return pairs(both, ("step size 0.005", "entry"), yardstick=("gal-dropout-2018", "MC-dropout-1"))


def laplace_evidence() -> list[str]:
    """Return log evidences with one and several starts and by laplace-torch, and CPU seconds, means over splits."""
    frame = pd.read_csv(FIGURES / "laplace-evidence.csv")
    means = frame.groupby("dataset", as_index=False).mean(numeric_only=True)
    columns = {
        "Data set": ("dataset", "s"), "`starts: 0`": ("starts_0", ".0f"), "`starts: 15`": ("starts_15", ".0f"),
        "laplace-torch": ("laplace_torch", ".0f"), "laplace-torch, at the mode": ("laplace_torch_at_mode", ".0f"),
        "CPU s, `starts: 15`": ("cpu_seconds", ".1f"), "CPU s, laplace-torch": ("laplace_torch_cpu_seconds", ".1f"),
    }  # fmt: skip
    return of_rows(means.to_dict("records"), columns)


def step_sizes() -> list[str]:
    """Return the difference of the validation log density by step size from the default."""
    frame = pd.read_csv(FIGURES / "step-sizes.csv")
    body = []
    for method, default in DEFAULT_STEPS.items():
        found = frame[frame["method"] == method].pivot_table("validation_ll", ["dataset", "split"], "value")
        for value, gains in found.drop(columns=default).sub(found[default], axis=0).items():
            known = gains.dropna()
            higher = f"{int((known > 0.0).sum())} of {len(known)}"
            body.append([f"`{method}`", f"{default:g}", f"{value:g}", signed(with_error(known.tolist())), higher])
    return table(["Method", "Default", "Step size", "Difference from the default", "Higher on"], body)


def chains(folder: str) -> list[str]:
    """Return the diagnostics of the chains of HMC."""
    found = [one for one in curves(folder)["chains"] if one["method"].startswith("HMC")]
    body = [[one["method"], one["dataset"], *_diagnostics(one["diagnostics"])] for one in found]
    names = ("monitored inputs", "test inputs")
    heads = [f"{what}, {where}" for where in names for what in ("R-hat at most 1.05", "median R-hat")]
    return table(["Entry", "Data set", "Million gradients", *heads, "median ESS, test inputs"], body)


def _diagnostics(found: Row) -> list[str]:
    texts = [f"{np.median(found['gradients']) / 1e6:.1f}"]
    for name in ("r_hat_predictions", "r_hat_test_rows"):
        values = np.array(found.get(name, ()), dtype=float)
        mixed = f"{np.sum(values <= MIXED)} of {len(values)}"
        texts += [mixed, f"{np.nanmedian(values):.3f}"] if len(values) else [NONE, NONE]
    effective = found.get("ess_bulk_test_rows")
    return [*texts, f"{np.median(effective):.0f}" if effective else NONE]


def noise_priors() -> list[str]:
    """Return the log-likelihoods of HMC by the rate of its noise prior."""
    rates = [Entry("bnn-sampling", "HMC-1", "b = 0.01"), *(
        Entry("hmc-noise-prior", name, f"{name.partition('(')[2].rstrip(')')}, five splits")
        for name in methods_of("hmc-noise-prior")
    ), Entry("bnn-sampling", "HMC-1 (b = 2)", "b = 2")]  # fmt: skip
    return scores(["ll"], rates, ("energy", "yacht"), [HMC])


def long_chains() -> list[str]:
    """Return chains of HMC that are five times as long."""
    both = (Entry("hmc-length", "HMC-1"), Entry("hmc-length", "HMC-1, 5 times"))
    return pairs([both], ("HMC-1", "5 times"), ("ll", "r_hat", "seconds"), HMC)


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


def molecules(folder: str, *columns: str) -> list[str]:
    """Return scores on the molecules."""
    body = [[entry.method, *(score(entry, "cep", column) for column in columns)] for entry in _entries(folder)]
    return table(["Entry", *(NAMES[column] for column in columns)], body)


TABLES: dict[str, Callable[[], list[str]]] = {
    "optimisation-rmse": partial(optimisation, "rmse"),
    "optimisation-ll": partial(optimisation, "ll"),
    "sampling-rmse": partial(sampling, "rmse"),
    "sampling-ll": partial(sampling, "ll"),
    "ensemble-rmse": partial(ensembles, "rmse"),
    "ensemble-ll": partial(ensembles, "ll_gaussian", "ll"),
    "ensemble-seconds": partial(ensembles, "seconds"),
    "ep-scores": ep_networks,
    "ep-restarts": ep_restarts,
    "vi-parts": vi_parts,
    "vi-depth": vi_depth,
    "vi-noise-head": vi_noise_head,
    "dropout-steps": dropout_steps,
    "laplace-evidence": laplace_evidence,
    "step-sizes": step_sizes,
    "hmc-mixing": partial(chains, "hmc-mixing"),
    "hmc-long": partial(chains, "bnn-sampling"),
    "hmc-length": long_chains,
    "noise-priors": noise_priors,
    "seed-spread": partial(seed_spread, "seed-spread"),
    "pbp-table-1": lambda: scores(
        ["rmse", "ll"], [Entry("pbp-table-1", "PBP")], published_rows=[("hernandez-lobato2015", "PBP")]
    ),
    "bp-schedule": lambda: scores(["rmse"], _entries("bp-schedule"), published_rows=[("hernandez-lobato2015", "BP")]),
    "pbp-layers-rmse": lambda: scores(["rmse"], _entries("pbp-layers")),
    "pbp-layers-ll": lambda: scores(["ll"], _entries("pbp-layers")),
    "cep": partial(molecules, "cep", "rmse", "ll", "crps"),
    "cep-folds": partial(molecules, "cep-folds", "mse", "ll"),
}
