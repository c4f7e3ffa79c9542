"""Tables of entries before and after a change of a method, with the corrected paired test of the difference."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from ep_bench.report.significance import t_test_p

from .forms import Entry, differences, score, table
from .stored import FIGURES, FIVE, cells


def laplace_versions() -> list[str]:
    """Return evidence and log-likelihood of two versions of ``laplace``."""
    stored = pd.read_csv(FIGURES / "laplace-versions.csv")
    body = []
    for (method, dataset), rows in stored.groupby(["method", "dataset"], sort=False):
        sizes = cells("bnn-sampling", "LA-full", str(dataset))[0]
        p = t_test_p((rows["ll_3"] - rows["ll_2"]).to_numpy(), sizes["n_test"] / sizes["n_train"])
        mean = rows.mean(numeric_only=True)
        evidence = [f"{mean[name]:.0f}" for name in ("log_evidence_2", "log_evidence_3")]
        higher = f"{(rows['log_evidence_3'] > rows['log_evidence_2']).sum()}/{len(rows)}"
        ll = [f"{mean[name]:.3f}" for name in ("ll_2", "ll_3")]
        body.append([str(method), str(dataset), *evidence, higher, *ll, f"{p:.2g}"])
    return table(["Entry", "Data set", "Evidence, 2", "Evidence, 3", "Higher", "LL, 2", "LL, 3", "p"], body)


def laplace_activations() -> list[str]:
    """Return the log-likelihoods of ``laplace`` with relu, tanh and the activation of the higher evidence."""
    relu, tanh = Entry("bnn-sampling", "LA-full", "relu"), Entry("choices", "LA-full tanh", "tanh")
    chosen = Entry("choices", "LA-full activation by evidence", "evidence")
    p = [{row.dataset: f"{row.p:.2g}" for row in differences(relu, other)} for other in (tanh, chosen)]
    body = []
    for dataset in FIVE:
        pairs = zip(*(cells(entry.folder, entry.method, dataset) for entry in (tanh, chosen)), strict=True)
        equal = [one["ll"] == other["ll"] for one, other in pairs]
        scores = [score(entry, dataset, "ll") for entry in (relu, tanh, chosen)]
        body.append([dataset, *scores[:2], p[0][dataset], scores[2], p[1][dataset], f"{sum(equal)}/{len(equal)}"])
    return table(["Data set", "LL, relu", "LL, tanh", "p", "LL, evidence", "p", "tanh chosen"], body)


TABLES: dict[str, Callable[[], list[str]]] = {
    "laplace-versions": laplace_versions,
    "laplace-activations": laplace_activations,
}
