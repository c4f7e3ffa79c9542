"""The curves that a run writes next to its results."""

from __future__ import annotations

from pathlib import Path

import pytest

from ep_bench.errors import UserError
from ep_bench.results import curves, store
from ep_bench.results.cell_curves import thinned
from ep_bench.runner.plan import Plan
from ep_bench.runner.run import RunOptions, run_plan
from tests.runner import support

pytestmark = pytest.mark.usefixtures("in_process")


def plan_of(folder: Path) -> Plan:
    text = "study: s\ndatasets: [cubic]\nsplits: {scheme: standard, count: 2}\nmethods: [pbp]\n"
    return support.plan_of(folder, text)


def test_a_run_writes_curves_next_to_its_results(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    assert run_plan(plan, RunOptions(quiet=True)).complete
    kept = curves.read(plan.folder)
    (traces,) = kept.traces
    assert kept.diagnostics == kept.tuned == {}
    assert traces["splits"] == [0, 1]
    assert len(traces["traces"]["noise_deviation"]["median"]) == len(thinned(40))


def test_a_file_of_curves_that_cannot_be_read_is_refused_before_anything_runs(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    plan.folder.mkdir(parents=True)
    (plan.folder / curves.FILE).write_text("<<<<<<< HEAD")
    with pytest.raises(UserError, match=r"curves\.json: cannot be read"):
        run_plan(plan, RunOptions(quiet=True))
    assert not (plan.folder / store.CELLS).exists()
