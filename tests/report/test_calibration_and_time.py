"""The figures of times: methods are averaged over the same data sets."""

from __future__ import annotations

import json

import numpy as np
import pytest

from ep_bench.report import merge
from ep_bench.report.context import ReportContext
from ep_bench.report.sections import calibration_and_time
from ep_bench.results import store


def test_methods_are_averaged_over_the_same_data_sets(report_of):
    """The first method is also complete on a slow data set, which the others have not finished."""

    def change(row):
        if row["dataset"] == "power" and row["method"] != "pbp" and row["split"] == 0:
            return None
        seconds = 100.0 if row["dataset"] == "power" else {"pbp": 1.0, "ridge": 2.0, "gp": 3.0}[row["method"]]
        return {**row, "fit_cpu_seconds": seconds, "predict_cpu_seconds": 0.1}

    report = report_of(datasets=["boston", "yacht", "power"], change=change)
    plots, _ = calibration_and_time.sections(report)
    times = next(picture for picture in plots.pictures if picture.name == "times")
    (panel,) = [ax for ax in times.figure.axes if ax.get_title() == "CPU time of the fit"]
    markers = [float(line.get_xdata()[0]) for line in panel.lines if len(line.get_xdata()) == 1]
    assert markers == pytest.approx([1.0, 2.0, 3.0])
    assert "Markers: geometric means over boston, yacht, of the methods that are complete on them." in times.caption


def times_of(folder):
    plots, _ = calibration_and_time.sections(ReportContext(merge.merge([folder])))
    return next(picture for picture in plots.pictures if picture.name == "times")


def markers(picture, title):
    (panel,) = [ax for ax in picture.figure.axes if ax.get_title() == title]
    drawn = [float(line.get_xdata()[0]) for line in panel.lines if len(line.get_xdata()) == 1]
    return [value for value in drawn if np.isfinite(value)]


def test_pit_histograms_sum_the_stored_counts_of_all_splits(tmp_path, make_study):
    folder = make_study(tmp_path / "s", methods=("pbp", "gp"), datasets=["boston"])
    rows = [row for row in store.read_rows(folder / store.RESULTS) if row["method"] == "pbp"]
    counts = {row["cell"]: [int(row["split"]), 10, *[0] * 8] for row in rows}
    entry = {"method": "pbp", "dataset": "boston", "cells": counts}
    (folder / "curves.json").write_text(json.dumps({"format": 1, "traces": [], "pits": [entry]}))
    (picture,) = calibration_and_time.pit_figures(ReportContext(merge.merge([folder])))
    (drawn,) = [line for line in picture.figure.axes[0].lines if line.get_label() == "pbp"]
    first, n = sum(int(row["split"]) for row in rows), len(rows)
    assert drawn.get_ydata()[:3] == pytest.approx([10 * first / (first + 10 * n), 100 * n / (first + 10 * n), 0.0])


def test_a_tuned_method_does_not_decide_on_the_data_sets_of_the_others(tmp_path, make_study):
    def change(row):
        searched = {"tune_cpu_seconds": 7.0} if row["method"] == "gp" else {}
        return {**row, **searched, "fit_cpu_seconds": 2.0, "predict_cpu_seconds": 0.0}

    times = times_of(make_study(tmp_path / "s", change=change))
    assert markers(times, "CPU time of the fit") == pytest.approx([2.0, 2.0, 2.0])
    assert markers(times, "CPU time of tuning") == pytest.approx([7.0])
    assert "over boston, yacht, wine, of the methods" in times.caption
