"""Tables of verdicts on the published numbers and claims."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache, partial
from typing import Any

import pandas as pd

from ep_bench import published
from ep_bench.published.claims import FILE, load_claims
from ep_bench.report.claims import HIGHER_IS_BETTER, claim_verdicts

from .markdown import table
from .stored import LARGE, all_results, board, comparison

PAPERS = {
    "hernandez-lobato2015": ("Hernandez-Lobato and Adams (2015)", "`pbp`, `bp`, `vi_graves`"),
    "jylanki2011": ("Jylanki, Vanhatalo and Vehtari (2011)", "`gp_t`"),
    "jylanki2014": ("Jylanki, Nummenmaa and Vehtari (2014)", "`ep_nn`"),
    "bui2015": ("Bui et al. (2015)", "`dgp_ep`, `hmc`, `sgld`, `vi`"),
    "hernandez-lobato2016": ("Hernandez-Lobato et al. (2016), supplement", "`bb_alpha`"),
}
SHOWN = ("reproduced", "better", "worse", "disputed", "incomplete")
INCIDENTAL = re.compile(
    r"on |repeated from |published as|\d+ of \d+ (?:splits|converged)|standard errors|one split|one of \d"
    r"|the printed standard error"
)  # parts of reasons


def verdicts(frame: pd.DataFrame) -> list[str]:
    """Return how many published numbers have each of the verdicts ``SHOWN``."""
    found = published.counts(frame)
    return [str(found[verdict]) for verdict in SHOWN]


def own_numbers() -> pd.DataFrame:
    """Return the comparison with the numbers that the papers print, without those that they quote from each other."""
    return published.counted_once(comparison())


def papers() -> list[str]:
    """Return the README's table of papers."""
    frame = own_numbers()
    body = []
    for source, (title, names) in PAPERS.items():
        part = frame[frame["source"] == source]
        counted = verdicts(part) if len(part) else ["–"] * len(SHOWN)
        body.append([f"[{title}](docs/papers/{source}.md)", names, *counted])
    return table(["Paper", "Methods", *(verdict.capitalize() for verdict in SHOWN)], body)


def disputed() -> str:
    """Return how the means of disputed columns compare with the printed ones; the worst of several entries counts."""
    key = ["source", "table", *published.COLUMN_NAMES, "metric"]
    rows = own_numbers().groupby(key).filter(lambda entries: bool((entries["verdict"] == "disputed").all()))
    signs = rows["metric"].map(lambda metric: 1.0 if metric in HIGHER_IS_BETTER else -1.0)
    gains = rows.assign(gain=rows["z"] * signs).groupby(key)["gain"].min()
    worse, better, none = (int(found.sum()) for found in (gains < -2.0, gains > 2.0, gains.isna()))
    return (
        f"Of the {len(gains)} disputed numbers, ours are worse than the printed ones by more than two standard "
        f"errors on {worse}, better on {better}, and closer on "
        f"{len(gains) - worse - better - none}" + (f"; {none} have no result" if none else "")
    )


def worse_chains() -> str:
    """Return how many numbers of HMC in Bui et al. are worse than printed, and how many of them on large data sets."""
    frame = comparison()
    rows = frame[(frame["source"] == "bui2015") & (frame[published.COLUMN_NAMES[0]] == "HMC-1")]
    on_large = rows[rows["dataset"].str.partition(" [")[0].isin(LARGE)]
    worse, large = (published.counts(part)["worse"] for part in (rows, on_large))
    unmixed = {board().convergence[name, dataset].converged for name in ("HMC-1", "HMC-1 (b = 2)") for dataset in LARGE}
    if unmixed != {0}:
        return f"some chains on large data sets have mixed: {unmixed}"
    return (
        f"Of the {worse} numbers of HMC-1 that are worse than printed, {large} are on power, kin8nm, naval and protein"
    )


def reproductions() -> list[str]:
    """Return the verdicts by published table, those of other sources included."""
    body = []
    for (source, number), part in own_numbers().groupby(["source", "table"], sort=True):
        found = published.counts(part)
        name = f"[{source}](papers/{source}.md)" if source in PAPERS else str(source)
        body.append([name, str(number), *verdicts(part), str(found["yardstick"])])
    return table(["Source", "Table", *SHOWN, "yardstick"], body)


def columns_of(source: str) -> list[str]:
    """Return the verdicts by column of the tables of one paper, with the reasons of other verdicts than reproduced."""
    frame = comparison()
    part = frame[frame["source"] == source]
    body = []
    for (number, name), rows in part.groupby(["table", published.COLUMN_NAMES[0]], sort=True):
        counted = rows.index.isin(own_numbers().index).any()
        remark = _reasons(rows) if counted else "repeated from an earlier paper"
        body.append([str(number), str(name), *verdicts(rows), remark])
    return table(["Table", "Column", *SHOWN, "Reason, if disputed or worse"], body)


def _reasons(rows: pd.DataFrame) -> str:
    """Return the reasons of worse numbers, each with its data sets, or else the main one of disputed numbers."""
    found = published.counts(rows)
    if found["worse"]:
        worse = rows[rows["verdict"] == "worse"]
        by_cause: dict[str, list[str]] = {}
        for cause, dataset in zip(_causes(worse), worse["dataset"].str.partition(" [")[0], strict=True):
            by_cause.setdefault(cause, []).append(dataset)
        if len(by_cause) == 1:
            return next(iter(by_cause))
        parts = (f"*{', '.join(dict.fromkeys(names))}*: {cause.rstrip('.')}." for cause, names in by_cause.items())
        return " ".join(parts)
    causes = _causes(rows[rows["verdict"] == "disputed"])
    return "".join(cause for cause, _ in Counter(causes).most_common(1))


def _causes(rows: pd.DataFrame) -> list[str]:
    """Return the reason of each number, without remarks that are no cause."""
    return ["; ".join(part for part in reason.split("; ") if not INCIDENTAL.match(part))
            for reason in rows["reason"].str.removeprefix("accepted: ")]  # fmt: skip


@cache
def decided_claims() -> list[dict[str, Any]]:
    """Return the claims of the papers with their verdicts."""
    return claim_verdicts(all_results(), load_claims(FILE))


def claims(verdict: str) -> list[str]:
    """Return the claims of the papers with one verdict."""
    found = [row for row in decided_claims() if row["verdict"] == verdict]
    extra = any(row["reason"] for row in found)
    body = [[r["source"], r["place"], r["claim"], r["found"] or "–", *[r["reason"] or "–"] * extra] for r in found]
    return table(["Paper", "Place", "Claim", "Found", *["Reason"] * extra], body)


TABLES = {
    "papers": papers,
    "reproductions": reproductions,
    **{f"columns-{one}": partial(columns_of, one) for one in ("hernandez-lobato2015", "bui2015", "jylanki2014")},
    "claims-fail": lambda: claims("does not hold"),
    "claims-hold": lambda: claims("holds"),
    "claims-open": lambda: claims("not decided"),
}
FACTS = [("../README.md", disputed), ("papers/bui2015.md", worse_chains)]
