"""The published tables: descriptions, corrected misprints, spreads converted to standard errors."""

from __future__ import annotations

import hashlib
import math
import re
import subprocess
import sys
from collections import Counter

import pytest

from ep_bench.published import load_published
from ep_bench.published.sources import load_sources
from ep_bench.published.values import last_unit, printed_rows, table_files

TRUSTS = {"sound", "disputed", "unexamined", "indicative", "yardstick"}


@pytest.fixture(scope="module")
def published():
    return load_published()


def row(published, **where):
    for key, value in where.items():
        published = published[published[key] == value]
    (found,) = published.to_dict("records")
    return found


def test_every_printed_row_is_there_and_described(published):
    assert len(published) == len(printed_rows())
    columns = ("source", "table", "method", "dataset", "metric", "mean", "stderr", "note")
    assert {(*row, *(type(value) for value in row.values())) for row in printed_rows()} == {(*columns, *[str] * 8)}
    for record in published.to_dict("records"):
        assert record["citation"]
        assert record["protocol"]
        assert record["why"]
        assert record["trust"] in TRUSTS
        if record["printed_mean"]:
            assert math.isfinite(record["mean"])
            assert record["unit"] > 0
        else:
            assert math.isnan(record["mean"])
        assert math.isnan(record["stderr"]) or record["stderr"] >= 0
        assert record["n_splits"] >= 1


CHECKSUMS = {  # sha256 of every file of tables/, in the order of their rows
    "seed_tables.csv": "1a9640bf908028cc3b6a2e21f02a07130fc1ee955dd46684703c0f9f9127f014",
    "later_tables.csv": "ef9c71bd70290e5244374d4d79a5fed8ebbcc7de49fc2406cb81218d54048bc5",
    "measured_tables.csv": "7582b1580a2f1439eca01ecb38df7ec939ded44cbef9f0e5b1e5f5a2c5298b85",
    "boosting_tables.csv": "2117712abf2c33b15796002a8b17403823289433fd855ccd40cbe9eeffc4d874",
    "gap_tables.csv": "8fecde9c1cf2920587e3c1c229c5db0118fd6364cf23af49c8cac62dc8084842",
    "subspace_tables.csv": "30cc88d04be4e3bc7631d4ad40115fb6dd356dea95dd6f4277762e8341c0abaf",
    "tagi_tables.csv": "a3b09745fdf40c85bcd9a394418c3b8cada647ce4aff0bd0f41af999afe90ba5",
}


def test_no_published_number_was_changed():
    found = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in table_files()}
    assert list(found) == list(CHECKSUMS), "add the sha256 of a new table to CHECKSUMS in this file"
    changed = [name for name, checksum in CHECKSUMS.items() if found[name] != checksum]
    assert not changed, f"{changed}: compare the change with the paper, then correct CHECKSUMS in this file"


def test_no_number_is_listed_twice():
    places = Counter((r["source"], r["table"], r["method"], r["dataset"], r["metric"]) for r in printed_rows())
    twice = [place for place, count in places.items() if count > 1]
    assert not twice, "the tables have two lines of these numbers; remove one"


def test_sources_describe_nothing_that_is_not_there():
    described = {(table.source, table.table) for table in load_sources().tables}
    printed = {(r["source"], r["table"]) for r in printed_rows()}
    assert described == printed, "sources.yaml has entries of tables without a row"
    for table in load_sources().tables:
        rows = [r for r in printed_rows() if (r["source"], r["table"]) == (table.source, table.table)]
        every = {key: {r[key] for r in rows} for key in ("method", "dataset", "metric")}
        in_protocol = every["dataset"] | {"protein", "year"}  # numbers of splits of a protocol, in the table or not
        named = {
            ("method", "columns"): {name for column in table.columns for name in column.methods},
            ("method", "exchanged"): {name for exchange in table.exchanged for name in exchange.methods},
            ("method", "compared"): {name for entries in table.compared for name in entries.methods},
            ("dataset", "exchanged"): {name for exchange in table.exchanged for name in exchange.datasets},
            ("dataset", "remarks"): {remark.dataset for remark in table.remarks} - {None},
            ("dataset", "splits.counts"): set(table.splits.counts) - in_protocol,
            ("dataset", "splits.others, points, aliases"): {*table.splits.others, *table.points, *table.aliases},
            ("metric", "point_spreads"): {*table.point_spreads, *table.point_spreads.values()},
        }
        for (key, place), names in named.items():
            unknown = names - every[key]
            assert not unknown, f"sources.yaml, {table.source} {table.table}: {place}: no row has the {key} {unknown}"
        assert all(set(remark.methods) & every["method"] for remark in table.remarks)


