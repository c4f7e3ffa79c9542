"""Verdicts on the published numbers and claims, and differences from the scores of later papers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from functools import partial

import pandas as pd

from ep_bench import published
from ep_bench.published.claims import FILE, load_claims
from ep_bench.report.published_checks import claim_verdicts

from .forms import signed, table
from .stored import all_results, comparison, own_numbers

PAPERS = {
    "hernandez-lobato2015": ("Hernandez-Lobato and Adams (2015)", "`pbp`, `bp`, `vi_graves`"),
    "jylanki2011": ("Jylanki, Vanhatalo and Vehtari (2011)", "`gp_t`"),
    "jylanki2014": ("Jylanki, Nummenmaa and Vehtari (2014)", "`ep_nn`"),
    "bui2015": ("Bui et al. (2015)", "`dgp_ep`, `hmc`, `sgld`, `vi`"),
    "hernandez-lobato2016": ("Hernandez-Lobato et al. (2016), supplement", "`bb_alpha`"),
}
LATER = {
    "gal-dropout-2018": "Gal, results stored later",
    "lakshminarayanan2017": "Lakshminarayanan et al. (2017)",
    "ober2021-dwp": "Ober and Aitchison (2021)",
    "star-dgp": "Lindinger et al. (2020)",
    "wu2019-dvi": "Wu et al. (2019)",
}
SHOWN = ("reproduced", "better", "worse", "disputed", "incomplete")
INCIDENTAL = re.compile(
    r"on |repeated from |published as|\d+ of \d+ (?:splits|converged)|standard errors|one split|one of \d"
    r"|the printed standard error"
)  # parts of reasons
FAR = 2.0  # standard errors of a difference that counts as lower or higher


def verdicts(frame: pd.DataFrame) -> list[str]:
    """Return how many published numbers have each of the verdicts ``SHOWN``."""
    found = published.counts(frame)
    return [str(found[verdict]) for verdict in SHOWN]


def papers() -> list[str]:
    """Return the papers of README."""
    frame = own_numbers()
    body = []
    for source, (title, names) in PAPERS.items():
        part = frame[frame["source"] == source]
        counted = verdicts(part) if len(part) else ["–"] * len(SHOWN)
        body.append([f"[{title}](docs/papers/{source}.md)", names, *counted])
    return table(["Paper", "Methods", *(verdict.capitalize() for verdict in SHOWN)], body)


def reproductions() -> list[str]:
    """Return the verdicts by published table, those of other sources included."""
    body = []
    for (source, number), part in own_numbers().groupby(["source", "table"], sort=True):
        name = f"[{source}](papers/{source}.md)" if source in PAPERS else str(source)
        body.append([name, str(number), *verdicts(part), str(published.counts(part)["yardstick"])])
    return table(["Source", "Table", *SHOWN, "yardstick"], body)


def columns_of(source: str) -> list[str]:
    """Return the verdicts by column of the tables of one paper, with the reasons of other verdicts than reproduced."""
    part = comparison()[comparison()["source"] == source]
    body = []
    for (number, name), rows in part.groupby(["table", published.COLUMN_NAMES[0]], sort=True):
        counted = rows.index.isin(own_numbers().index).any()
        remark = _reasons(rows) if counted else "repeated from an earlier paper"
        body.append([str(number), str(name), *verdicts(rows), remark])
    return table(["Table", "Column", *SHOWN, "Reason, if disputed or worse"], body)


def _reasons(rows: pd.DataFrame) -> str:
    """Return the reasons of worse numbers, each with its data sets, or else the main one of disputed numbers."""
    worse = rows[rows["verdict"] == "worse"]
    if not published.counts(rows)["worse"]:
        causes = [_cause(reason) for reason in rows.loc[rows["verdict"] == "disputed", "reason"]]
        return "".join(cause for cause, _ in Counter(causes).most_common(1))
    by_cause: dict[str, dict[str, None]] = {}
    for reason, dataset in zip(worse["reason"], worse["dataset"].str.partition(" [")[0], strict=True):
        by_cause.setdefault(_cause(reason), {})[dataset] = None
    if len(by_cause) == 1:
        return next(iter(by_cause))
    return " ".join(f"*{', '.join(names)}*: {cause.rstrip('.')}." for cause, names in by_cause.items())


def _cause(reason: str) -> str:
    """Return the reason of a number without remarks that are no cause."""
    return "; ".join(part for part in reason.removeprefix("accepted: ").split("; ") if not INCIDENTAL.match(part))


def claims_that_fail() -> list[str]:
    """Return the claims of the papers that do not hold in the stored results."""
    found = [row for row in claim_verdicts(all_results(), load_claims(FILE)) if row["verdict"] == "does not hold"]
    body = [[f"{row['source']}, {row['place'].removeprefix('section ')}", row["claim"], row["found"]] for row in found]
    return table(["Paper, section", "Claim", "Found"], body)


def later_papers(metric: str) -> list[str]:
    """Return how far entries with all splits are from later papers: differences of LL, or ratios of RMSE."""
    frame = own_numbers()
    rows = frame[(frame["verdict"] == "yardstick") & (frame["metric"] == metric)]
    rows = rows[(pd.to_numeric(rows["n_splits"]) > 0) & ~rows["reason"].str.contains(r"\d+ of \d+ splits")]
    ours, theirs = (rows[name].astype(float) for name in ("mean", "published_mean"))
    rows = rows.assign(found=ours - theirs if metric == "ll" else ours / theirs.where(theirs > 0.0)).dropna(
        subset="found"
    )
    body = []
    for (source, method, own), part in rows.groupby(["source", published.COLUMN_NAMES[0], "method"], sort=True):
        worst = part.loc[part["found"].idxmin() if metric == "ll" else part["found"].idxmax()]
        z = part["z"].astype(float)
        extreme = f"{_found(worst['found'], metric)} ({worst['published_dataset']})"
        counts = (len(part), int((z < -FAR).sum()), int((z > FAR).sum()))
        median = _found(part["found"].median(), metric)
        body.append([LATER[str(source)], str(method), str(own), median, extreme, *map(str, counts)])
    head = ["Source", "Their method", "Our entry", "Median", "Worst", "Data sets", "Lower", "Higher"]
    return table(head, body)


def _found(value: float, metric: str) -> str:
    return signed(f"{round(value, 2) + 0.0:.2f}") if metric == "ll" else f"{value:.2f}"


TABLES: dict[str, Callable[[], list[str]]] = {
    "papers": papers,
    "reproductions": reproductions,
    **{f"columns-{one}": partial(columns_of, one) for one in ("hernandez-lobato2015", "bui2015", "jylanki2014")},
    "claims-fail": claims_that_fail,
    "later-papers": partial(later_papers, "ll"),
    "later-papers-rmse": partial(later_papers, "rmse"),
}
