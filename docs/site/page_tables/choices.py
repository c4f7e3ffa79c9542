"""Tables of entries before and after a change of a method, with the corrected paired test of the difference."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from ep_bench.report.significance import t_test_p

from .forms import NAMES, Entry, score, table
from .stored import FIGURES, FIVE, cells


def compared(base: Entry, others: Sequence[Entry], column: str = "ll") -> tuple[list[str], list[list[str]]]:
    """Return the head and the body of a table of five data sets: means of entries, and p against the first entry."""
    entries = (base, *others)
    head = ["Data set", *(text for entry in entries for text in (f"{NAMES[column]}, {entry.name}", "p"))]
    del head[2]
    body = []
    for dataset in FIVE:
        line = [dataset, score(base, dataset, column)]
        for other in others:
            line += [score(other, dataset, column), f"{difference_p(base, other, dataset, column):.2g}"]
        body.append(line)
    return head, body


def difference_p(before: Entry, after: Entry, dataset: str, column: str) -> float:
    """Return the p-value of the corrected test on the splits that both entries have."""
    old, new = ({row["split"]: row for row in cells(entry.folder, entry.method, dataset)} for entry in (before, after))
    both = sorted(old.keys() & new.keys())
    differences = np.array([new[split][column] - old[split][column] for split in both])
    return float(t_test_p(differences, test_ratio(dataset)))


def test_ratio(dataset: str) -> float:
    """Return the number of test points divided by that of training points of the standard splits."""
    row = cells("bnn-sampling", "LA-full", dataset)[0]
    return float(row["n_test"] / row["n_train"])


def laplace_versions() -> list[str]:
    """Return evidence and log-likelihood of two versions of ``laplace``."""
    stored = pd.read_csv(FIGURES / "laplace-versions.csv")
    body = []
    for (method, dataset), rows in stored.groupby(["method", "dataset"], sort=False):
        p = t_test_p((rows["ll_3"] - rows["ll_2"]).to_numpy(), test_ratio(str(dataset)))
        mean = rows.mean(numeric_only=True)
        evidence = [f"{mean[name]:.0f}" for name in ("log_evidence_2", "log_evidence_3")]
        higher = f"{(rows['log_evidence_3'] > rows['log_evidence_2']).sum()}/{len(rows)}"
        ll = [f"{mean[name]:.3f}" for name in ("ll_2", "ll_3")]
        body.append([str(method), str(dataset), *evidence, higher, *ll, f"{p:.2g}"])
    return table(["Entry", "Data set", "Evidence, 2", "Evidence, 3", "Higher", "LL, 2", "LL, 3", "p"], body)


def laplace_activations() -> list[str]:
    """Return the log-likelihoods of ``laplace`` with relu, tanh and the activation of the higher evidence."""
    tanh = Entry("choices", "LA-full tanh", "tanh")
    chosen = Entry("choices", "LA-full activation by evidence", "evidence")
    head, body = compared(Entry("bnn-sampling", "LA-full", "relu"), (tanh, chosen))
    for line in body:
        pairs = zip(*(cells(entry.folder, entry.method, line[0]) for entry in (tanh, chosen)), strict=True)
        equal = [one["ll"] == other["ll"] for one, other in pairs]
        line.append(f"{sum(equal)}/{len(equal)}")
    return table([*head, "tanh chosen"], body)


TABLES: dict[str, Callable[[], list[str]]] = {
    "laplace-versions": laplace_versions,
    "laplace-activations": laplace_activations,
}
