"""Score tables as Markdown, LaTeX and CSV."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from ep_bench import published
from ep_bench.convergence import DAGGER, NEARLY, R_HAT, RING
from ep_bench.report.significance import ALPHA, FEWEST_BLOCKS
from ep_bench.report.summary import Ranking, ScoreTable
from ep_bench.results.spreadsheets import harmless

EQUAL = "≈"  # marks entries that the test does not distinguish from the best
LINE_LETTERS = 115  # letters that fit across a LaTeX page


def decimals(stderr: Sequence[float], means: Sequence[float]) -> int:
    """Return the decimals that show two digits of the median standard error, or four digits of the mean without one."""
    errors = [e for e in stderr if math.isfinite(e) and e > 0.0]
    sizes = [abs(m) for m in means if math.isfinite(m) and m != 0.0]
    if errors:
        return published.error_decimals(float(np.median(errors)))
    return min(max(3 - math.floor(math.log10(float(np.median(sizes)))), 0), published.MOST_DECIMALS) if sizes else 2


def number(value: float, places: int) -> str:
    """Return a number with fixed decimals, or in scientific notation if it is too wide for a column."""
    too_small = places >= published.MOST_DECIMALS and 0.0 < abs(value) < 100.0 * 10.0**-places
    return f"{value:.3g}" if too_small or abs(value) >= 1e7 else f"{value:.{places}f}"


def cell(table: ScoreTable, i: int, j: int, places: int) -> str:
    """Return ``mean ± stderr`` of data set i and method j, with its marks: the mean alone for one split, else empty.

    The marks are those of convergence, and the sign of entries that the test does not distinguish from the best.
    """
    if not table.n[i, j]:
        return ""
    mean = number(table.mean[i, j], places)
    text = mean if table.n[i, j] == 1 else f"{mean} ± {number(table.stderr[i, j], places)}"
    return text + table.converged[i][j].mark + (f" {EQUAL}" if table.equal[i, j] else "")


def shortfall(table: ScoreTable, i: int, j: int) -> str:
    """Return ``17 of 20 splits`` if splits of a planned entry are missing or lack this score, else nothing.

    If no split has it, nothing is missing: point predictions have no log-likelihood.
    """
    n, plan = int(table.n[i, j]), int(table.plan[i])
    if not table.planned[i, j] or n == plan or (not n and table.without[i, j] == plan):
        return ""
    return f"{n} of {plan} splits" + " with this score" * bool(table.without[i, j])


def details(table: ScoreTable, i: int, j: int) -> str:
    """Return the small print of an entry: missing splits, and the fraction of converged splits if it is not 1."""
    converged = table.converged[i][j].shortfall if table.n[i, j] else ""
    return ", ".join(text for text in (shortfall(table, i, j), converged) if text)


def is_incomplete(table: ScoreTable, i: int, j: int) -> bool:
    """Return whether an entry has a mean over some of the planned splits only."""
    return bool(table.n[i, j] and not table.complete[i, j])


def places_by_dataset(table: ScoreTable) -> list[int]:
    """Return the decimals of each data set's scores."""
    return [decimals(list(table.stderr[i]), list(table.mean[i])) for i in range(len(table.datasets))]


def caption(table: ScoreTable) -> str:
    """Return the caption: what the numbers mean, which test was used, and what restricts the comparison."""
    score = table.score
    text = f"{score.axis}: mean over test splits ± standard error (standard deviation with ddof 0 / √splits)"
    return " ".join([f"{text}{f'; {score.direction}' if score.better else ''}.", *_restrictions(table)])


def _restrictions(table: ScoreTable) -> Iterator[str]:
    compared = [bool(np.isfinite(p).any()) for p in table.p]
    names: dict[str, list[str]] = {}
    for dataset, test, is_tested in zip(table.datasets, table.tests, compared, strict=True):
        if is_tested:
            names.setdefault(test.name, []).append(dataset)
    several = len(names) > 1
    tests = "; ".join(name + (f" on {', '.join(found)}" if several else "") for name, found in names.items())
    if tests:
        yield f"Test against the best: {tests}, two-sided, over common splits, with Holm's correction."
    flagged = [
        f"{table.methods[j]}{mark} on {dataset}"
        for i, (dataset, j) in enumerate(zip(table.datasets, table.best.tolist(), strict=True))
        if compared[i] and (mark := table.converged[i][j].mark)
    ]
    alone = [dataset for dataset, one in zip(table.datasets, table.is_alone.tolist(), strict=True) if one]
    if alone and table.score.better:
        yield f"Only one entry is complete on {', '.join(alone)}: its bold mean is compared with no other."
    if flagged:
        yield f"The tests compare with a best entry that has not converged on every split: {', '.join(flagged)}."
    if table.unbounded:
        yield f"The log-likelihood has no upper bound on {', '.join(table.unbounded.values())}: compare by CRPS there."


