"""Score tables as Markdown, LaTeX and CSV, and the texts that they share with those of the page.

In all of them methods are rows, sorted by average rank, and data sets are columns.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import pandas as pd

from ep_bench import published
from ep_bench.convergence import DAGGER, RING
from ep_bench.report.significance import ALPHA, FEWEST_BLOCKS
from ep_bench.report.summary import Ranking, ScoreTable
from ep_bench.results.spreadsheets import harmless

EQUAL = "≈"  # marks entries that the test does not distinguish from the best
NOTHING = "–"  # an entry that was not planned, or a score that the method does not have


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


def absence(table: ScoreTable, i: int, j: int) -> str:
    """Return why no split of a finished entry has the score, in words; empty if some have it, or none is finished."""
    if table.n[i, j] or not table.without[i, j] or table.without[i, j] < table.planned[i, j]:
        return ""
    return "no density" if table.score.name.startswith("ll") else "no such score"


def is_incomplete(table: ScoreTable, i: int, j: int) -> bool:
    """Return whether an entry has a mean over some of the planned splits only."""
    return bool(table.n[i, j] and not table.complete[i, j])


def places_by_dataset(table: ScoreTable) -> list[int]:
    """Return the decimals of each data set's scores."""
    return [decimals(list(table.stderr[i]), list(table.mean[i])) for i in range(len(table.datasets))]


def caption(table: ScoreTable, ranking: Ranking | None = None) -> str:
    """Return the caption on a page: that of files, and what restricts the comparison."""
    return " ".join([paper_caption(table, ranking, EQUAL), *_restrictions(table)])


def _restrictions(table: ScoreTable) -> Iterator[str]:
    flagged = [
        f"{table.methods[j]}{mark} on {dataset}"
        for i, (dataset, j) in enumerate(zip(table.datasets, table.best.tolist(), strict=True))
        if np.isfinite(table.p[i]).any() and (mark := table.converged[i][j].mark)
    ]
    alone = [dataset for dataset, one in zip(table.datasets, table.is_alone.tolist(), strict=True) if one]
    if alone and table.score.better:
        yield f"Only one entry is complete on {', '.join(alone)}: its bold mean is compared with no other."
    if flagged:
        yield f"The tests compare with a best entry that has not converged on every split: {', '.join(flagged)}."
    if table.unbounded:
        yield f"The log-likelihood has no upper bound on {', '.join(table.unbounded.values())}: compare by CRPS there."


def order(table: ScoreTable, ranking: Ranking | None) -> list[int]:
    """Return the columns of the methods by average rank, then those without a rank, then those never complete.

    On a single data set, which has no average ranks, they are sorted by their means.
    """
    if not table.score.better:
        return list(range(len(table.methods)))
    average = {} if ranking is None else {str(name): float(rank) for name, rank in ranking.average.items()}
    whole = [bool(column.any()) for column in table.complete.T]
    losses = np.zeros(len(table.methods))
    if len(table.datasets) == 1:
        losses = np.nan_to_num(-table.mean[0] if table.score.better == "higher" else table.mean[0], nan=np.inf)
    return sorted(
        range(len(table.methods)), key=lambda j: (average.get(table.methods[j], math.inf), not whole[j], losses[j])
    )


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


# Tables in files


def paper_caption(table: ScoreTable, ranking: Ranking | None, equal: str) -> str:
    """Return a caption of at most three sentences: what is shown, its unit and splits, and the marks that occur."""
    score, (d, m) = table.score, table.mean.shape
    units = ", ".join(filter(None, [score.unit, score.direction]))
    by_rank = f", sorted by average rank over {ranking.count}" if ranking else ""
    sets, methods = f"{d} data set{'s' * (d > 1)}", f"{m} method{'s' * (m > 1)}"
    return (
        f"{score.title}{f' ({units})' if units else ''} of {methods} on {sets}{by_rank}. "
        f"Mean ± standard error over {_splits(table)}{_unmarked(table)}. {_marks(table, equal)}"
    ).strip()


def _unmarked(table: ScoreTable) -> str:
    """Return which data sets have no marks, after a semicolon, empty if all have."""
    names = [name for name in table.unbounded if table.best[table.datasets.index(name)] < 0]
    return f"; without an upper bound, and without marks, on {' and '.join(names)}" if names else ""


def _splits(table: ScoreTable) -> str:
    """Return the number of test splits, with the data sets that have another one: 20 test splits (protein: 5)."""
    plan = table.plan.tolist()
    usual = Counter(plan).most_common(1)[0][0]
    others = [f"{name}: {n}" for name, n in zip(table.datasets, plan, strict=True) if n != usual]
    return f"{usual} test split{'s' * (usual != 1)}" + (f" ({', '.join(others)})" if others else "")


def _marks(table: ScoreTable, equal: str) -> str:
    """Return the meaning of the marks that occur in one sentence."""
    marks = {one.mark for row in table.converged for one in row}
    tests = {test.name for test, p in zip(table.tests, table.p, strict=True) if np.isfinite(p).any()}
    tested = f"by the {' or '.join(sorted(tests))} with Holm's correction, level {ALPHA:g}"
    words = {
        "bold: best mean": bool(table.score.better),
        f"{equal}: not distinguished from it {tested}": bool(tests),
        f"{DAGGER}: not converged on some splits": DAGGER in marks,
        f"{RING}: nearly converged on some splits": RING in marks,
        "in parentheses: some splits are missing": bool((table.n > 0)[~table.complete].any()),
    }
    sentence = "; ".join(word for word, occurs in words.items() if occurs)
    return f"{sentence[:1].upper()}{sentence[1:]}." if sentence else ""


