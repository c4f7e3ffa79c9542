"""Tables over test data points in all formats: page, Markdown, LaTeX and CSV."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence

import pandas as pd

from ep_bench.convergence import mark_note
from ep_bench.plotting.page import Item, Table, item
from ep_bench.report import tables
from ep_bench.report.point_table import METRICS, PointTable, PointTableBlock, PointTableLine
from ep_bench.results.spreadsheets import harmless

HEAD = ("LPD mean", "LPD std", "LPD 1 %", "SE mean", "SE std", "SE 99 %", "time")
PLACES = (3, 2, 2, 3, 2, 2)


def title(found: PointTable) -> str:
    """Return the title of a table."""
    return f"{found.table.source}, table {found.table.table}"


def notes(found: PointTable) -> list[str]:
    """Return what the numbers mean, and which parts of the published table are missing."""
    table, unit = found.table, found.unit
    time = f"relative to {unit}" if unit else f"unknown, since its unit {table.time_unit} was not run"
    what = (
        "Log predictive density (LPD) and squared error (SE) of test data points, for the target standardised with the "
        "training data, over the test data of all splits: mean, standard deviation and, for the worst cases, the 1 % "
        "percentile of the LPD and the 99 % percentile of the SE (Hazen's rule). "
        f"Time: fit and prediction, mean over splits, {time}. Published numbers are in small print or in parentheses: "
        f"{table.citation.strip()} ({table.protocol.strip()})."
    )
    lines = [what]
    marks = mark_note({line.converged.mark for block in found.blocks for line in block.lines})
    lines += [marks.strip()] if marks else []
    if found.lacks_rows:
        lines.append(
            "Percentiles over several splits need the scores of data points: set compare: {rows: LABEL} in the study."
        )
    return lines + [f"{dataset} is absent: {why}." for dataset, why in found.table.absent.items()]


def grids(found: PointTable) -> list[Table]:
    """Return one table per data set."""
    return [
        Table(["method", *HEAD], [_row(line) for line in block.lines], f"{block.dataset} ({block.size})")
        for block in found.blocks
    ]


def _row(line: PointTableLine) -> list[Item]:
    name = item(_name(line), small=shortfall(line), kind="")
    return [
        name,
        *(
            item(shown(line, j), None if math.isnan(value) else value, small=printed)
            for j, (value, printed) in enumerate(zip(line.ours, line.printed, strict=True))
        ),
    ]


def _name(line: PointTableLine) -> str:
    other = f" (published as {line.column})" if line.column not in {"", line.method} else ""
    return line.method + line.converged.mark + other


def shortfall(line: PointTableLine) -> str:
    """Return missing splits, such as ``7 of 10 splits``, and converged splits, or ``not run`` without any split."""
    if not line.splits:
        return "not run"
    missing = "" if line.splits >= line.planned else f"{line.splits} of {line.planned} splits"
    return ", ".join(text for text in (missing, line.converged.shortfall) if text)


def shown(line: PointTableLine, j: int) -> str:
    """Return our number of ``METRICS[j]`` as text, a dash if it is missing."""
    value = line.ours[j]
    if math.isnan(value):
        return "–"
    if j == METRICS.index("cputime-relative"):
        return f"{value:.2g}" if value < 100.0 else f"{value:.0f}"
    return f"{value:.{PLACES[j]}f}"


def markdown(found: PointTable) -> str:
    """Return the table as GitHub Markdown, with one block per data set."""
    lines = []
    for block, grid in zip(found.blocks, grids(found), strict=True):
        lines += [f"{grid.caption}:", "", tables.pipes(grid.head), tables.pipes(["---", *["---:"] * len(HEAD)])]
        lines += [tables.pipes([_with(_name(one), shortfall(one)), *_entries(one)]) for one in block.lines]
        lines.append("")
    return "\n".join([*lines, *(f"- {line}" for line in notes(found))]) + "\n"


def _entries(line: PointTableLine) -> list[str]:
    return [_with(shown(line, j), printed) for j, printed in enumerate(line.printed)]


def _with(text: str, small: str) -> str:
    return f"{text} ({small})" if small else text


def latex(found: PointTable) -> str:
    """Return the table as a LaTeX document with booktabs."""
    lines = [f"\\begin{{tabular}}{{l{'r' * len(HEAD)}}}", "\\toprule"]
    lines += [" & ".join(tables.escape(word) for word in ("", *HEAD)) + " \\\\"]
    for block in found.blocks:
        lines += ["\\midrule", *_latex_block(block)]
    body = "\n".join([*lines, "\\bottomrule", "\\end{tabular}"])
    caption = " ".join(notes(found))
    head = f"{tables.HEAD}\\begin{{table}}[p]\n\\centering\n\\scriptsize\n\\caption{{{tables.escape(caption)}}}\n"
    return f"{head}\\medskip\n{body}\n\\end{{table}}\n\\end{{document}}\n"


def _latex_block(block: PointTableBlock) -> list[str]:
    title = tables.escape(f"{block.dataset} ({block.size})")
    span = f"\\multicolumn{{{len(HEAD) + 1}}}{{l}}{{\\textit{{{title}}}}} \\\\"
    rows = []
    for line in block.lines:
        name = _with(_name(line), shortfall(line))
        rows.append(" & ".join(tables.escape(text.replace("-", "−")) for text in _entries(line)))
        rows[-1] = f"{tables.escape(name)} & {rows[-1]} \\\\"
    return [span, *rows]


def csv(found: Sequence[PointTable]) -> str:
    """Return every number of all tables as CSV, one line each, ours in full precision."""
    lines = [
        {
            "source": one.table.source,
            "table": one.table.table,
            "dataset": block.dataset,
            "method": line.method,
            "published_as": line.column,
            "metric": metric,
            "ours": value,
            "published": printed,
            "n_points": line.points,
            "n_splits": line.splits,
            "planned": line.planned,
        }
        for one in found
        for block in one.blocks
        for line in block.lines
        for metric, value, printed in zip(METRICS, line.ours, line.printed, strict=True)
    ]
    out = io.StringIO()
    pd.DataFrame(lines).map(harmless).to_csv(out, index=False, lineterminator="\n")
    return out.getvalue()
