"""Tables as text."""

from __future__ import annotations

import io
import re
import shutil
import subprocess

import pandas as pd
import pytest

from ep_bench.report import merge, summary
from ep_bench.report import score_table_formats as tables
from ep_bench.report.scores import BY_NAME

AWKWARD = ["50% a_b", "α & β", "x^2 #1 {~} \\ $", "été | 中 <±>"]


@pytest.fixture
def table(tmp_path, make_study):
    def change(row):
        first = row["method"] == AWKWARD[0]
        if first and row["split"] > 16:
            return None
        slow = row["method"] == AWKWARD[1] and row["dataset"] == "my_set" and row["split"] < 3
        best = 0.1 if first or slow else 1.0
        return row | {"rmse": best * row["rmse"]} | ({"converged": "false"} if slow else {})

    merged = merge.merge([make_study(tmp_path / "s", AWKWARD, ["boston", "my_set"], 20, change=change)])
    return summary.score_table(merged, BY_NAME["rmse"]), summary.ranked_score(merged, BY_NAME["rmse"]).rankings[0]


def test_decimals_show_two_digits_of_the_error():
    assert tables.decimals([0.053, 0.08], [3.0]) == 3
    assert tables.decimals([0.18], [3.0]) == 2
    assert tables.decimals([0.18, 0.19, 30.0], [3.0]) == 2  # not those of the largest error
    assert tables.decimals([12.0], [300.0]) == 0
    assert tables.decimals([0.0, float("nan")], [0.00612]) == 6
    assert tables.decimals([], []) == 2


def entries(text):
    """The entries of a Markdown table by data set and method."""
    rows = [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in text.splitlines() if line[:1] == "|"
    ]
    return {row[0]: dict(zip(rows[0][1:], row[1:], strict=True)) for row in rows[2:]}


def test_markdown_marks_entries(table):
    text = tables.markdown(*table)
    found = entries(text)
    assert list(found)[-1] == "50% a_b"  # not ranked
    assert found["50% a_b"]["rank"] == "–"
    assert re.fullmatch(r"\([\d.]+ ± [\d.]+\)", found["50% a_b"]["boston"])  # lowest, but incomplete
    assert re.fullmatch(r"\*\*[\d.]+ ± [\d.]+†\*\*", found["α & β"]["my_set"])  # the best mean, though not converged
    for dataset in ("boston", "my_set"):
        assert sum(row[dataset].startswith("**") for row in found.values()) == 1


@pytest.mark.parametrize("score", ["rmse", "ll"])
def test_methods_are_sorted_by_their_means_on_a_single_data_set(tmp_path, make_study, score):
    merged = merge.merge([make_study(tmp_path / "s", ["b", "c", "a"], ["boston"], 5)])
    one = summary.score_table(merged, BY_NAME[score])
    means = one.mean[0, tables.order(one, None)]
    assert list(means) == sorted(means, reverse=score == "ll")
    assert len(set(means)) == 3


def test_csv_holds_every_cell_in_full(table):
    frame = pd.read_csv(io.StringIO(tables.long_csv([table[0]])))
    assert len(frame) == 8
    first = frame.iloc[0]
    assert (first["n_splits"], first["planned"]) == (17, 20)
    assert first["mean"] == pytest.approx(table[0].mean[0, 0], rel=1e-15)
    assert frame.groupby("dataset")["best"].sum().tolist() == [1, 1]


def test_latex_is_plain_and_balanced(table):
    text = tables.latex(*table)
    assert text.count("\\begin{") == text.count("\\end{")
    assert text.count("\\begin{tabular}") == text.count("\\toprule") == text.count("\\bottomrule") == 1
    assert r"50\% a\_b" in text
    assert r"$\alpha$ \& $\beta$" in text
    assert re.search(r"& \(\d", text)
    assert r"\rlap{\smash{$^\dagger$}}" in text
    assert text.count("\\textbf{") == 2
    rows = re.search(r"\\midrule\n(.*)\n\\bottomrule", text, re.DOTALL).group(1).splitlines()
    assert len(rows) == len(AWKWARD)
    assert {len(re.split(r"(?<!\\)&", row)) for row in rows} == {2 + 2}  # method, rank, data sets


def test_every_special_letter_is_escaped():
    assert tables.escape("a_b%c&d#e$f") == r"a\_b\%c\&d\#e\$f"
    assert tables.escape("\\{}") == r"\textbackslash{}\{\}"
    assert tables.escape("é±中Jylänki") == "é$\\pm$?Jylänki"


def has_booktabs():
    if shutil.which("pdflatex") is None or shutil.which("kpsewhich") is None:
        return False
    return bool(subprocess.run(["kpsewhich", "booktabs.sty"], capture_output=True, text=True, check=False).stdout)


@pytest.mark.slow
@pytest.mark.skipif(not has_booktabs(), reason="needs pdflatex with booktabs")
def test_latex_compiles(table, tmp_path):
    (tmp_path / "t.tex").write_text(tables.latex(*table), encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Overfull" not in done.stdout


@pytest.mark.parametrize(
    ("value", "places", "text"), [(1e-10, 8, "1e-10"), (0.0, 8, "0.00000000"), (0.001, 2, "0.00"), (2e7, 1, "2e+07")]
)
def test_numbers_that_need_an_exponent(value, places, text):
    assert tables.number(value, places) == text
