"""Checkpoints of an experiment: stored when finished, used by a later run, independent of the number of processes."""

from __future__ import annotations

import io
import math
import os
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import numpy as np
import pytest

from ep_bench import experiments
from ep_bench.cli.output import parts
from ep_bench.experiments import checkpoints
from ep_bench.experiments.ep_nn_2014.network_restarts import compute as network_restarts

OPTIONS = {
    "datasets": [{"name": "friedman1", "restarts": 3}],
    "methods": [{"use": "ep_nn", "hidden": [2], "sweeps": 55}],
}


FACTORS = {"experiment": "roots", "version": 1, "options": {}, "seed": 0, "method_versions": {"ep_nn": "1"}}


def logged_root(log: str, x: float) -> list[float]:
    """Write a line on every call, and fail if x is negative."""
    with Path(log).open("a") as file:
        file.write(f"{x}\n")
    return [math.sqrt(x) / 3, math.nan]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


def computed(log: Path) -> list[float]:
    return [float(line) for line in log.read_text().splitlines()]


def test_nothing_is_stored_by_default(log: Path) -> None:
    for _ in range(2):
        assert checkpoints.each(logged_root, [(str(log), 4.0)])[0][0] == 2 / 3
    assert computed(log) == [4, 4]


def test_a_stored_value_is_read_to_the_last_digit(log: Path, tmp_path: Path) -> None:
    calls = [(str(log), x) for x in (5.0, 7.0, 11.0)]
    with checkpoints.kept_in(tmp_path / "pieces", FACTORS):
        first = checkpoints.each(logged_root, calls[:2])
        again = checkpoints.each(logged_root, calls[::-1])
    assert computed(log) == [5, 7, 11]
    np.testing.assert_array_equal(again[:0:-1], first)
    assert again[0][0] == math.sqrt(11) / 3
    assert checkpoints.each(logged_root, calls[:1])[0][0] == first[0][0]
    assert len(computed(log)) == 4  # nothing is stored outside of the block


def test_finished_parts_are_reported_after_those_of_an_earlier_run(log: Path, tmp_path: Path) -> None:
    calls = [(str(log), x) for x in (5.0, 7.0, 11.0)]
    seen: list[tuple[int, int]] = []
    for given in (calls[:1], calls):
        with checkpoints.kept_in(tmp_path / "pieces", FACTORS, report=lambda *counts: seen.append(counts)):
            checkpoints.each(logged_root, given)
    assert seen == [(0, 1), (1, 1), (1, 3), (2, 3), (3, 3)]


def test_a_part_that_another_run_finishes_meanwhile_is_not_computed(log: Path, tmp_path: Path) -> None:
    calls = [(str(log), x) for x in (5.0, 7.0)]

    def another_run(done: int, total: int) -> None:
        if (done, total) == (0, 2):
            with checkpoints.kept_in(tmp_path / "pieces", FACTORS):
                checkpoints.each(logged_root, calls[1:])

    with checkpoints.kept_in(tmp_path / "pieces", FACTORS, report=another_run):
        found = checkpoints.each(logged_root, calls)
    assert computed(log) == [7, 5]
    assert [one[0] for one in found] == [math.sqrt(5) / 3, math.sqrt(7) / 3]


def test_progress_of_parts_has_the_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    now, out = [0.0], io.StringIO()
    monkeypatch.setattr(parts.time, "monotonic", lambda: now[0])
    with parts.PartsProgress("learn", out) as shown:
        for done in range(10, 51):
            shown(done, 50)
            now[0] += 2.0
    lines = out.getvalue().splitlines()
    assert lines[0] == "learn: 10/50 parts"
    assert lines[1] == "learn: 13/50 parts, 1 min 14 s left"  # three parts in 6 s
    assert lines[-1] == "learn: 50/50 parts"
    assert len(lines) < 20


def root_or_end(log: str, x: float) -> list[float]:
    """End the process if x is negative."""
    if x < 0.0:
        os._exit(3)
    return logged_root(log, x)


def named_loss(call: tuple, reason: str) -> dict:
    return {"failure": f"{call[1]:g}: {reason}"}


def test_a_part_that_ends_its_process_has_failed_and_the_others_are_finished(log: Path, tmp_path: Path) -> None:
    calls = [(str(log), x) for x in (1.0, -1.0, 4.0, 9.0, 16.0, 25.0)]
    with checkpoints.kept_in(tmp_path / "pieces", FACTORS, jobs=2):
        found = checkpoints.each(root_or_end, calls, lost=named_loss)
        assert [value[0] for place, value in enumerate(found) if place != 1] == pytest.approx(
            [1 / 3, 2 / 3, 1.0, 4 / 3, 5 / 3]
        )
        assert found[1]["failure"].startswith("-1: the process of the fit ended: ")
        assert checkpoints.each(root_or_end, calls, lost=named_loss)[1] == found[1]  # stored, as other failures
        with pytest.raises(BrokenProcessPool):
            checkpoints.each(root_or_end, [(str(log), -2.0), (str(log), -3.0)])
    assert checkpoints.remove_failed(tmp_path / "pieces") == 1