LARGER = ("5", "6")  # tables of Izmailov et al. 2019 on the sets with published folds


def test_random_splits_of_a_table_s_own_have_the_standard_ones_as_kindred(published):
    known = {"wu2019-dvi": ("shuffle", 20), "star-dgp": ("shuffle", 10), "subspace-inference": ("shuffle", 20)}
    known["xgboost-distribution"] = ("kfold", 10)
    of_folds = published["kindred_scheme"] == "folds"
    for source, (scheme, own) in known.items():
        mine = published[(published["source"] == source) & ~published["table"].isin(LARGER)]
        assert set(mine["scheme"]) == {scheme}
        assert set(mine.loc[mine["dataset"] != "year", "n_splits"]) == {own}
        assert set(mine["kindred_scheme"]) == {"standard"}
        needed = dict(zip(mine["dataset"], mine["kindred_splits"], strict=True))
        assert needed == {name: {"protein": 5, "year": 1}.get(name, 20) for name in needed}
    others = published[~published["source"].isin(known) & ~of_folds]
    assert set(others["kindred_scheme"]) == {""}
    assert set(others["kindred_splits"]) == {0}


def test_random_splits_of_the_sets_with_published_folds_have_these_as_kindred(published):
    own = published[(published["source"] == "subspace-inference") & published["table"].isin(LARGER)]
    schemes = own.groupby("name")[["scheme", "kindred_scheme", "n_splits", "kindred_splits"]].agg(set)
    assert set(published.loc[published["kindred_scheme"] == "folds", "name"]) == set(schemes.index) - {"protein"}
    for name, row_of in schemes.iterrows():
        expected = ("", "", 10, 0) if name == "protein" else ("shuffle", "folds", 10, 10)
        assert row_of.tolist() == [{one} for one in expected], "protein has another target there: never compared"


# The lines of tables 5 and 6 of the supplement, page 6, as printed; a dash for an empty cell. The cell -0.05±0.05 of
# skillcraft is printed in the column OrthVGP, with an empty cell in NL.
PRINTED = {
    "5": """
        method      SGD  PCA+ESS (SI)  PCA+VI (SI)  SWAG  DKL  OrthVGP  FF  NL
        elevators   0.092±0.003  0.093±0.004  0.090±0.002  0.090±0.002  0.084±0.02  0.0952  0.089±0.002  0.097±0.003
        keggD       0.121±0.003  0.137±0.031  0.137±0.032  0.138±0.032  0.10±0.01  0.1198  0.12±0.00  0.121±0.005
        keggU       0.125±0.024  0.125±0.023  0.125±0.023  0.125±0.023  0.11±0.00  0.1172  0.12±0.00  0.122±0.008
        protein     0.443±0.009  0.440±0.007  0.444±0.009  0.447±0.011  0.46±0.01  0.46071  0.47±0.01  0.445±0.008
        skillcraft  0.284±0.015  0.286±0.016  0.276±0.015  0.298±0.015  0.25±0.00  -  0.25±0.02  0.253±0.05
        pol         3.018±0.310  2.446±0.151  2.427±0.161  2.452±0.156  3.11±0.07  6.61749  4.30±0.2  4.09±1.25
    """,
    "6": """
        method      SGD  PCA+ESS (SI)  PCA+VI (SI)  SWAG  OrthVGP  NL
        elevators   -0.538±0.108  -0.397±0.05  -0.380±0.041  -0.395±0.030  -0.4479  0.803±0.04
        keggD       0.985±0.022  0.995±0.104  0.988±0.106  0.984±0.114  1.0224  0.675±0.05
        keggU       0.700±0.046  0.707±0.032  0.702±0.043  0.707±0.038  0.7007  0.664±0.05
        protein     -0.861±0.027  -0.834±0.021  -0.849±0.025  -0.861±0.031  -0.9138  -0.619±0.01
        skillcraft  -1.147±0.035  -1.159±0.034  -1.109±0.036  -1.181±0.032  -  -0.05±0.05
        pol         1.290±0.1834  1.737±0.043  1.728±0.076  1.680±0.075  0.1586  -2.84±0.226
    """,
}


