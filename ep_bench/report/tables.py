"""Score tables as Markdown, LaTeX and CSV."""

from __future__ import annotations

import io
import math
import unicodedata
from collections.abc import Sequence

import numpy as np
import pandas as pd

from ep_bench.report.summary import Ranking, ScoreTable

DAGGER = "†"
LINE_LETTERS = 115  # letters that fit across a LaTeX page


def decimals(stderr: Sequence[float], means: Sequence[float]) -> int:
    """Return the decimals that show two digits of the median standard error, or four digits of the mean without one."""
    errors = [e for e in stderr if math.isfinite(e) and e > 0.0]
    sizes = [abs(m) for m in means if math.isfinite(m) and m != 0.0]
    if errors:
        return min(max(1 - math.floor(math.log10(float(np.median(errors)))), 0), 8)
    return min(max(3 - math.floor(math.log10(float(np.median(sizes)))), 0), 8) if sizes else 2


def number(value: float, places: int) -> str:
    """Return a number with fixed decimals, or in scientific notation if it is too wide for a column."""
    return f"{value:.{places}f}" if abs(value) < 1e7 else f"{value:.3g}"


def cell(table: ScoreTable, i: int, j: int, places: int) -> str:
    """Return ``mean ± stderr`` of data set i and method j: the mean alone for one split, empty for none.

    A dagger marks means over splits of which some did not converge.
    """
    if not table.n[i, j]:
        return ""
    mean = number(table.mean[i, j], places)
    text = mean if table.n[i, j] == 1 else f"{mean} ± {number(table.stderr[i, j], places)}"
    return text + DAGGER if table.unconverged[i, j] else text


def shortfall(table: ScoreTable, i: int, j: int) -> str:
    """Return ``17 of 20 splits`` if splits are missing, ``not planned`` if no study has the cell, else nothing.

    Splits that ended ok without this score are not missing: point predictions have no log-likelihood.
    """
    n, planned = int(table.n[i, j]), int(table.planned[i, j])
    if not planned:
        return "not planned"
    return "" if n + table.without[i, j] == planned else f"{n} of {planned} splits"


def places_by_dataset(table: ScoreTable) -> list[int]:
    """Return the decimals of each data set's scores."""
    return [decimals(list(table.stderr[i]), list(table.mean[i])) for i in range(len(table.datasets))]


def caption(table: ScoreTable) -> str:
    """Return the caption: what the numbers and marks mean, and which test was used."""
    score = table.score
    text = f"{score.axis}: mean over test splits ± standard error (standard deviation with ddof 0 / √splits)"
    daggers = f" {DAGGER}: on some splits the method did not converge." if table.unconverged.any() else ""
    if not score.better:
        return f"{text}.{daggers}"
    return (
        f"{text}; {score.direction}.{daggers} Bold: the best of the methods with the most finished splits, and the "
        "methods not significantly worse at level 0.05. The test is a two-sided corrected resampled t-test (Nadeau and "
        "Bengio 2003), paired over common splits, with Holm's correction. With one split there is no test, and only "
        "the best is bold."
    )


def average_ranks(ranking: Ranking | None, methods: Sequence[str]) -> list[str]:
    """Return each method's average rank ± standard error over data sets as text, empty if it is not ranked."""
    if ranking is None:
        return []
    mean, n = ranking.ranks.mean(axis=0), ranking.n
    error = ranking.ranks.std(axis=0, ddof=0) / math.sqrt(n)
    return [f"{mean[name]:.2f} ± {error[name]:.2f}" if name in mean.index else "" for name in methods]


def markdown(table: ScoreTable, ranking: Ranking | None = None) -> str:
    """Return the table as GitHub Markdown, with its caption first."""
    lines = [caption(table), "", pipes(["data set", *table.methods]), pipes(["---", *["---:"] * len(table.methods)])]
    for i, (dataset, places) in enumerate(zip(table.datasets, places_by_dataset(table), strict=True)):
        cells = [_markdown_cell(table, i, j, places) for j in range(len(table.methods))]
        lines.append(pipes([dataset, *cells]))
    if ranking is not None:
        lines.append(pipes([f"average rank ({ranking.n} data sets)", *average_ranks(ranking, table.methods)]))
    return "\n".join(lines) + "\n"


def _markdown_cell(table: ScoreTable, i: int, j: int, places: int) -> str:
    text, short = cell(table, i, j, places), shortfall(table, i, j)
    text = f"**{text}**" if table.marked[i, j] else text
    return f"{text} ({short})" if text and short else text or short or "–"


def pipes(words: Sequence[str]) -> str:
    """Return one row of a Markdown table."""
    return "| " + " | ".join(word.replace("|", "\\|") for word in words) + " |"


