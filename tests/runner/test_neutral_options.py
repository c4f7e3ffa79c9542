"""Options that are added later, and versions of some configurations only, leave the other cells as they are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from pydantic import BaseModel, Field, create_model

from ep_bench import estimator, methods
from ep_bench.experiments import get, storage
from ep_bench.experiments.storage import ExperimentSetup
from ep_bench.options import NEUTRAL
from ep_bench.runner.plan import Plan
from ep_bench.types import Method
from tests.finished import finish
from tests.runner.support import plan_of

ENTRIES = "".join(f"\n  - {{use: {name}, label: {name}}}" for name in methods.REGISTRY)
STUDY = f"study: s\ndatasets: [diabetes]\nsplits: {{scheme: standard, count: 1}}\nmethods:{ENTRIES}\n"
TUNED = """
study: t
datasets: [diabetes]
splits: {scheme: standard, count: 1}
methods:
  - {use: pbp, label: PBP, tune: {trials: 2, space: {epochs: {int: [1, 4]}}}}
"""


def states(plan: Plan) -> dict[str, str]:
    return {cell.job.cell.method: cell.state for cell in plan.cells}


def with_option(config: type[BaseModel], default: int) -> type[BaseModel]:
    """Return the options and ``later``, whose value 0 means that a method works as before."""
    field = Field(default, description="an option that was added later", json_schema_extra={NEUTRAL: 0})
    return create_model("Later", __base__=config, later=(int, field))


def change_methods(monkeypatch: pytest.MonkeyPatch, **changes: object) -> None:
    """Replace fields of all registered methods; ``default`` adds an option with this default."""
    originals = {name: methods.get(name) for name in methods.REGISTRY}
    changed = dict(changes)
    default = changed.pop("default", None)

    def get(name: str) -> Method:
        found = replace(originals[name], **changed)
        return found if default is None else replace(found, config=with_option(found.config, default))

    monkeypatch.setattr(methods, "get", get)


def test_a_later_option_at_its_neutral_value_makes_no_cell_stale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish(plan_of(tmp_path, STUDY))
    change_methods(monkeypatch, default=0)
    plan = plan_of(tmp_path, STUDY)
    assert states(plan) == dict.fromkeys(methods.REGISTRY, "done")
    assert {cell.job.options["later"] for cell in plan.cells} == {0}
    given = STUDY.replace("use: pbp,", "use: pbp, later: 0,").replace("use: gp,", "use: gp, later: 1,")
    assert states(plan_of(tmp_path, given)) == dict.fromkeys(methods.REGISTRY, "done") | {"gp": "stale"}


def test_another_default_makes_cells_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The default of the new option may differ from the value that means the earlier behaviour."""
    finish(plan_of(tmp_path, STUDY))
    change_methods(monkeypatch, default=2)
    plan = plan_of(tmp_path, STUDY)
    assert set(states(plan).values()) == {"stale"}
    assert {cell.why for cell in plan.cells} == {"options.later: none -> 2"}
    neutral = plan_of(tmp_path, STUDY.replace(", label:", ", later: 0, label:"))
    assert set(states(neutral).values()) == {"done"}


def test_stored_options_are_completed_with_neutral_values(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = estimator.resolve("pbp", {"epochs": 3})
    assert estimator.restore("pbp", stored.factors) == stored.options
    change_methods(monkeypatch, default=2)
    assert estimator.restore("pbp", stored.factors) == stored.options | {"later": 0}


def test_a_version_rises_for_the_configurations_that_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    two = STUDY + "  - {use: pbp, label: deep, hidden: [9, 9]}\n"
    finish(plan_of(tmp_path, two))
    old = methods.get("pbp").version
    change_methods(
        monkeypatch, version=99, version_of=lambda config: 99 if len(getattr(config, "hidden", ())) > 1 else old
    )
    plan = plan_of(tmp_path, two)
    assert states(plan)["pbp"] == "done"
    assert [cell.why for cell in plan.cells if cell.job.cell.method == "deep"] == [f"version: {old} -> 99"]


def test_a_tuned_cell_has_the_newest_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The search may try any configuration."""
    finish(plan_of(tmp_path, TUNED))
    old = methods.get("pbp").version
    change_methods(monkeypatch, version=99, version_of=lambda _: old)
    assert states(plan_of(tmp_path, TUNED)) == {"PBP": "stale"}


def test_a_later_option_of_an_experiment_keeps_its_results(monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = get("conflict_tilted")
    before = ExperimentSetup("conflict_tilted", {}, 0).factors
    for default, same in ((0, True), (1, False)):
        changed = SimpleNamespace(version=experiment.version, config=with_option(experiment.config, default))
        monkeypatch.setattr(storage, "get", lambda _, changed=changed: changed)
        assert (ExperimentSetup("conflict_tilted", {}, 0).factors == before) is same
