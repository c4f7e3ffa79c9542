"""Tables of reference posteriors and of the distances of approximations from them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from ep_bench.experiments import SUMMARY
from ep_bench.experiments.figures import read
from ep_bench.experiments.posteriors.fidelity import figure

from .forms import NONE, table
from .stored import FIVE, RESULTS, stored_study

STUDY = "fidelity"
SETS = (*FIVE, "power", "kin8nm")
CERTIFIED = 1.01  # R-hat
ANNEALED = ("AIS", "AIS, back")
SHOWN = {"method": "Method", "mean error": "Error of the mean", "std ratio": "Ratio of standard deviations", "W1": "W1",
         "W2": "W2", "TV": "TV", "KL": "KL", "KL of pairs": "KL of pairs", "LL": "LL", "CPU s": "CPU s"}  # fmt: skip


def references() -> list[str]:
    """Return convergence and cost of the reference posteriors, by network and data set."""
    rows = pd.concat([pd.read_csv(RESULTS / f"reference-{name}" / SUMMARY) for name in SETS])
    body = []
    for (network, dataset), part in rows.groupby(["network", "dataset"], sort=False):
        first = part.iloc[0]
        body.append([
            str(network), str(dataset), f"{first['noise_variance']:g}", f"{first['prior_variance']:g}",
            f"{part['r_hat'].max():.4f}", f"{(part['r_hat'] <= CERTIFIED).sum()} of {len(part)}",
            f"{part[['ess_bulk', 'ess_tail']].to_numpy().min():,.0f}", f"{part['floor'].mean():.2f}",
            f"{part['cpu_seconds'].sum():,.0f}",
        ])  # fmt: skip
    head = ["Network", "Data set", "Noise variance", "Prior variance", "Largest R-hat", "R-hat at most 1.01",
            "Smallest ESS", "Floor of W2", "CPU s"]  # fmt: skip
    return table(head, sorted(body, key=lambda row: (row[0] != "relu", SETS.index(row[1]))))


def distances(network: str) -> list[str]:
    """Return the mean distances of the methods from the posterior of a network, the nearest first."""
    networks = {row["network"]: None for row in read(stored_study(STUDY)).summary}
    found = dict(zip(sorted(networks), figure.tables(read(stored_study(STUDY))), strict=True))[network]
    places = [list(found.head).index(name) for name in SHOWN]
    return table(list(SHOWN.values()), [[_text(row[place]) for place in places] for row in found.rows])


def claims() -> list[str]:
    """Return the claims on distances with what was found."""
    verdicts = {None: "not decided", True: "holds", False: "does not hold"}
    body = [[claim.text, claim.found, verdicts[claim.holds]] for claim in figure.claims(read(stored_study(STUDY)))]
    return table(["Claim", "Found", "Verdict"], body)


def bands() -> list[str]:
    """Return the standard deviations relative to those of the reference within a gap and beside it, and W2 there."""
    rows = pd.read_csv(RESULTS / "bands" / SUMMARY)
    names = list(rows["dataset"].unique())
    body = []
    for method, part in rows.groupby("method", sort=False):
        by_set = part.set_index("dataset")
        ratios = (f"{by_set.loc[name, f'std_ratio_{place}']:.2f}" for name in names for place in ("gap", "outside"))
        body.append([str(method), *ratios, *(f"{by_set.loc[name, 'wasserstein_2_gap']:.2f}" for name in names)])
    head = ["Method", *(f"{name}, {place}" for name in names for place in ("gap", "beside")),
            *(f"W2 in the gap, {name}" for name in names)]  # fmt: skip
    return table(head, body)


def evidence() -> list[str]:
    """Return the log evidence by annealing in both directions, and the differences of the estimates from the first."""
    rows = pd.read_csv(RESULTS / "evidence" / SUMMARY)
    names = list(rows["dataset"].unique())
    body = []
    for network, part in rows.groupby("network", sort=False):
        by_method = part.pivot_table("log_evidence", "method", "dataset", sort=False)[names]
        ends = np.sort(by_method.loc[list(ANNEALED)].to_numpy(), axis=0).T
        body.append([str(network), "annealed importance sampling", *(f"{low:.1f} to {high:.1f}" for low, high in ends)])
        others = by_method.drop(index=list(ANNEALED)) - by_method.loc[ANNEALED[0]]
        body += [[str(network), str(method), *(f"{value:+.0f}" for value in values)]
                 for method, values in zip(others.index, others.to_numpy(), strict=True)]  # fmt: skip
    return table(["Network", "Estimate", *names], body)


def _text(entry: Any) -> str:
    text = entry if isinstance(entry, str) else entry["text"]
    return text.replace("*", " *") if text else NONE


TABLES: dict[str, Callable[[], list[str]]] = {
    "reference-posteriors": references,
    "fidelity-relu": partial(distances, "relu"),
    "fidelity-probit": partial(distances, "probit"),
    "fidelity-claims": claims,
    "gap-bands": bands,
    "log-evidence": evidence,
}
