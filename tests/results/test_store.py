"""Files on disk are complete or recognised as damaged, and finished rows are kept."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ep_bench.errors import UserError
from ep_bench.results import files, store
from ep_bench.results.files import sole_writer
from ep_bench.results.spreadsheets import harmless, original
from ep_bench.types import COLUMNS, Record


def record(key: str = "a" * 16, **row: object) -> Record:
    labels = {"study": "s", "method": "m", "dataset": "d", "split": 0, "cell": key}
    values = {"status": "ok", "seed": 1, "reason": "", "rmse": 0.1 + 0.2, "ll": -1.5}
    factors = {"method": "pbp", "options": {"hidden": [50]}}
    return Record({**labels, **values, **row}, factors, trace={"t": [1.0, 2.5]})


GROUP = {"method": "m", "dataset": "d", "factors": {"seed": 0}, "cells": {"0": "a" * 16}}


def lock(*keys: str) -> dict[str, object]:
    return {"study": "s", "groups": [{**GROUP, "cells": {str(i): key for i, key in enumerate(keys)}}]}


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    store.write_record(tmp_path, record())
    assert list(store.each_record(tmp_path, [])) == [record()]
    assert [p.name for p in tmp_path.rglob("*.tmp")] == []


def flipped(content: bytes) -> bytes:
    """Return a content with one bit changed inside of the record."""
    place = content.index(b"-1.5")
    return content[: place + 1] + bytes([content[place + 1] ^ 1]) + content[place + 2 :]


@pytest.mark.parametrize(
    "damage",
    [lambda _: b"", lambda content: content[:-40], flipped, lambda content: content.replace(b"aaaa", b"bbbb")],
    ids=["empty", "cut", "flipped bit", "another cell"],
)
def test_a_damaged_file_is_ignored(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    store.write_record(tmp_path, record())
    path = tmp_path / "cells" / f"{'a' * 16}.json"
    path.write_bytes(damage(path.read_bytes()))
    damaged: list[Path] = []
    assert list(store.each_record(tmp_path, damaged)) == []
    assert damaged == [path]


def test_a_file_with_the_name_of_another_cell_is_ignored(tmp_path: Path) -> None:
    store.write_record(tmp_path, record())
    path = tmp_path / "cells" / f"{'a' * 16}.json"
    path.rename(path.with_name("b" * 16 + ".json"))
    assert list(store.each_record(tmp_path, [])) == []


def test_results_keep_every_digit_and_their_order(tmp_path: Path) -> None:
    rows = [record("b" * 16, split=10).row, record("c" * 16, split=9).row, record("d" * 16, method="a", split=3).row]
    store.write_rows(tmp_path / "results.csv", rows)
    found = store.read_rows(tmp_path / "results.csv")
    assert [row["split"] for row in found] == [3, 9, 10]
    assert found[0]["rmse"] == 0.1 + 0.2
    header = (tmp_path / "results.csv").read_text().splitlines()[0]
    assert header == ",".join(COLUMNS)
    assert header.startswith(
        "study,method,dataset,split,status,rmse,mae,ll,crps,coverage95,fit_seconds,predict_seconds,n_train,"
    )


def test_a_reason_stays_one_line(tmp_path: Path) -> None:
    store.write_rows(tmp_path / "r.csv", [record(reason='two\nlines, "quoted"').row])
    assert store.read_rows(tmp_path / "r.csv")[0]["reason"] == 'two lines, "quoted"'
    assert len((tmp_path / "r.csv").read_text().splitlines()) == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a,b\n1,2\n", "columns"),
        (",".join(COLUMNS) + "\ns,m,d,zero,ok" + "," * (len(COLUMNS) - 5) + "\n", "split"),
        (",".join(COLUMNS) + "\ns,m,d\n", "incomplete"),
    ],
)
def test_a_foreign_table_is_refused_with_its_line(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "results.csv"
    path.write_text(text)
    with pytest.raises(UserError, match=expected):
        store.read_rows(path)


def checksums(*keys: str) -> dict[str, object]:
    """Return the entries of a lock file with the checksums of rows."""
    finished = store.FinishedRows()
    for key in keys:
        finished.add(record(key))
    return finished.lock_entries(set(keys))


def test_export_joins_cell_files_with_committed_rows(tmp_path: Path) -> None:
    store.write_rows(tmp_path / "results.csv", [record("a" * 16).row])
    store.write_record(tmp_path, record("b" * 16, split=1))
    store.write_lock(tmp_path, lock("a" * 16, "b" * 16, "c" * 16) | checksums("a" * 16))
    assert [row["cell"] for row in store.export(tmp_path)] == ["a" * 16, "b" * 16]
    assert [row["cell"] for row in store.read_rows(tmp_path / "results.csv")] == ["a" * 16, "b" * 16]


def test_rows_that_leave_the_study_are_archived_unless_they_have_a_cell_file(tmp_path: Path) -> None:
    """The archive grows and is never read."""
    keys = ["a" * 16, "b" * 16, "c" * 16]
    store.write_rows(tmp_path / "results.csv", [record(key).row for key in keys])
    store.write_record(tmp_path, record(keys[1]))
    for plan, archived in ((keys[2], keys[:1]), ("d" * 16, [keys[0], keys[2]])):
        store.write_lock(tmp_path, lock(plan) | checksums(*keys))
        store.export(tmp_path)
        assert [row["cell"] for row in store.read_rows(tmp_path / store.SUPERSEDED)] == archived
    assert store.finished_rows(tmp_path).rows.keys() == {keys[1]}
    store.write_lock(tmp_path, lock(*keys[:2]))
    assert [row["cell"] for row in store.export(tmp_path)] == [keys[1]]


def test_a_cell_file_has_priority_over_an_older_row(tmp_path: Path) -> None:
    store.write_rows(tmp_path / "results.csv", [record(status="failed", reason="x").row])
    store.write_record(tmp_path, record())
    store.write_lock(tmp_path, lock("a" * 16))
    assert store.export(tmp_path)[0]["status"] == "ok"


def test_one_configuration_under_two_labels_is_two_rows(tmp_path: Path) -> None:
    store.write_lock(tmp_path, {"study": "s", "groups": [{**GROUP, "method": name} for name in ("first", "second")]})
    store.write_record(tmp_path, record(method="first"))
    store.export(tmp_path)
    assert [row["method"] for row in store.read_rows(tmp_path / "results.csv")] == ["first", "second"]


def test_a_failure_does_not_replace_a_finished_row(tmp_path: Path) -> None:
    store.write_lock(tmp_path, lock("a" * 16) | checksums("a" * 16))
    store.write_record(tmp_path, record(status="failed", reason="no luck"))
    store.write_rows(tmp_path / "results.csv", [record().row])
    assert store.export(tmp_path)[0]["status"] == "ok"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"methods": {"a\x1b": {}}}, "control character"),
        ({"format": store.FORMAT + 1}, "newer version"),
    ],
)
def test_a_lock_file_of_a_wrong_form_is_refused(tmp_path: Path, changes: dict[str, object], message: str) -> None:
    (tmp_path / store.LOCK).write_text(json.dumps({**lock("a" * 16), "format": store.FORMAT, **changes}))
    with pytest.raises(UserError, match=message):
        store.read_study(tmp_path)


def test_drafts_of_killed_writers_are_removed(tmp_path: Path) -> None:
    store.write_record(tmp_path, record())
    (tmp_path / "cells" / ".x.json.1.0123abcd.tmp").write_text("{")
    (tmp_path / ".results.csv.1.0123abcd.tmp").write_text("study")
    (tmp_path / ".notes.tmp").write_text("of the user")
    store.remove_drafts(tmp_path)
    assert len(list((tmp_path / "cells").iterdir())) == 2
    assert len(list(tmp_path.iterdir())) == 3
    store.remove_drafts(tmp_path, age=-1.0)
    assert [path.suffix for path in (tmp_path / "cells").iterdir()] == [".json"]
    assert {path.name for path in tmp_path.iterdir()} == {"cells", ".notes.tmp"}


def test_a_folder_without_results_is_refused(tmp_path: Path) -> None:
    results = tmp_path / "results"
    store.write_lock(results / "one", lock("a" * 16))
    for folder, words in (
        (results / "onne", f"no such folder; did you mean {results / 'one'}?"),
        (tmp_path / "one", f"no such folder; did you mean {results / 'one'}?"),
        (results, f"no results found: neither {store.LOCK} nor {store.RESULTS} exists; allowed: {results / 'one'}"),
    ):
        with pytest.raises(UserError) as caught:
            store.read_study(folder)
        assert words in str(caught.value)


def test_a_second_writer_waits_until_the_first_has_ended_or_is_killed(tmp_path: Path) -> None:
    hold = (
        "import sys, time; from pathlib import Path; from ep_bench.results.files import sole_writer\n"
        "with sole_writer(Path(sys.argv[1])): print(flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", hold, str(tmp_path)], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        entered = threading.Event()

        def enter() -> None:
            with sole_writer(tmp_path):
                entered.set()

        thread = threading.Thread(target=enter)
        thread.start()
        assert not entered.wait(0.3)
        other.kill()
        thread.join(30.0)
        assert entered.is_set()


@pytest.mark.parametrize("text", ["=1+1", "+x", "-PBP", "@x", "'=x", "''", "plain", "", "-", "'"])
def test_a_formula_becomes_a_text_and_is_read_back(text: str) -> None:
    assert not harmless(text).startswith(tuple("=+-@"))
    assert original(harmless(text)) == text
    assert harmless("-1.5") == "-1.5"
    assert harmless(-1.5) == -1.5


def test_concurrent_writers_leave_one_complete_file(tmp_path: Path) -> None:
    def write(text: str) -> None:
        for _ in range(50):
            store.write_atomically(tmp_path / "f", text)

    threads = [threading.Thread(target=write, args=(letter * 10_000,)) for letter in "abcd"]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        if (tmp_path / "f").exists():
            text = (tmp_path / "f").read_text()
            assert len(text) == 10_000
            assert len(set(text)) == 1
    for thread in threads:
        thread.join()
    assert [p.name for p in tmp_path.iterdir()] == ["f"]


def test_a_row_that_another_thread_adds_is_in_the_lock_file_and_in_the_table_or_in_neither(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.write_lock(tmp_path, lock("a" * 16, "b" * 16))
    finished = store.FinishedRows()
    finished.add(record("a" * 16))

    def late(*words: Any) -> list[store.Row]:
        rows = current_rows(*words)
        finished.add(record("b" * 16, split=1))
        return rows

    current_rows = store.current_rows
    monkeypatch.setattr(store, "current_rows", late)
    store.export(tmp_path, finished)
    assert store.read_intact(tmp_path).finished.suspect == []
    assert finished.rows.keys() == {"a" * 16, "b" * 16}


def test_damaged_cell_files_are_set_aside_once(tmp_path: Path) -> None:
    for key in ("a" * 16, "b" * 16):
        store.write_record(tmp_path, record(key))
    damaged, mended = (tmp_path / "cells" / f"{letter * 16}.json" for letter in "ab")
    damaged.write_text("{")
    store.set_aside([damaged, mended, tmp_path / "cells" / "gone.json"])  # another run has written the second again
    assert sorted(path.name for path in (tmp_path / "cells").iterdir()) == [f"{damaged.name}.damaged", mended.name]
    assert store.finished_rows(tmp_path).damaged == []
