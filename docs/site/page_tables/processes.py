"""Tables of Gaussian processes, deep ones included, and of their classifiers."""

from __future__ import annotations

from collections.abc import Callable

from .forms import Entry, of_rows, pairs, scores
from .stored import FIGURES, FIVE, datasets_of, methods_of, rows_of

INDUCING = (50, 100)
STEPS = ("1000 steps", "15000 steps")


def fitc_and_sgpr() -> list[str]:
    """Return both approximations by number of inducing inputs."""
    both = [(Entry("gp", f"FITC-{number}"), Entry("gp", f"SGPR-{number}", f"{number} inputs")) for number in INDUCING]
    return pairs(both, ("FITC", "SGPR"), ("rmse", "ll", "lowest"))


def searches() -> list[str]:
    """Return sparse processes with the searches for few and for many data points."""
    names = methods_of("sgp-search")
    both = [(Entry("gp", name.removesuffix(", many")), Entry("sgp-search", name)) for name in names]
    return pairs(both, ("`trials`", "`many`"))


def minimum_noise() -> list[str]:
    """Return FITC without and with a minimum of the noise variance."""
    names = [f"FITC-{number}" for number in INDUCING]
    both = [(Entry("gp", name), Entry("gp-options", f"{name}, minimum noise", name)) for name in names]
    return pairs(both, ("without", "with minimum"), ("rmse", "ll", "lowest", "seconds"))


def merged_inputs() -> list[str]:
    """Return the exact process and FITC without and with merged data points."""
    both = [(Entry("gp", name), Entry("gp-options", f"{name}, merged", name)) for name in ("GP", "FITC-50")]
    return pairs(both, ("without", "merged"))


def other_programs() -> list[str]:
    """Return whole fits by both searches and by GPy on splits of kin8nm."""
    columns = {
        "": ("approximation", lambda name: {"fitc": "FITC", "vfe": "SGPR"}[name]),
        "Inducing inputs": ("inducing", "s"), "Split": ("split", "s"),
        "Evidence or bound, `trials`": ("trials", ".1f"), "`many`": ("many", ".1f"), "GPy": ("gpy", ".1f"),
        "CPU time, `many` / `trials`": ("many_over_trials", ".1f"), "GPy / `trials`": ("gpy_over_trials", ".1f"),
    }  # fmt: skip
    return of_rows(rows_of(FIGURES / "sgp-searches.csv"), columns)


def student_t() -> list[str]:
    """Return processes with Student-t and with Gaussian noise."""
    return scores(["rmse", "ll"], [Entry("gp", name) for name in ("GP", "GP-t, EP", "GP-t, Laplace")], FIVE)


def deep_training() -> list[str]:
    """Return deep processes with the training of the released program and with the default one."""
    names = methods_of("dgp-cosine")
    both = [(Entry("dgp", name.removesuffix(", cosine")), Entry("dgp-cosine", name)) for name in names]
    columns = ("rmse", "ll", "converged", "seconds")
    return pairs(both, ("program", "default"), columns, ("star-dgp", "DS-DGP (mean-field) L2"))


def classifiers() -> list[str]:
    """Return classifiers by the number of steps, with the printed numbers."""
    entries = []
    for model in ("GP", "DGP-2"):
        short, long = (Entry("dgp-classes-training", f"{model}, {steps}") for steps in STEPS)
        entries += [short, Entry("dgp-classes", model, f"{model}, 6000 steps"), long]
    entries.append(Entry("dgp-classes-training", "Logistic regression"))
    datasets = datasets_of("dgp-classes-training", methods_of("dgp-classes-training"))
    return scores(["ll", "train_ll"], entries, datasets, [("bui2015", model) for model in ("GP", "DGP-2")])


TABLES: dict[str, Callable[[], list[str]]] = {
    "fitc-and-sgpr": fitc_and_sgpr,
    "sgp-search": searches,
    "minimum-noise": minimum_noise,
    "merged-inputs": merged_inputs,
    "sgp-other-splits": other_programs,
    "gp-t-scores": student_t,
    "dgp-training": deep_training,
    "classes-training": classifiers,
}