@pytest.mark.parametrize(("table", "count"), [("5", 47), ("6", 35)])
def test_the_numbers_of_the_larger_sets_are_those_of_the_page(published, table, count):
    (_, *methods), *lines = [re.split(" {2,}", line.strip()) for line in PRINTED[table].strip().splitlines()]
    own = published[(published["source"] == "subspace-inference") & (published["table"] == table)]
    texts = own["printed_mean"] + ("±" + own["printed_stderr"]).where(own["printed_stderr"] != "", "")
    found = dict(zip(zip(own["dataset"], own["method"], strict=True), texts, strict=True))
    page = {(name, method): text for name, *cells in lines for method, text in zip(methods, cells, strict=True)}
    assert found == {place: text for place, text in page.items() if text != "-"}
    assert len(found) == count


def test_the_last_layers_of_the_larger_sets_are_of_the_unscaled_target_and_two_are_exchanged(published):
    own = published[(published["source"] == "subspace-inference") & published["table"].isin(LARGER)]
    last = own[own["method"] == "NL"].set_index(["dataset", "metric"])
    assert {metric for _, metric in last.index} == {"rmse", "ll"}
    assert set(own.loc[(own["table"] == "6") & (own["method"] != "NL"), "metric"]) == {"lpd-mean"}
    assert [last.loc[("keggD", metric), "mean"] for metric in ("rmse", "ll")] == [0.122, 0.664]
    assert [last.loc[("keggU", metric), "mean"] for metric in ("rmse", "ll")] == [0.121, 0.675]
    assert last.loc[("keggU", "rmse"), "stderr"] == pytest.approx(0.005 / math.sqrt(10))
    assert set(own.loc[own["method"].isin(["DKL", "FF", "OrthVGP"]), "repeats"]) == {
        "wilson2016", "yang2015", "salimbeni2018",
    }  # fmt: skip


def test_a_column_has_one_description_in_its_table():
    for table in load_sources().tables:
        named = [(m, d) for column in table.columns for m in column.methods for d in column.datasets or ("others",)]
        assert len(set(named)) == len(named)


@pytest.mark.parametrize(
    ("dataset", "metric", "mean", "stderr", "n"),
    [
        ("boston", "rmse", 3.014, 0.1800, 20),
        ("boston", "ll", -2.574, 0.089, 20),
        ("naval", "rmse", 0.006, 0.0, 20),
        ("protein", "ll", -2.973, 0.003, 5),
        ("year", "rmse", 8.879, math.nan, 1),
    ],
)
def test_pbp_of_table_1(published, dataset, metric, mean, stderr, n):
    found = row(published, source="hernandez-lobato2015", table="1", method="PBP", dataset=dataset, metric=metric)
    assert found["mean"] == mean
    assert found["stderr"] == stderr or (math.isnan(stderr) and math.isnan(found["stderr"]))
    assert (found["n_splits"], found["scheme"], found["trust"]) == (n, "standard", "sound")


