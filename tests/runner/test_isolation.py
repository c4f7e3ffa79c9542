"""Hostile external methods: each affects its own cell alone, and the numbers of a method that runs next do not move."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ep_bench.runner import supervisor
from ep_bench.types import MEASURED_COLUMNS, Record
from tests.runner.hostile_methods import HOSTILE, write_hostile_methods
from tests.runner.support import job

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
SHORT = ("PatchesMean", "WritesToDescriptors", "KillsParent")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("hostile")
    write_hostile_methods(folder)
    yield folder
    supervisor.close()


def scores(record: Record) -> dict[str, object]:
    return {name: value for name, value in record.row.items() if name not in MEASURED_COLUMNS}


@pytest.fixture(scope="module")
def expected(folder: Path) -> list[dict[str, object]]:
    """Return the scores of harmless methods, computed before any hostile one."""
    return harmless(folder)


def harmless(folder: Path) -> list[dict[str, object]]:
    """Return the scores of an external class and of a class in the same file as the hostile ones."""
    return [
        scores(supervisor.run(job(use, base=folder))) for use in ("sklearn.linear_model:Ridge", "./hostile.py:Calm")
    ]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in SHORT else pytest.mark.exhaustive) for name in HOSTILE]
)
def test_a_hostile_method_changes_no_number_of_the_next_one(
    name: str, folder: Path, expected: list[dict[str, object]]
) -> None:
    record = supervisor.run(job(f"./hostile.py:{name}", base=folder, seconds=5.0, memory_gb=2.0))
    status, reason = HOSTILE[name]
    assert record.row["status"] in status.split("|"), record.row["reason"]
    assert reason in record.row["reason"]
    assert record.row["reason"].isprintable()
    assert harmless(folder) == expected
