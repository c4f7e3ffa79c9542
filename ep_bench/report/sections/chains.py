"""Markov chains: diagnostics over the splits, traces and rank plots of one split."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ep_bench.convergence import DAGGER, NEARLY, R_HAT, RING
from ep_bench.plotting.page import Item, Picture, Section, Table, item
from ep_bench.report import chain_diagnostics, chain_figures
from ep_bench.report.chain_diagnostics import ESS, LOW, ChainDiagnostics, MonitoredDraws
from ep_bench.report.context import NOT_DRAWN, ReportContext
from ep_bench.report.traced_quantities import lower_first

CAPTION = (
    "Diagnostics of the chains after warm-up: median over the splits, and the worst split. R-hat and effective sample "
    "size (ESS) of predictions are those of the worst monitored input; these are training inputs and midpoints between "
    "training inputs, where chains agree last. For test data they are those of the worst test input. Divergences are "
    f"summed over the chains. On some split: {DAGGER} R-hat above {NEARLY:g}, {RING} R-hat above {R_HAT:g}, {LOW} ESS "
    f"below {ESS:g} (limits of Vehtari, Gelman, Simpson, Carpenter and Bürkner 2021)"
)


def sections(report: ReportContext) -> list[Section]:
    """Return the section of Markov chains, if any method is a sampler."""
    found = chain_diagnostics.collect(report.merged, report.curves)
    if not found:
        return []
    lines: list[str] = []
    pictures: list[Picture] = []
    for method in dict.fromkeys(one.method for one in found if report.all_figures):
        monitored = [draws for one in found if one.method == method for draws in one.monitored]
        lines += _constant_lines(method, [draws for draws in monitored if not draws.moves()])
        pictures += chain_figures.several(method, [draws for draws in monitored if draws.moves()])
    lines += [] if report.all_figures else [NOT_DRAWN]
    return [Section("chains", "Markov chains", lines, pictures, tables(found), tables_first=True)]


def tables(found: Sequence[ChainDiagnostics]) -> list[Table]:
    """Return the table of the main diagnostics, and a folded one of all others."""
    known = {name for one in found for name in one.numbers if one.has(name)}
    main = [name for name in chain_diagnostics.MAIN if name in known]
    further = sorted(known - set(main))
    shown = [_table(found, main, CAPTION)] if main else []
    return [*shown, *([_table(found, further, folded="Further diagnostics of the chains")] if further else [])]


def _table(found: Sequence[ChainDiagnostics], names: Sequence[str], caption: str = "", folded: str = "") -> Table:
    head = ["method", "data set", "splits", *(chain_diagnostics.title(name) for name in names)]
    rows: list[list[Any]] = [
        [one.method, one.dataset, item(str(one.splits), one.splits), *(_entry(one, name) for name in names)]
        for one in found
    ]
    return Table(head, rows, caption, folded)


def _entry(one: ChainDiagnostics, name: str) -> Item:
    """Return the median, with the worst split and the number of splits in small print, and a mark beyond the limit."""
    if not one.has(name):
        return item("–", "")
    median, low, high = one.summary(name)
    worst, word = (low, "lowest") if chain_diagnostics.low_is_bad(name) else (high, "highest")
    text, small = chain_diagnostics.show(name, median), []
    if chain_diagnostics.show(name, worst) != text:
        small.append(f"{word} {chain_diagnostics.show(name, worst)}")
    if one.count(name) < one.splits:
        small.append(f"{one.count(name)} of {one.splits} splits")
    return item(text + chain_diagnostics.mark(name, worst), median, small=", ".join(small))


def _constant_lines(method: str, found: Sequence[MonitoredDraws]) -> Iterator[str]:
    """Yield one line for each quantity without two different finite values."""
    datasets: dict[tuple[str, str], list[str]] = {}
    for one in found:
        known = one.values[np.isfinite(one.values)]
        state = f"is {known[0]:g} in every draw" if len(known) else "has no finite draw"
        datasets.setdefault((one.title, state), []).append(one.dataset)
    for (title, state), names in datasets.items():
        yield f"{method}: {lower_first(title)} {state} on {', '.join(names)}; no figure."