def long_csv(tables: Sequence[ScoreTable]) -> str:
    """Return every cell of all tables as CSV, one line each, in full precision."""
    lines = [
        {
            "score": t.score.name,
            "dataset": dataset,
            "method": method,
            "mean": t.mean[i, j],
            "stderr": t.stderr[i, j] if t.n[i, j] else math.nan,
            "n_splits": t.n[i, j],
            "planned": t.planned[i, j],
            "best": int(t.best[i] == j) if t.score.better else "",
            "marked": int(t.marked[i, j]) if t.score.better else "",
            "p_against_best": t.p[i, j],
        }
        for t in tables
        for i, dataset in enumerate(t.datasets)
        for j, method in enumerate(t.methods)
    ]
    out = io.StringIO()
    pd.DataFrame(lines).to_csv(out, index=False, lineterminator="\n")
    return out.getvalue()


# LaTeX

_SPECIAL = {
    "[": "{[}",  # at the start of a line it would be an argument of the preceding line break
    "]": "{]}",
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "%": r"\%", "_": r"\_", "&": r"\&", "#": r"\#", "$": r"\$",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"$<$", ">": r"$>$", "|": r"$|$", '"': "''",
    "±": r"$\pm$", "†": r"$^\dagger$", "×": r"$\times$", "√": r"$\surd$", "–": "--", "−": "$-$", "²": "$^2$",
    "α": r"$\alpha$", "β": r"$\beta$", "γ": r"$\gamma$", "λ": r"$\lambda$", "ν": r"$\nu$", "σ": r"$\sigma$",
    "τ": r"$\tau$",
}  # fmt: skip
HEAD = r"""% Compiles on its own; with \usepackage{standalone} another document can \input it.
\documentclass{article}
\usepackage[margin=1cm]{geometry}
\usepackage{booktabs}
\pagestyle{empty}
\begin{document}
"""


def escape(text: str) -> str:
    """Return text with LaTeX's special characters escaped. Other letters become their base letter or ``?``."""
    return "".join(_SPECIAL.get(letter) or _plain(letter) for letter in text)


_ACCENTS = {
    "\u0300": r"\`", "\u0301": r"\'", "\u0302": r"\^", "\u0303": r"\~", "\u0308": r'\"', "\u030a": r"\r",
    "\u030c": r"\v", "\u0327": r"\c",
}  # fmt: skip


def _plain(letter: str) -> str:
    if ord(letter) < 128:
        return letter if letter.isprintable() else " "
    letters = unicodedata.normalize("NFKD", letter)
    base, marks = letters[0], letters[1:]
    if ord(base) >= 128:
        return "?"
    accent = _ACCENTS.get(marks)
    return f"{accent}{{{base}}}" if accent else base


def latex(table: ScoreTable, ranking: Ranking | None = None) -> str:
    """Return the table as a LaTeX document with booktabs. Methods that do not fit next to each other continue below."""
    body = "\n\n\\medskip\n".join(_tabular(table, ranking, block) for block in _blocks(table))
    head = f"{HEAD}\\begin{{table}}[p]\n\\centering\n\\footnotesize\n\\caption{{{escape(caption(table))}}}\n"
    return f"{head}\\medskip\n{body}\n\\end{{table}}\n\\end{{document}}\n"


def _blocks(table: ScoreTable) -> list[list[int]]:
    """Return groups of methods (columns) that fit across the page."""
    first = max(len(name) for name in (*table.datasets, "average rank (N = 10)"))
    blocks: list[list[int]] = []
    free = 0
    for j, method in enumerate(table.methods):
        cells = [len(cell(table, i, j, p) + _fraction(table, i, j)) for i, p in enumerate(places_by_dataset(table))]
        width = 3 + max(len(method), *cells)
        if not blocks or width > free:
            blocks.append([])
            free = LINE_LETTERS - first
        blocks[-1].append(j)
        free -= width
    return blocks


def _tabular(table: ScoreTable, ranking: Ranking | None, columns: Sequence[int]) -> str:
    lines = [f"\\begin{{tabular}}{{l{'r' * len(columns)}}}", "\\toprule"]
    lines += [_ampersands(["data set", *(table.methods[j] for j in columns)]), "\\midrule"]
    for i, (dataset, places) in enumerate(zip(table.datasets, places_by_dataset(table), strict=True)):
        lines.append(_ampersands([dataset]).removesuffix(" \\\\"))
        cells = [_latex_cell(table, i, j, places) for j in columns]
        lines[-1] += "".join(f" & {text}" for text in cells) + " \\\\"
    if ranking is not None:
        texts = average_ranks(ranking, table.methods)
        lines += ["\\midrule", _ampersands([f"average rank (N = {ranking.n})", *(texts[j] for j in columns)])]
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}"])


def _latex_cell(table: ScoreTable, i: int, j: int, places: int) -> str:
    text = escape(cell(table, i, j, places)).replace("-", "$-$") or "--"
    return (f"\\textbf{{{text}}}" if table.marked[i, j] else text) + _fraction(table, i, j)


def _fraction(table: ScoreTable, i: int, j: int) -> str:
    """Return `` (17/20)`` if splits are missing, else nothing."""
    n, planned = int(table.n[i, j]), int(table.planned[i, j])
    return f" ({n}/{planned})" if n + table.without[i, j] < planned else ""


def _ampersands(words: Sequence[str]) -> str:
    return " & ".join(escape(word) for word in words) + " \\\\"
