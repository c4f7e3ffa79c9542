"""Tables name uncommitted changes of the source code that computed them."""

from __future__ import annotations

import pytest

from ep_bench.plotting.page import Section, Table
from ep_bench.report.changed_trees import note_changed_experiment, note_changed_trees

TABLES = [Table(["method"], [["PBP"]], "Scores."), Table(["x"], [["1"]]), Table(["x"], [["1"]], markdown="| x |\n")]


@pytest.mark.parametrize("revision", ["abc+changes", "abc", ""])
def test_every_table_of_an_experiment_names_the_revision(revision: str) -> None:
    section = note_changed_experiment(Section("s", "S", tables=TABLES), revision)
    note = "Computed with uncommitted changes of the source code: abc+changes."
    named = [note in table.caption for table in section.tables]
    assert named == [revision == "abc+changes"] * 3
    if revision == "abc+changes":
        assert section.tables[0].caption == f"Scores. {note}"
        assert section.tables[1].caption == note
        assert section.tables[2].markdown == f"| x |\n\n{note}\n"


@pytest.mark.parametrize(
    ("text", "named"), [("| VI-1 | 2 |", False), ("SVI", False), ("| VI | 2 |", True), ("VI, VI-1", True)]
)
def test_a_file_with_a_longer_label_does_not_name_the_method(text: str, named: bool) -> None:
    section = note_changed_trees(Section("s", "S", files={"a.md": text}), {"VI": ["abc+changes"]})
    assert ("VI (abc+changes)" in section.files["a.md"]) == named


def test_only_tables_with_the_method_name_it() -> None:
    section = note_changed_trees(Section("s", "S", tables=TABLES), {"PBP": ["abc+changes"]})
    assert ["PBP (abc+changes)" in table.caption for table in section.tables] == [True, False, False]
