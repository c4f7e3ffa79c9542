"""Tables of settings that change scores: schedules, noise priors and seeds."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ep_bench.report.sections import seeds

from .forms import Entry, scores, table
from .stored import methods_of, stored_study


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


TABLES: dict[str, Callable[[], list[str]]] = {
    "noise-priors": noise_priors,
    "seed-spread": partial(seed_spread, "seed-spread"),
    "bp-schedule": schedules,
}
