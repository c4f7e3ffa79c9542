"""Verdicts on the published numbers and claims."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import pandas as pd

from ep_bench import published
from ep_bench.experiments.figures import measures
from ep_bench.published.claims import FILE, Measured, load_claims
from ep_bench.report.claims import CLAIM_VERDICTS, claim_verdicts
from ep_bench.report.merge import merge_studies

from .forms import table
from .stored import OMITTED, RESULTS, all_results, experiments, own_numbers, rows_of, stored_study

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


@cache
def _claims() -> list[dict[str, Any]]:
    """Return the verdicts on all claims, in their order; those of omitted folders on claims of no other."""
    claims = load_claims(FILE)
    studies = [*all_results().studies, *map(stored_study, experiments())]
    stored = [RESULTS / folder / "claims.csv" for folder in OMITTED]
    rows = [row for path in stored if path.exists() for row in rows_of(path)]
    rows += claim_verdicts(merge_studies(studies), claims, sort=False)
    found = {(row["source"], row["place"], row["claim"]): row for row in rows}
    return [found[key] for one in claims if (key := (one.source, one.place, one.claim)) in found]


def claims_of(source: str) -> list[str]:
    """Return the claims of one paper: place, claim, what was found, and the verdict."""
    body = [
        ["" if row["place"] == before else row["place"], row["claim"], row["found"], row["verdict"]]
        for row, before in _with_places_before([row for row in _claims() if row["source"] == source])
    ]
    return table(["Place", "The paper", "Here", "Verdict"], body)


def _with_places_before(rows: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], str]]:
    return zip(rows, ["", *(row["place"] for row in rows)], strict=False)


def both_readings(folder: str, other: str) -> list[str]:
    """Return the verdicts on the claims about an experiment, also with the options of another study."""
    found = [measures(stored_study(name)) for name in (folder, other)]
    claims = [claim for claim in load_claims(FILE) if isinstance(claim, Measured) and claim.study == folder]
    body = [[claim.place, claim.claim, *(claim.finding(values).verdict for values in found)] for claim in claims]
    return table(["Place", "The paper", "Magnitude 9", "Magnitude 3"], body)


def claim_counts() -> list[str]:
    """Return the number of claims per paper and verdict."""
    found = [Counter(row["verdict"] for row in _claims() if row["source"] == source) for source in PAPERS]
    body = [
        [f"[{title}](papers/{source}.md)", *(str(counts[verdict]) for verdict in CLAIM_VERDICTS), str(counts.total())]
        for (source, (title, _)), counts in zip(PAPERS.items(), found, strict=True)
    ]
    return table(["Paper", *CLAIM_VERDICTS, "all"], body)


TABLES: dict[str, Callable[[], list[str]]] = {
    "papers": papers,
    "reproductions": reproductions,
    **{f"verdicts-{one}": partial(models_of, one) for one in ("hernandez-lobato2015", "bui2015", "jylanki2014")},
    **{f"claims-{one}": partial(claims_of, one) for one in PAPERS},
    "figure-3-jylanki2011": partial(both_readings, "student-t-convergence", "student-t-convergence-3"),
    "claim-counts": claim_counts,
}
