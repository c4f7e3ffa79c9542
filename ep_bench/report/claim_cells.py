"""The finished cells of merged studies, as claims name their methods and data sets."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Sequence
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
import pandas as pd

from ep_bench import convergence
from ep_bench.published.claims import ClaimDataset
from ep_bench.published.matching import OTHER_DATA
from ep_bench.report import significance
from ep_bench.report.merge import MergedStudies, cpu_seconds, independent_draws, merge_studies
from ep_bench.report.point_differences import PointCells
from ep_bench.report.significance import PairedTest
from ep_bench.types import Array

Groups = dict[tuple[str, str], pd.DataFrame]  # cells by method and data set


class Duel(NamedTuple):
    """Two methods on one data set: the mean advantage of the first, and who is better by the paired test."""

    advantage: float  # mean over common splits, positive if the first is better; NaN without a common split
    decided: int  # 1 the first, -1 the second, 0 neither
    missing: int  # splits that one of the methods has not finished
    settled: bool = True  # whether no split of either method is known not to have converged
    common: int = 0  # splits that both methods have finished; a single one has no paired test

    @property
    def sure(self) -> int:
        """Return who is better, 0 if a split has not converged."""
        return self.decided if self.settled else 0


class ClaimCells:
    """The finished cells of merged studies, and the meaning of labels of methods and data sets."""

    def __init__(self, merged: MergedStudies) -> None:
        self.merged = merged
        self.independent = independent_draws(merged)
        self.groups = _grouped(merged.rows)
        self.by_name: dict[str, list[str]] = {}  # methods by label, then by published column
        self.by_dataset: dict[ClaimDataset, list[str]] = {}
        named: dict[str, list[str]] = {}
        for study, tag in zip(merged.studies, merged.tags, strict=True):
            scheme = study.lock.get("splits", {}).get("scheme", "standard")
            for label, entry in study.lock.get("methods", {}).items():
                method = merged.names.get((tag, label), label)
                self.by_name.setdefault(label, []).append(method)
                for column in entry.get("published") or ():
                    named.setdefault(column, []).append(method)
            for label, ref in study.lock.get("datasets", {}).items():
                if any(ref.get(key) for key in OTHER_DATA):
                    continue
                altered = {key: ref[key] for key in ("irrelevant_inputs", "target_transform") if ref.get(key)}
                with contextlib.suppress(ValueError):  # a scheme that no claim can name
                    key = ClaimDataset(name=ref.get("name", label), scheme=scheme, **altered)
                    self.by_dataset.setdefault(key, []).append(merged.dataset_names.get((tag, label), label))
        self.by_name = named | self.by_name

    @cached_property
    def studies(self) -> list[Groups]:
        """The cells of each study alone, with the labels of the report."""
        found = []
        for study, tag in zip(self.merged.studies, self.merged.tags, strict=True):
            rows = merge_studies([study]).rows
            methods = [self.merged.names.get((tag, label), label) for label in rows["method"]]
            datasets = [self.merged.dataset_names.get((tag, label), label) for label in rows["dataset"]]
            found.append(_grouped(rows.assign(method=methods, dataset=datasets)))
        return found

    def label(self, name: str, datasets: Sequence[ClaimDataset]) -> str:
        """Return the method of the report with a label or published column, empty if there is none.

        Of several, the method with the largest number of finished splits on the data sets is used.
        """
        places = {label for one in datasets for label in self.by_dataset.get(one, ())}
        return max(self.by_name.get(name, [""]), key=lambda method: sum(self.finished(method, d) for d in places))

    def dataset(self, wanted: ClaimDataset, methods: Iterable[str]) -> str:
        """Return the data set of the report for which all methods are planned, empty if there is none."""
        methods = list(methods)
        planned = [d for d in self.by_dataset.get(wanted, ()) if all((m, d) in self.merged.planned for m in methods)]
        return max(planned, key=lambda d: sum(self.finished(m, d) for m in methods), default="")

    def finished(self, method: str, dataset: str) -> int:
        """Return the number of finished cells."""
        return len(self.groups.get((method, dataset), ()))

    def ended_ok(self, method: str, dataset: str) -> int:
        """Return the number of cells that ended without an error."""
        rows = self.groups.get((method, dataset))
        return 0 if rows is None else int((rows["status"] == "ok").sum())

    def column(self, method: str, dataset: str, name: str) -> pd.Series[float]:
        """Return one column of the cells that ended ok, by split, without missing values."""
        rows = self.groups.get((method, dataset))
        if rows is None:
            return pd.Series(dtype=float)
        return rows.loc[rows["status"] == "ok", name].dropna()

    def is_whole(self, method: str, dataset: str, name: str) -> bool:
        """Return whether every planned split has a value of a column."""
        return len(self.column(method, dataset, name)) == self.merged.planned[method, dataset]

    def duel(self, first: str, second: str, dataset: str, metric: str, behind: float = 0.0) -> Duel:
        """Return the paired comparison of two methods on a data set; an empty name is a data set without cells.

        The first method counts as better by ``behind`` than it is.
        """
        pair = pd.concat([self.column(m, dataset, metric) for m in (first, second)], axis=1, join="inner")
        planned = max(self.merged.planned.get((m, dataset), 1) for m in (first, second))
        if pair.empty:
            return Duel(math.nan, 0, planned)
        gaps = (pair.iloc[:, 0] - pair.iloc[:, 1]).to_numpy(dtype=float)
        gaps = (gaps if metric == "ll" else -gaps) + behind
        missing = planned - len(gaps)
        significant = not missing and len(gaps) > 1 and self.p(gaps, first, dataset) < significance.ALPHA
        settled = not self.unconverged((first, second), (dataset,))
        decided = int(np.sign(gaps.mean())) if significant else 0
        return Duel(float(gaps.mean()), decided, missing, settled, len(gaps))

    def p(self, gaps: Array, method: str, dataset: str) -> float:
        """Return the p-value of the paired test of differences on the splits of a data set."""
        rows = self.groups[method, dataset]
        fraction = float((rows["n_test"].astype(float) / rows["n_train"].astype(float)).mean())
        return float(PairedTest(dataset in self.independent, fraction).p(gaps))

    def seconds(self, methods: Sequence[str], dataset: str) -> pd.DataFrame:
        """Return the CPU seconds (J, 2) of two methods on their common splits.

        Times of one study are compared, that with the most common splits; its cells may be of several machines. Without
        two common splits in any study, the cells of all studies are used.
        """
        best = max((_seconds(groups, methods, dataset) for groups in self.studies), key=len)
        return best if len(best) > 1 else _seconds(self.groups, methods, dataset)

    @cached_property
    def points(self) -> PointCells:
        """The scores of test points."""
        return PointCells(self.merged, partial(self.unconverged_splits, nearly=False))

    def unconverged_splits(self, method: str, dataset: str, *, nearly: bool = True) -> set[int]:
        """Return the splits that are known not to have converged, with or without those that nearly have."""
        rows = self.groups[method, dataset].reset_index()
        states = {int(row["split"]): convergence.judge(row) for row in rows.to_dict("records")}
        return {split for split, state in states.items() if state == "not" or (nearly and state == "nearly")}

    def unconverged(self, methods: Iterable[str], datasets: Iterable[str]) -> list[str]:
        """Return the methods with splits that have not converged on some of the data sets."""
        datasets = list(datasets)
        return [method for method in methods if self.merged.converged([method], datasets).unconverged]


def _grouped(rows: pd.DataFrame) -> Groups:
    """Return the cells by method and data set, indexed by split."""
    return {(str(m), str(d)): part.set_index("split") for (m, d), part in rows.groupby(["method", "dataset"])}


def _seconds(groups: Groups, methods: Sequence[str], dataset: str) -> pd.DataFrame:
    """Return the CPU seconds (J, 2) of two methods on the common splits that ended ok."""
    found = [groups.get((method, dataset)) for method in methods]
    times = [cpu_seconds(rows[rows["status"] == "ok"]).dropna() for rows in found if rows is not None]
    return pd.concat(times, axis=1, join="inner") if len(times) == len(methods) else pd.DataFrame()
