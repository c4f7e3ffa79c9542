"""Tables and sentences of the page of findings on the literature."""

from __future__ import annotations

import re
from collections import Counter

from ep_bench.convergence import ConvergedSplits
from ep_bench.published import measured

from .markdown import table
from .stored import (
    PUBLISHED,
    ROOT,
    TextRow,
    all_results,
    cells,
    check_row,
    checked,
    convergence,
    rows_of,
    selected,
)  # fmt: skip

# RMSE, from trials outside this repository
FLOORS = {"kin8nm": 0.052, "power": 3.1, "protein": 3.3, "wine": 0.52, "year": 8.4}
EXCHANGED = ("australian", "pima")
OWN_CODE = ("GP-", "DGP-", "VI(KW)", "SGLD")


def _mean(row: TextRow) -> str:
    return measured(float(row["mean"]), float(row["stderr"]))


def pbp_details() -> list[str]:
    """Return protein and naval with the settings that give the printed rows, and with those of the text."""
    body = []
    settings = {"protein": ("20 epochs", "40 epochs"), "naval": ("constant 1", "constant 0")}
    for dataset, both in settings.items():
        for folder, method, setting in zip(("pbp-table-1", "pbp-plain"), ("PBP", "PBP-plain"), both, strict=True):
            for metric in ("rmse", "ll"):
                row = check_row(folder, source="hernandez-lobato2015", method=method, dataset=dataset, metric=metric)
                z = f"{float(row['z']):+.1f}"
                body.append([dataset, setting, metric.upper(), row["published_mean"], _mean(row), z, row["verdict"]])
    return table(["Data set", "Setting", "Score", "Printed", "ep-bench", "z", "Verdict"], body)


def exchanged_rows() -> list[str]:
    """Return printed and computed log-likelihoods of australian and pima."""
    body = []
    for method in ("GP", "DGP-1", "DGP-2", "DGP-3"):
        line = [method]
        for dataset in EXCHANGED:
            wanted = {"method": method, "dataset": dataset, "metric": "ll", "verdict": "disputed"}
            row = selected(checked("dgp-classes"), **wanted)[0]
            mark = convergence("dgp-classes", method, dataset).mark
            line += [row["published_mean"], f"{_mean(row)} {mark}".rstrip() + f" ({row['n_splits']} splits)"]
        body.append(line)
    return table(["Entry", *(f"{name}, {by}" for name in EXCHANGED for by in ("printed", "ep-bench"))], body)


def exchanged_verdicts() -> str:
    """Return how many numbers of australian and pima are reproduced, better and worse if they are exchanged."""
    rows = [row for row in checked("dgp-classes") if row["dataset"] in EXCHANGED and row["metric"] == "ll"]
    found = Counter(row["verdict"] for row in rows)
    judged = sum(found[verdict] for verdict in ("reproduced", "better", "worse"))
    agreeing = sum(row["verdict"] == "disputed" and abs(float(row["z"])) <= 2.0 for row in rows)
    return (
        f"As printed, {agreeing} of {found['disputed']} numbers agree within two standard errors. Exchanged, "
        f"{found['reproduced']} of {judged} are reproduced, {found['better']} are better than printed and "
        f"{found['worse']} are worse"
    )


def below_floors() -> dict[str, list[float]]:
    """Return the printed RMSEs of the own code of Bui et al. that are below a floor, by data set."""
    rows = selected(rows_of(PUBLISHED / "seed_tables.csv"), source="bui2015", table="4", metric="rmse")
    own = [(row["dataset"], float(row["mean"])) for row in rows if row["method"].startswith(OWN_CODE) and row["mean"]]
    return {name: [mean for dataset, mean in own if dataset == name and mean < floor] for name, floor in FLOORS.items()}


def floors() -> list[str]:
    """Return the number of printed RMSEs below each floor, and the best complete entry of the stored results."""
    below = below_floors()
    body = []
    for dataset, values in below.items():
        printed = [f"{FLOORS[dataset]:g}", f"{len(values)} of 12", f"{min(values):g} to {max(values):g}"]
        body.append([dataset, *printed, _lowest_mean(dataset)])
    body.append(["all ten data sets", "", f"{sum(map(len, below.values()))} of 120", "", ""])
    return table(["Data set", "Floor", "Printed cells below it", "Their values", "Lowest mean stored here"], body)


def _lowest_mean(dataset: str) -> str:
    """Return the lowest mean RMSE of an entry over splits without a gap, with the entry and its number of splits."""
    rows = all_results().ok()
    rows = rows[(rows["dataset"].str.split(" ").str[0] == dataset) & (rows["study"] != "gap")]
    found = rows.groupby(["method", "dataset"])["rmse"].agg(["mean", "count"])
    if found.empty:
        return "–"
    best = found.sort_values("mean").iloc[0]
    mark = all_results().convergence.get(best.name, ConvergedSplits()).mark
    splits = "1 split" if best["count"] == 1 else f"{best['count']:.0f} splits"
    return f"{best['mean']:.3g}{f' {mark}' if mark else ''} ({best.name[0]}, {splits})"


def power_floor() -> str:
    """Return the RMSE of the exact Gaussian process on split 0 of power, and the number of cells below other floors."""
    (row,) = (one for one in cells("gp", "GP", "power") if one["split"] == 0)
    others = sum(len(values) for dataset, values in below_floors().items() if dataset != "power")
    return (
        f"reaches {row['rmse']:.2f} on split 0 ([gp](../results/gp)). The three cells of power are below that value "
        f"too, but may be possible. Without power, the count is {others}."
    )


def tied_energy() -> str:
    """Return the tied energy and the evidence of untied EP on ten data points, which a test compares."""
    test = (ROOT / "tests" / "methods" / "test_dgp_ep_sites.py").read_text(encoding="utf-8")
    body = test[test.index("def test_on_ten_data_points") :]
    energy, evidence = (abs(float(one)) for one in re.findall(r"approx\((\S+),", body)[:2])
    return f"On ten data points it is {energy:.2f}, compared with {evidence:.2f}"


TABLES = {"pbp-details": pbp_details, "exchanged-rows": exchanged_rows, "floors": floors}
FACTS = [("findings.md", exchanged_verdicts), ("findings.md", power_floor), ("findings.md", tied_energy)]
