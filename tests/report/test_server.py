"""Reports at a local address."""

from __future__ import annotations

import threading
import urllib.error
import urllib.request

import pytest

from ep_bench.errors import UserError
from ep_bench.report.server import ReportServer, index_page
from ep_bench.results import store
from ep_bench.types import Record


def fetch(address, **headers):
    request = urllib.request.Request(address, headers=headers)  # noqa: S310 (a local address)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@pytest.fixture
def server(tmp_path, make_study):
    """Two studies; the second has an unfinished cell."""

    def change(row):
        return None if (row["method"], row["dataset"], row["split"]) == ("gp", "wine", 4) else row

    make_study(tmp_path / "first", ["pbp", "hmc"])
    make_study(tmp_path / "second", change=change, seed=1)
    with ReportServer(tmp_path) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def test_the_list_names_the_studies(server):
    status, text = fetch(server.address)
    assert status == 200
    assert "30 of 30 cells finished" in text
    assert "44 of 45 cells finished" in text
    assert fetch(server.address + "all")[1].count("<h2>") > 2


def test_the_list_counts_planned_cells_that_are_ok(tmp_path):
    rows = [("a" * 16, "ok"), ("b" * 16, "failed"), ("c" * 16, "ok")]  # the last is not planned
    cells = {str(split): key for split, (key, _) in enumerate(rows[:2])}
    groups = [{"method": "m", "dataset": "d", "factors": {}, "cells": cells}]
    store.write_lock(tmp_path, {"study": "s", "groups": groups})
    for split, (key, status) in enumerate(rows):
        row = {"study": "s", "method": "m", "dataset": "d", "split": split, "status": status, "seed": 0, "cell": key}
        store.write_record(tmp_path, Record(row, {}))
    assert "1 of 2 cells finished" in index_page(tmp_path, {"s": tmp_path})


def test_a_page_follows_a_running_study(server, tmp_path):
    files = {path: path.stat().st_mtime_ns for path in (tmp_path / "second").rglob("*")}
    _, before = fetch(server.address + "second")
    assert "44 of 45 cells finished ok" in before
    _, state = fetch(server.address + "state/second")
    assert f'"{state}"' in before
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "second").rglob("*")} == files  # nothing is written
    folder = tmp_path / "second"
    rows = store.finished_rows(folder).rows
    (missing,) = [cell for cell in store.lock_cells(store.read_lock(folder)) if cell["cell"] not in rows]
    template = next(row for row in rows.values() if row["method"] == "gp" and row["dataset"] == "wine")
    store.write_record(folder, Record(row={**template, "split": 4, "cell": missing["cell"]}, factors={}))
    assert fetch(server.address + "state/second")[1] != state
    assert "45 of 45 cells finished ok" in fetch(server.address + "second")[1]


def test_only_studies_are_served_and_only_to_this_machine(server):
    assert fetch(server.address + "third")[0] == 404
    for path in ("first/results.csv", "..%2f..%2fetc%2fpasswd", "state/third", "first/cells"):
        assert fetch(server.address + path)[0] == 404
    assert fetch(server.address, Host="example.org")[0] == 403


def test_a_folder_without_results_is_refused(tmp_path):
    with pytest.raises(UserError, match="no results"):
        ReportServer(tmp_path)
    with pytest.raises(UserError, match="no such folder"):
        ReportServer(tmp_path / "absent")


def test_a_port_in_use_is_named(server):
    with pytest.raises(UserError, match="cannot listen: Address already in use") as raised:
        ReportServer(server.folder, server.server_address[1])
    assert str(server.server_address[1]) in str(raised.value)