def test_power_and_protein_of_dropout_are_exchanged_back(published):
    power = row(published, table="3", method="Dropout-1", dataset="power")
    protein = row(published, table="3", method="Dropout-1", dataset="protein")
    assert (power["printed_mean"], power["mean"]) == ("-2.89", -2.80)
    assert (protein["printed_mean"], protein["mean"]) == ("-2.80", -2.89)
    assert power["stderr"] == pytest.approx(0.05 / math.sqrt(20))
    assert protein["stderr"] == pytest.approx(0.01 / math.sqrt(5))
    assert "exchanged" in power["correction"]
    quoted = row(
        published, source="lakshminarayanan2017", method="MC-dropout-1 (as quoted)", dataset="power", metric="ll"
    )
    assert quoted["mean"] == power["mean"]


def test_standard_deviations_become_standard_errors(published):
    dropout = row(published, table="4", method="Dropout-1", dataset="boston")
    assert dropout["stderr"] == pytest.approx(0.85 / math.sqrt(20))
    ensemble = row(published, method="Deep ensemble M=5", dataset="protein", metric="rmse")
    assert ensemble["stderr"] == pytest.approx(0.06 / math.sqrt(5))
    assert row(published, table="4", method="PBP-1", dataset="boston")["stderr"] == 0.18
    assert row(published, table="4", method="Dropout-1", dataset="average-rank")["stderr"] == 0.62


def test_spreads_over_points_become_standard_errors_of_the_mean(published):
    found = row(published, source="jylanki2014", method="NN-EP-LA", dataset="boston", metric="lpd-mean")
    assert found["stderr"] == pytest.approx(1.64 / math.sqrt(506))
    assert (found["units"], found["scheme"], found["folds"], found["n_splits"]) == ("normalised", "kfold", 10, 10)


def test_wine_means_another_set_in_classification(published):
    assert row(published, source="bui2015", table="2", method="GP", dataset="wine")["name"] == "wine-cultivars"
    assert row(published, source="bui2015", table="4", method="PBP-1", dataset="wine")["name"] == "wine"
    assert set(published[published["dataset"] == "crime"]["name"]) == {"communities"}


def test_a_column_of_bui_is_disputed_on_the_data_sets_with_evidence_against_it(published):
    own = published[(published["source"] == "bui2015") & published["table"].isin(["3", "4"])]
    trust = own.set_index(["method", "dataset"])["trust"]
    assert {*trust["GP-50", "boston"], *trust["GP-100", "kin8nm"], *trust["DGP-1-50", "year"]} == {"disputed"}
    assert {*trust["GP-100", "boston"], *trust["GP-50", "kin8nm"], *trust["DGP-1-50", "wine"]} == {"unexamined"}


def test_the_disputed_columns_are_those_of_bui(published):
    disputed = published[published["trust"] == "disputed"]
    assert set(disputed["source"]) == {"bui2015"}
    assert set(disputed["table"]) == {"3", "4"}
    assert {name.split("-")[0].split("(")[0] for name in disputed["method"]} == {"VI", "SGLD", "GP", "DGP"}
    assert "VI(G)-1" not in set(disputed["method"])


@pytest.mark.parametrize(("text", "unit"), [("4.320", 0.001), ("13", 1.0), ("-2.9", 0.1), ("0.0000", 1e-4)])
def test_the_unit_of_the_last_printed_digit(text, unit):
    assert last_unit(text) == pytest.approx(unit)


def test_zeros_lost_in_a_copy_do_not_widen_the_unit(published):
    found = row(published, source="lakshminarayanan2017", method="Deep ensemble M=5", dataset="kin8nm", metric="ll")
    assert (found["printed_mean"], found["unit"]) == ("1.2", 0.01)


def test_the_package_loads_neither_numba_nor_pandas():
    code = "import sys, ep_bench.published; print(sorted({'numba', 'pandas', 'scipy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
