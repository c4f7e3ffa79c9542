"""Cells that are not ok or left out, and the reasons of failures and warnings."""

from __future__ import annotations

from ep_bench.plotting.page import Section, Table, item
from ep_bench.report import merge
from ep_bench.report.context import ReportContext


def sections(report: ReportContext) -> list[Section]:
    """Return the tables of missing cells and of remarks, if there are any."""
    gaps = [[gap[key] for key in ("method", "dataset", "done", "detail")] for gap in merge.gaps(report.merged)]
    remarks = [
        [remark["method"], remark["dataset"], remark["status"], item(remark["reason"], kind="text"), remark["splits"]]
        for remark in merge.remarks(report.merged)
    ]
    left_out = [
        [method, dataset, item(reason, kind="text")] for method, dataset, reason in merge.left_out(report.merged)
    ]
    tables = [
        Table(["method", "data set", "finished", "not ok"], gaps, "Planned cells that are not ok"),
        Table(["method", "data set", "reason"], left_out, "Combinations that a study leaves out"),
        Table(["method", "data set", "status", "reason", "splits"], remarks, "Reasons of failures and warnings"),
    ]
    shown = [table for table in tables if table.rows]
    return [Section("missing", "Missing cells and remarks", tables=shown)] if shown else []