def _grid(
    table: ScoreTable, ranking: Ranking | None, entry: Callable[[ScoreTable, int, int, int], str]
) -> list[list[str]]:
    """Return the rows of a table in a file, the head first; ``entry`` formats data set i and method j with decimals."""
    ranks = [[text.partition(" ")[0] or NOTHING] for text in average_ranks(ranking, table.methods)] or [[]] * len(
        table.methods
    )
    decimals = places_by_dataset(table)
    head = ["method", *(["rank"] if ranking else []), *table.datasets]
    rows = [
        [table.methods[j], *ranks[j], *(entry(table, i, j, places) for i, places in enumerate(decimals))]
        for j in order(table, ranking)
    ]
    return [head, *rows]


def markdown(table: ScoreTable, ranking: Ranking | None = None) -> str:
    """Return the table as GitHub Markdown, after its caption."""
    head, *rows = _grid(table, ranking, _markdown_cell)
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join([paper_caption(table, ranking, EQUAL), "", *map(pipes, [head, rule, *rows])]) + "\n"


def pipes(words: Sequence[str]) -> str:
    """Return one row of a Markdown table."""
    return "| " + " | ".join(plain_markdown(word).replace("|", "\\|") for word in words) + " |"


def plain_markdown(text: str) -> str:
    """Return a text in which Markdown finds no HTML, no link and no picture."""
    return re.sub(r"&(?=#?\w+;)", "&amp;", text).replace("<", "&lt;").replace("](", "]\\(")


def _markdown_cell(table: ScoreTable, i: int, j: int, places: int) -> str:
    text = cell(table, i, j, places)
    if is_incomplete(table, i, j):
        return f"({text})"
    return f"**{text}**" if table.is_best[i, j] else text or NOTHING


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
        }
        for t in tables
        for i, dataset in enumerate(t.datasets)
        for j, method in enumerate(t.methods)
    ]
    return str(pd.DataFrame(lines).map(harmless).to_csv(index=False, lineterminator="\n"))


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
HEAD = r"""% Compiles on its own. In a paper, copy the table environment; it needs \usepackage{booktabs}.
\documentclass{article}
\usepackage[a4paper,textwidth=17cm,textheight=25cm]{geometry}
\usepackage{booktabs}
\pagestyle{empty}
\begin{document}
"""
WIDE = 6  # columns of data sets from which the type is small


def escape(text: str) -> str:
    """Return text with LaTeX's special characters escaped. Letters that are not Latin become ``?``."""
    return "".join(_SPECIAL.get(letter) or (letter if letter.isprintable() else " ") for letter in map(_latin, text))


def _latin(letter: str) -> str:
    return letter if ord(letter) < 0x180 or letter in _SPECIAL else "?"


def latex(table: ScoreTable, ranking: Ranking | None = None) -> str:
    """Return the table as a LaTeX document with booktabs; up to ten data sets fit into 17 cm."""
    head, *rows = _grid(table, ranking, _latex_cell)
    names = 1 + (ranking is not None)  # columns of text, which `_latex_cell` has not escaped
    size, gap = (r"\scriptsize", 2.4) if len(table.datasets) > WIDE else (r"\small", 4)
    lines = [
        f"{HEAD}\\begin{{table}}[t]",
        r"\centering",
        f"\\caption{{{escape(paper_caption(table, ranking, 'underlined'))}}}",
        r"\medskip",
        size,
        f"\\setlength{{\\tabcolsep}}{{{gap}pt}}",
        f"\\begin{{tabular}}{{@{{}}l{'r' * (len(head) - 1)}@{{\\,}}}}",
        r"\toprule",
        _ampersands(map(escape, head)),
        r"\midrule",
        *(_ampersands([*map(escape, row[:names]), *row[names:]]) for row in rows),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
        r"\end{document}",
    ]
    return "\n".join(lines) + "\n"


def _latex_cell(table: ScoreTable, i: int, j: int, places: int) -> str:
    """Return the mean, bold or underlined, its standard error in small type, and the mark of convergence.

    From three decimals, the last one is left out, and no zero precedes the point of the standard error. The mark takes
    no space, so that decimals are aligned.
    """
    if not table.n[i, j]:
        return "--"
    places -= table.n[i].max() > 1 and places > 2
    mean = number(table.mean[i, j], places).replace("-", "$-$")
    if table.is_best[i, j] or table.equal[i, j]:
        mean = f"\\textbf{{{mean}}}" if table.is_best[i, j] else f"\\underline{{{mean}}}"
    error = number(table.stderr[i, j], places).removeprefix("0") or "0"
    text = mean + (f"{{\\tiny$\\pm${error}}}" if table.n[i, j] > 1 else "")
    text = f"({text})" if is_incomplete(table, i, j) else text
    mark = escape(table.converged[i][j].mark)
    return text + (f"\\rlap{{\\smash{{{mark}}}}}" if mark else "")


def _ampersands(words: Iterable[str]) -> str:
    return " & ".join(words) + " \\\\"