# Lines of the legend
BOLD = "Bold: the best mean of the complete entries, which have all planned splits of a data set; all of equal means."
BOLD_DAGGER = f"A best mean with a {DAGGER} is not bold."
EQUAL_ENTRY = f"{EQUAL}: a complete entry that the test does not distinguish from the best at level {ALPHA:g}."
EMPTY = "Empty or a dash: not planned by any study, or a score that the method does not have."
GREY = "Grey or in parentheses: incomplete entries, neither tested nor ranked, and sorted last."
DAGGER_ENTRY = f"{DAGGER}: on some splits the method has not converged (a sampler: R-hat above {NEARLY:g})."
RING_ENTRY = f"{RING}: on some splits R-hat of the worst test prediction is above {R_HAT:g} and at most {NEARLY:g}."
COUNTS = "The numbers of converged and other splits are next to the mean, unless all have converged."


def legend(tables: Sequence[ScoreTable]) -> list[str]:
    """Return the meaning of the marks that occur in some tables."""
    splits = [one for table in tables for row in table.converged for one in row]
    marks = {one.mark for one in splits}
    compared = [table for table in tables if table.score.better]
    occurs = {
        BOLD: bool(compared),
        BOLD_DAGGER: bool(compared) and DAGGER in marks,
        EQUAL_ENTRY: any(table.equal.any() for table in compared),
        EMPTY: any((table.n == 0).any() for table in tables),
        GREY: any((table.n > 0)[~table.complete].any() for table in tables),
        DAGGER_ENTRY: DAGGER in marks,
        RING_ENTRY: RING in marks,
        COUNTS: any(one.shortfall for one in splits),
    }
    return [line for line, shown in occurs.items() if shown]


def full_caption(table: ScoreTable) -> str:
    """Return the caption with the meaning of the marks, for a table outside the page of the report."""
    return " ".join([caption(table), *legend([table])])


def order(table: ScoreTable, ranking: Ranking | None) -> list[int]:
    """Return the columns of the methods by average rank, then those without a rank, then those never complete."""
    if not table.score.better:
        return list(range(len(table.methods)))
    average = {} if ranking is None else {str(name): float(rank) for name, rank in ranking.average.items()}
    whole = [bool(column.any()) for column in table.complete.T]
    return sorted(range(len(table.methods)), key=lambda j: (average.get(table.methods[j], math.inf), not whole[j]))


def average_ranks(ranking: Ranking | None, methods: Sequence[str]) -> list[str]:
    """Return each method's average rank as text, empty if it is not ranked.

    A standard error over blocks is added from ``FEWEST_BLOCKS`` blocks: that of two equal ranks would be 0.
    """
    if ranking is None:
        return []
    mean = ranking.ranks.mean(axis=0)
    error = ranking.ranks.std(axis=0, ddof=0) / math.sqrt(ranking.n)
    several = ranking.n >= FEWEST_BLOCKS
    texts = {str(name): f"{mean[name]:.2f}" + (f" ± {error[name]:.2f}" if several else "") for name in mean.index}
    return [texts.get(name, "") for name in methods]


def markdown(table: ScoreTable, ranking: Ranking | None = None) -> str:
    """Return the table as GitHub Markdown, after its caption with the meaning of the marks."""
    columns = order(table, ranking)
    methods = [table.methods[j] for j in columns]
    lines = [full_caption(table), "", pipes(["data set", *methods]), pipes(["---", *["---:"] * len(methods)])]
    for i, (dataset, places) in enumerate(zip(table.datasets, places_by_dataset(table), strict=True)):
        lines.append(pipes([dataset, *(_markdown_cell(table, i, j, places) for j in columns)]))
    if ranking is not None:
        lines.append(pipes([f"average rank ({ranking.count})", *average_ranks(ranking, methods)]))
    return "\n".join(lines) + "\n"


def pipes(words: Sequence[str]) -> str:
    """Return one row of a Markdown table."""
    return "| " + " | ".join(plain_markdown(word).replace("|", "\\|") for word in words) + " |"


def plain_markdown(text: str) -> str:
    """Return a text in which Markdown finds no HTML, no link and no picture."""
    return re.sub(r"&(?=#?\w+;)", "&amp;", text).replace("<", "&lt;").replace("](", "]\\(")


