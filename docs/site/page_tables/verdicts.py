"""Verdicts on the published numbers and claims."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pandas as pd

from ep_bench import published
from ep_bench.published.claims import FILE, load_claims
from ep_bench.report.published_checks import claim_verdicts

from .forms import table
from .stored import all_results, own_numbers

PAPERS = {
    "hernandez-lobato2015": ("Hernandez-Lobato and Adams (2015)", "`pbp`, `bp`, `vi_graves`"),
    "jylanki2011": ("Jylanki, Vanhatalo and Vehtari (2011)", "`gp_t`"),
    "jylanki2014": ("Jylanki, Nummenmaa and Vehtari (2014)", "`ep_nn`"),
    "bui2015": ("Bui et al. (2015)", "`dgp_ep`, `hmc`, `sgld`, `vi`"),
    "hernandez-lobato2016": ("Hernandez-Lobato et al. (2016), supplement", "`bb_alpha`"),
}
VARIANT = r"(-\d+)+$|-[AR]$"  # of a model: numbers of layers, dimensions and inducing inputs, or the acquisition
SHOWN = ("reproduced", "better", "worse", "disputed", "incomplete")


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
    """Return the verdicts by published table, without the numbers of later papers, which have none."""
    frame = own_numbers()
    body = []
    for (source, number), part in frame[frame["verdict"] != "yardstick"].groupby(["source", "table"], sort=True):
        name = f"[{source}](papers/{source}.md)" if source in PAPERS else str(source)
        body.append([name, str(number), *verdicts(part)])
    return _counted(["Source", "Table"], body)


def models_of(source: str) -> list[str]:
    """Return the verdicts by model of the tables of one paper; models with disputed numbers only share a row."""
    frame = own_numbers()
    frame = frame[frame["source"] == source]
    frame = frame.assign(model=frame[published.COLUMN_NAMES[0]].str.replace(VARIANT, "", regex=True))
    frame["disputed"] = frame.groupby(["table", "model"])["verdict"].transform(lambda one: (one == "disputed").all())
    frame.loc[frame["disputed"], "model"] = "others"
    body = [
        [str(number), str(model), *verdicts(part)]
        for (number, _, model), part in frame.groupby(["table", "disputed", "model"], sort=True)
    ]
    return _counted(["Table", "Model"], body)


def _counted(names: list[str], body: list[list[str]]) -> list[str]:
    """Return a table of counts of the verdicts ``SHOWN``, without the verdicts that no row has."""
    columns = [(head, *column) for head, *column in zip([*names, *SHOWN], *body, strict=True)]
    head, *rows = zip(*(column for column in columns if set(column[1:]) != {"0"}), strict=True)
    return table(head, rows)


def claims_that_fail() -> list[str]:
    """Return the claims of the papers that do not hold in the stored results."""
    found = [row for row in claim_verdicts(all_results(), load_claims(FILE)) if row["verdict"] == "does not hold"]
    body = [[f"{row['source']}, {row['place'].removeprefix('section ')}", row["claim"], row["found"]] for row in found]
    return table(["Paper, section", "Claim", "Found"], body)


TABLES: dict[str, Callable[[], list[str]]] = {
    "papers": papers,
    "reproductions": reproductions,
    **{f"verdicts-{one}": partial(models_of, one) for one in ("hernandez-lobato2015", "bui2015", "jylanki2014")},
    "claims-fail": claims_that_fail,
}
