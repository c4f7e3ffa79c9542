"""Puts a report together and writes its files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from ep_bench.plotting.page import Picture
from ep_bench.report import (
    chain_diagnostics,
    experiments,
    figures,
    function_panels,
    html,
    markdown,
    merge,
    page_rows,
    point_table,
    point_table_pages,
    rank_diagrams,
    rank_group_figures,
    rank_groups,
    row_comparison,
    summary,
    tables,
    training_curves,
    tuned_options,
)
from ep_bench.report.merge import MergedStudies
from ep_bench.report.scores import FIGURES, MORE, Score, main_scores
from ep_bench.report.summary import Ranking, ScoreTable
from ep_bench.results import curves, store
from ep_bench.types import UserError


@dataclass
class ScorePart:
    """One score: its table, its comparison over data sets, its figures."""

    score: Score
    table: ScoreTable
    rankings: list[Ranking] = field(default_factory=list)
    panels: Picture | None = None
    diagram: Picture | None = None

    @property
    def ranking(self) -> Ranking | None:
        """Return the comparison with N = data sets, for the last line of the table."""
        return self.rankings[0] if self.rankings and self.rankings[0].n > 1 else None


@dataclass
class Report:
    """Everything that the pages show."""

    merged: MergedStudies
    parts: list[ScorePart]
    more: list[ScoreTable]
    plots: list[Picture]
    experiments: list[experiments.DrawnExperiment]
    checks: pd.DataFrame | None
    tuned: tuned_options.TuningReport | None = None
    functions: list[Picture] = field(default_factory=list)
    chains: chain_diagnostics.ChainReport | None = None
    training: training_curves.TrainingReport | None = None
    compared: row_comparison.RowComparison | None = None
    groups: list[rank_groups.RankGroupResult] = field(default_factory=list)
    grouped: list[rank_group_figures.DrawnRankGroup] = field(default_factory=list)
    points: list[point_table.PointTable] = field(default_factory=list)

    @property
    def title(self) -> str:
        return "Report: " + ", ".join(self.merged.tags)

    @property
    def plots_title(self) -> str:
        """Return the head of the figures of calibration and time; classes have no intervals."""
        return "Calibration and time" if any(plot.name == "calibration" for plot in self.plots) else "Time"

    def pictures(self) -> list[Picture]:
        """Return all figures."""
        own = [picture for part in self.parts for picture in (part.panels, part.diagram) if picture]
        drawn = [picture for experiment in self.experiments for picture in experiment.pictures]
        late = [picture for part in (self.chains, self.training) if part for picture in part.pictures]
        own += [picture for shown in self.grouped for picture in shown.pictures]
        own += self.compared.pictures if self.compared else []
        return [*drawn, *own, *self.functions, *self.plots, *late]


def write(
    folders: Sequence[Path], out: Path | None = None, *, pdf: bool = False, log: Callable[[str], None] = lambda _: None
) -> list[Path]:
    """Write the report of ``folders``; see ``ep_bench.report.build``."""
    if not folders:
        raise UserError("name at least one results folder", where="report")
    merged = merge.merge(folders)
    for note in merged.notes:
        log(note)
    report = make(merged)
    out = Path(out) if out is not None else Path(folders[0]) / "report"
    texts = {out / "report.html": html.page(page_content(report)), out / "report.md": markdown.page(report)}
    all_tables = [part.table for part in report.parts] + report.more
    if all_tables:
        texts[out / "tables" / "scores.csv"] = tables.long_csv(all_tables)
    if any(group.standings for group in report.groups):
        texts[out / "tables" / "orders.csv"] = rank_group_figures.orders_csv(report.groups)
    for part in report.parts:
        texts[out / "tables" / f"{part.score.name}.md"] = tables.markdown(part.table, part.ranking)
        texts[out / "tables" / f"{part.score.name}.tex"] = tables.latex(part.table, part.ranking)
    for table in report.more:
        texts[out / "tables" / f"{table.score.name}.md"] = tables.markdown(table)
    for found in report.points:
        texts[out / "tables" / f"{found.name}.md"] = point_table_pages.markdown(found)
        texts[out / "tables" / f"{found.name}.tex"] = point_table_pages.latex(found)
    if report.points:
        texts[out / "tables" / "points.csv"] = point_table_pages.csv(report.points)
    for path, text in texts.items():
        store.write_atomically(path, text)
    drawn = [path for picture in report.pictures() for path in picture.write(out / "figures", pdf=pdf)]
    return [*texts, *drawn]


def make(merged: MergedStudies) -> Report:
    """Return the report of merged studies: all numbers and figures, nothing written."""
    parts = [part for score in main_scores(set(merged.tasks().values())) if (part := _part(merged, score)) is not None]
    more = {score.name: table for score in MORE if (table := summary.score_table(merged, score)) is not None}
    calibration = [more[name] for name in ("coverage50", "coverage90", "coverage95", "pit_error") if name in more]
    plots = [figures.calibration(calibration)] if calibration else []
    times = [more[name] for name in ("tune_seconds", "fit_seconds", "predict_seconds") if name in more]
    plots += [figures.times(times)] if times else []
    drawn = [experiments.draw(study) for study in merged.studies if study.lock.get("experiment")]
    kept, grouped = _curves(merged), rank_groups.collect(merged)
    return Report(
        merged,
        parts,
        list(more.values()),
        plots,
        drawn,
        _checks(merged),
        tuned_options.collect(merged),
        function_panels.collect(merged, kept),
        chain_diagnostics.collect(merged, kept),
        training_curves.collect(merged, kept),
        row_comparison.collect(merged),
        grouped,
        [rank_group_figures.show(group) for group in grouped],
        point_table.collect(merged),
    )


def _curves(merged: MergedStudies) -> curves.Curves:
    """Return the curves of all studies; their labels are those of the studies, their cells log them apart."""
    found = [curves.collect(study.folder, study.rows) for study in merged.studies]
    return curves.Curves(
        *([entry for one in found for entry in one[kind]] for kind in range(len(curves.Curves._fields)))
    )


def _part(merged: MergedStudies, score: Score) -> ScorePart | None:
    table = summary.score_table(merged, score)
    if table is None:
        return None
    part = ScorePart(score, table, summary.rankings(merged, score))
    if score.source in FIGURES:
        part.panels = figures.panels(table)
        testable = [ranking for ranking in part.rankings if ranking.nemenyi is not None]
        part.diagram = rank_diagrams.critical_difference(testable) if testable else None
    return part


def _checks(merged: MergedStudies) -> pd.DataFrame | None:
    """Return the comparison of every study with the published numbers, or None where none is a grid of cells."""
    from ep_bench import published

    grids = [study for study in merged.studies if study.rows and study.lock]
    found = [published.check(pd.DataFrame(study.rows), study.lock) for study in grids]
    if not found:
        return None
    return pd.concat([frame for frame in found if len(frame)] or found[:1], ignore_index=True)


def page_content(report: Report) -> dict[str, Any]:
    """Return the parts that the template of report.html names."""
    merged = report.merged
    parts: dict[str, Any] = {
        "title": report.title,
        "summary": page_rows.summary_line(merged),
        "notes": merged.notes,
        "experiments": [drawn.for_page(html.embedded) for drawn in report.experiments],
        "lead": page_rows.lead(set(merged.tasks().values())),
        "scores": [_score_content(part.table, part.ranking, part.panels) for part in report.parts],
        "ranks": [_rank_content(part) for part in report.parts if part.rankings],
        "groups": [_group(shown) for shown in report.grouped],
        "compared": _comparison(report.compared),
        "points": [_point_table(found) for found in report.points],
        "functions": [html.embedded(picture) for picture in report.functions],
        "plots_title": report.plots_title,
        "plots": [html.embedded(picture) for picture in report.plots],
        "chains": page_rows.chains_part(report.chains, html.embedded),
        "training": page_rows.training_part(report.training, html.embedded),
        "tuned": page_rows.tuned_table(report.tuned),
        "more": [_score_content(table) for table in report.more],
        "checks": None if report.checks is None else page_rows.check_rows(report.checks),
        "gaps": page_rows.gap_rows(merged),
        "remarks": page_rows.remark_rows(merged),
        "studies": [page_rows.study_facts(study, tag) for study, tag in zip(merged.studies, merged.tags, strict=True)],
    }
    names = {
        "notes": "Notes", "scores": "Scores", "ranks": "Ranks", "groups": "Ranks by group", "compared": "Row by row",
        "points": "Over test points", "functions": "Predictions over one input", "plots": report.plots_title,
        "chains": "Markov chains", "training": "Training curves", "tuned": "Tuned options", "more": "Further scores",
        "published": "Published numbers", "missing": "Missing cells", "run": "What was run",
    }  # fmt: skip
    shown = parts | {"published": report.checks is not None, "missing": parts["gaps"] or parts["remarks"], "run": True}
    parts["sections"] = [(drawn["id"], drawn["title"]) for drawn in parts["experiments"]]
    parts["sections"] += [(key, name) for key, name in names.items() if shown[key]]
    return parts


def _score_content(table: ScoreTable, ranking: Ranking | None = None, picture: Picture | None = None) -> dict[str, Any]:
    return {
        "name": table.score.name,
        "title": table.score.axis,
        "head": page_rows.score_head(table, ranking),
        "rows": page_rows.score_rows(table, ranking),
        "caption": tables.caption(table),
        "picture": html.embedded(picture) if picture else None,
    }


def _comparison(found: row_comparison.RowComparison | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {"pictures": [html.embedded(picture) for picture in found.pictures], "tables": found.tables}


def _point_table(found: point_table.PointTable) -> dict[str, Any]:
    return {
        "title": point_table_pages.title(found),
        "lines": point_table_pages.notes(found),
        "tables": point_table_pages.grids(found),
    }


def _group(shown: rank_group_figures.DrawnRankGroup) -> dict[str, Any]:
    pictures = [html.embedded(picture) for picture in shown.pictures]
    return {"title": shown.title, "lines": shown.lines, "pictures": pictures, "tables": shown.tables}


def _rank_content(part: ScorePart) -> dict[str, Any]:
    return {
        "title": part.score.title,
        "lines": page_rows.rank_lines(part.rankings),
        "picture": html.embedded(part.diagram) if part.diagram else None,
        "pairwise": [entry for ranking in part.rankings for entry in page_rows.pairwise(ranking)],
    }