def _markdown_cell(table: ScoreTable, i: int, j: int, places: int) -> str:
    text, small = cell(table, i, j, places), details(table, i, j)
    if not text:
        return small or "–"
    if is_incomplete(table, i, j):
        return f"({text}; {small})"
    text = f"**{text}**" if table.is_bold[i, j] else text
    return f"{text} ({small})" if small else text


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
            "best": int(t.is_best[i, j]) if t.score.better else "",
            "marked": int(t.marked[i, j]) if t.score.better else "",
            "p_against_best": t.p[i, j],
            "test": t.tests[i].name if math.isfinite(t.p[i, j]) else "",
            "complete": int(t.complete[i, j]),
            "converged": t.converged[i][j].converged,
            "judged": t.converged[i][j].judged,
            "not_converged": t.converged[i][j].unconverged,
            "mark": t.converged[i][j].mark,
        }
        for t in tables
        for i, dataset in enumerate(t.datasets)
        for j, method in enumerate(t.methods)
    ]
    out = io.StringIO()
    pd.DataFrame(lines).map(harmless).to_csv(out, index=False, lineterminator="\n")
    return out.getvalue()


# LaTeX

_SPECIAL = {
    "[": "{[}",  # at the start of a line it would be an argument of the preceding line break
    "]": "{]}",
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "%": r"\%", "_": r"\_", "&": r"\&", "#": r"\#", "$": r"\$",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"$<$", ">": r"$>$", "|": r"$|$", '"': "''",
    "±": r"$\pm$", "†": r"$^\dagger$", "×": r"$\times$", "√": r"$\surd$", "–": "--", "−": "$-$", "²": "$^2$",
    "α": r"$\alpha$", "β": r"$\beta$", "γ": r"$\gamma$", "λ": r"$\lambda$", "ν": r"$\nu$", "σ": r"$\sigma$",
    "τ": r"$\tau$", "≈": r"$\approx$", "°": r"$^\circ$",
}  # fmt: skip
HEAD = r"""% Compiles on its own; with \usepackage{standalone} another document can \input it.
\documentclass{article}
\usepackage[margin=1cm]{geometry}
\usepackage{booktabs}
\usepackage{xcolor}
\pagestyle{empty}
\begin{document}
"""


def escape(text: str) -> str:
    """Return text with LaTeX's special characters escaped. Letters that are not Latin become ``?``."""
    return "".join(_SPECIAL.get(letter) or (letter if letter.isprintable() else " ") for letter in map(_latin, text))


def _latin(letter: str) -> str:
    return letter if ord(letter) < 0x180 or letter in _SPECIAL else "?"


def latex(table: ScoreTable, ranking: Ranking | None = None) -> str:
    """Return the table as a LaTeX document with booktabs. Methods that do not fit next to each other continue below."""
    blocks = _blocks(table, order(table, ranking))
    body = "\n\n\\medskip\n".join(_tabular(table, ranking, block) for block in blocks)
    head = f"{HEAD}\\begin{{table}}[p]\n\\centering\n\\footnotesize\n\\caption{{{escape(full_caption(table))}}}\n"
    return f"{head}\\medskip\n{body}\n\\end{{table}}\n\\end{{document}}\n"


def _blocks(table: ScoreTable, columns: Sequence[int]) -> list[list[int]]:
    """Return groups of methods (columns) that fit across the page."""
    first = max(len(name) for name in (*table.datasets, "average rank (N = 10)"))
    blocks: list[list[int]] = []
    free = 0
    for j in columns:
        cells = [len(cell(table, i, j, p) + _fractions(table, i, j)) for i, p in enumerate(places_by_dataset(table))]
        width = 3 + max(len(table.methods[j]), *cells)
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
    if is_incomplete(table, i, j):
        return f"\\textcolor{{gray}}{{({text}{_fractions(table, i, j)})}}"
    return (f"\\textbf{{{text}}}" if table.is_bold[i, j] else text) + _fractions(table, i, j)


def _fractions(table: ScoreTable, i: int, j: int) -> str:
    """Return `` (17/20)`` if splits are missing, and the counts of converged splits if some have not converged."""
    n, plan, converged = int(table.n[i, j]), int(table.plan[i]), table.converged[i][j]
    parts = [f"{n}/{plan}"] if shortfall(table, i, j) else []
    parts += [converged.shortfall] if n and converged.shortfall else []
    return f" ({', '.join(parts)})" if parts else ""


def _ampersands(words: Sequence[str]) -> str:
    return " & ".join(escape(word) for word in words) + " \\\\"
