"""Tables as text."""

from __future__ import annotations

import io
import re
import shutil
import subprocess

import pandas as pd
import pytest

from ep_bench.report import merge, summary, tables
from ep_bench.report.scores import BY_NAME

AWKWARD = ["50% a_b", "α & β", "x^2 #1 {~} \\ $", "été | 中 <±>"]


@pytest.fixture
def table(tmp_path, make_study):
    def change(row):
        return None if row["method"] == AWKWARD[0] and row["dataset"] == "boston" and row["split"] > 16 else row

    merged = merge.merge([make_study(tmp_path / "s", AWKWARD, ["boston", "my_set"], 20, change=change)])
    return summary.score_table(merged, BY_NAME["rmse"]), summary.rankings(merged, BY_NAME["rmse"])[0]


def test_decimals_show_two_digits_of_the_error():
    assert tables.decimals([0.053, 0.08], [3.0]) == 3
    assert tables.decimals([0.18], [3.0]) == 2
    assert tables.decimals([12.0], [300.0]) == 0
    assert tables.decimals([0.0, float("nan")], [0.00612]) == 6
    assert tables.decimals([], []) == 2


def test_markdown_reports_missing_splits(table):
    text = tables.markdown(*table)
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert len(lines) == 5
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines}) == 1
    assert "17 of 20 splits" in lines[2]
    assert "17 of 20" not in lines[3]
    assert lines[4].startswith("| average rank (2 data sets)")
    assert "**" in lines[2]
    assert "ddof 0" in text


def test_csv_holds_every_cell_in_full(table):
    frame = pd.read_csv(io.StringIO(tables.long_csv([table[0]])))
    assert len(frame) == 8
    first = frame.iloc[0]
    assert (first["n_splits"], first["planned"]) == (17, 20)
    assert first["mean"] == pytest.approx(table[0].mean[0, 0], rel=1e-15)
    assert frame.groupby("dataset")["best"].sum().tolist() == [1, 1]


def test_latex_is_plain_and_balanced(table):
    text = tables.latex(*table)
    assert text.isascii()
    assert text.count("\\begin{") == text.count("\\end{")
    assert text.count("\\toprule") == text.count("\\bottomrule")
    assert r"50\% a\_b" in text
    assert r"$\alpha$ \& $\beta$" in text
    assert "(17/20)" in text
    assert "\\textbf{" in text
    columns = [len(spec) for spec in re.findall(r"\\begin\{tabular\}\{(\w+)\}", text)]
    assert sum(columns) - len(columns) == len(AWKWARD)


def test_every_special_letter_is_escaped():
    assert tables.escape("a_b%c&d#e$f") == r"a\_b\%c\&d\#e\$f"
    assert tables.escape("\\{}") == r"\textbackslash{}\{\}"
    assert tables.escape("é±中Jylänki") == "\\'{e}$\\pm$?Jyl\\\"{a}nki"


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