def test_an_error_leaves_the_finished_checkpoints(log: Path, tmp_path: Path) -> None:
    calls = [(str(log), x) for x in (1.0, -1.0)]
    with pytest.raises(ValueError, match="math domain"), checkpoints.kept_in(tmp_path / "pieces", FACTORS):
        checkpoints.each(logged_root, calls)
    with checkpoints.kept_in(tmp_path / "pieces", FACTORS):
        assert checkpoints.each(logged_root, calls[:1])[0][0] == 1 / 3
    assert computed(log) == [1, -1]


def test_a_damaged_checkpoint_is_computed_again(log: Path, tmp_path: Path) -> None:
    with checkpoints.kept_in(tmp_path / "pieces", FACTORS):
        checkpoints.each(logged_root, [(str(log), 4.0)])
        (path,) = (tmp_path / "pieces").iterdir()
        path.write_text("[0.66")
        assert checkpoints.each(logged_root, [(str(log), 4.0)])[0][0] == 2 / 3
    assert computed(log) == [4, 4]


@pytest.mark.parametrize(
    "change",
    [
        {"experiment": "squares"},
        {"version": 2},
        {"options": {"points": 3}},
        {"seed": 1},
        {"method_versions": {"ep_nn": "2"}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_another_factor_makes_another_checkpoint(log: Path, tmp_path: Path, change: dict) -> None:
    for factors in (FACTORS, FACTORS, FACTORS | change):
        with checkpoints.kept_in(tmp_path / "pieces", factors):
            checkpoints.each(logged_root, [(str(log), 4.0)])
    assert len(computed(log)) == 2


def test_a_moved_function_keeps_its_checkpoints(log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (logged_root.__module__, "another.module"):
        monkeypatch.setattr(logged_root, "__module__", module)
        with checkpoints.kept_in(tmp_path / "pieces", FACTORS):
            checkpoints.each(logged_root, [(str(log), 4.0)])
    assert computed(log) == [4]


def test_a_value_that_cannot_be_stored_is_returned(log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another run of the study may have just removed the folder."""

    def removed(*_: object) -> None:
        raise FileNotFoundError

    monkeypatch.setattr(checkpoints.store, "write_atomically", removed)
    with checkpoints.kept_in(tmp_path / "pieces", FACTORS):
        assert checkpoints.each(logged_root, [(str(log), 4.0)])[0][0] == 2 / 3


def test_an_interrupted_experiment_continues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = experiments.run("network_restarts", OPTIONS, 0, tmp_path / "whole", "whole", jobs=2)
    restarted, seen = network_restarts.restarted, []

    def cut(entry: dict, dataset: str, split: int, seed: int) -> object:
        seen.append(seed)
        if len(seen) == 3:
            raise KeyboardInterrupt
        return restarted(entry, dataset, split, seed)

    cut.__name__ = restarted.__name__
    monkeypatch.setattr(network_restarts, "restarted", cut)
    with pytest.raises(KeyboardInterrupt):
        experiments.run("network_restarts", OPTIONS, 0, tmp_path / "cut", "cut")
    assert experiments.checkpoints_kept(tmp_path / "cut") == 2
    experiments.run("network_restarts", OPTIONS, 0, tmp_path / "cut", "cut")
    assert seen == [0, 1, 2, 2]
    assert experiments.checkpoints_kept(tmp_path / "cut") == 0
    assert not (tmp_path / "cut" / "pieces").exists()
    (tmp_path / "cut" / "pieces").mkdir()  # as after a run that was stopped just before its end
    experiments.run("network_restarts", OPTIONS, 0, tmp_path / "cut", "cut")
    assert seen == [0, 1, 2, 2]
    assert not (tmp_path / "cut" / "pieces").exists()
    timed = network_restarts.MEASURES.index("seconds")
    with np.load(whole / "arrays.npz") as expected, np.load(tmp_path / "cut" / "arrays.npz") as found:
        np.testing.assert_array_equal(*(np.delete(a["found_0"], timed, axis=1) for a in (expected, found)))


def test_another_version_of_a_method_is_computed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {**OPTIONS, "datasets": [{"name": "friedman1", "restarts": 1}]}
    what = ("network_restarts", options, 0, tmp_path / "one")
    experiments.run(*what, "one")
    assert experiments.is_computed(*what)
    lock = experiments.store.read_lock(tmp_path / "one")
    assert lock is not None
    assert list(lock["method_versions"]) == ["ep_nn"]
    newest = "1" if lock["method_versions"]["ep_nn"] != "1" else "0"
    for of_options, expected in ((lock["method_versions"]["ep_nn"], True), ("another", False)):
        monkeypatch.setattr(
            "ep_bench.methods.version", lambda _, config=None, own=of_options: own if config else newest
        )
        assert experiments.is_computed(*what) == expected  # the numbers of these options may not have changed
