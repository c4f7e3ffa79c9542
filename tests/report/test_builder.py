"""Whole reports: files, the page, and missing parts."""

from __future__ import annotations

import html
import html.parser
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from urllib.parse import unquote

import pandas as pd
import pytest

from ep_bench import published
from ep_bench.errors import UserError
from ep_bench.report import build, merge
from ep_bench.report.context import ReportContext
from ep_bench.report.sections import all_sections
from ep_bench.results import store


class Outline(html.parser.HTMLParser):
    """Tags of a page, their attributes and nesting errors."""

    VOID = ("meta", "img", "br", "link", "input")

    def __init__(self, text):
        super().__init__()
        self.stack, self.tags, self.errors = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.stack.append(tag)

    def handle_endtag(self, tag):
        if not self.stack or self.stack.pop() != tag:
            self.errors.append(tag)


def page_of(folder):
    return (folder / "report" / "report.html").read_text(encoding="utf-8")


def images(text):
    """Return the SVGs of a page."""
    return [unquote(address.removeprefix("data:image/svg+xml,")) for address in re.findall(r"src='([^']+)'", text)]


@pytest.fixture(scope="module")
def built(tmp_path_factory, make_study):
    """Return the folder of a small study and the files of its report."""
    folder = make_study(tmp_path_factory.mktemp("built") / "my-study")
    return folder, build([folder], pdf=True)


def test_files_of_a_small_study(built):
    folder, files = built
    assert all(path.stat().st_size for path in files)
    names = {path.relative_to(folder / "report").as_posix() for path in files}
    assert {"report.html", "tables/scores.csv"} <= names
    for score in ("rmse", "ll", "crps"):
        assert {f"tables/{score}.md", f"tables/{score}.tex"} <= names
    for figure in (
        "panels-rmse",
        "panels-ll",
        "critical-difference-rmse",
        "critical-difference-ll",
        "calibration",
        "times",
    ):
        assert {f"figures/{figure}.svg", f"figures/{figure}.pdf"} <= names


def test_the_page_needs_no_network(built):
    text = page_of(built[0])
    outline = Outline(text)
    assert outline.errors == []
    assert outline.stack == []
    assert not [tag for tag, _ in outline.tags if tag in {"link", "iframe"}]
    for tag, attributes in outline.tags:
        for name in ("src", "href"):
            if name in attributes:
                assert attributes[name].startswith(("data:", "#")), (tag, attributes)
    assert not re.findall(r"url\((?!#)", text.replace("%23", "#"))
    assert "@import" not in text


def test_the_page_is_accessible(built):
    text = page_of(built[0])
    outline = Outline(text)
    heads = re.findall(r"<thead>.*?</thead>", text)
    assert heads
    assert all(head.count("<th") - 1 == head.count("<button") for head in heads)  # thead itself begins with <th
    assert all(attributes.get("alt") for tag, attributes in outline.tags if tag == "img")
    addresses = [attributes["href"] for tag, attributes in outline.tags if tag == "a"]
    anchors = {address[1:] for address in addresses if address.startswith("#")}
    assert anchors <= {attributes.get("id") for _, attributes in outline.tags}
    assert anchors


@pytest.mark.usefixtures("undrawn_figures")
def test_names_are_escaped_on_the_page(tmp_path, make_study):
    folder = make_study(tmp_path / "s", ['<script>alert("x")</script>', "a & b"], ["boston", "yacht"], 3)
    build([folder])
    text = page_of(folder)
    assert "<script>alert" not in text
    assert "a &amp; b" in text
    assert Outline(text).errors == []
    for image in images(text):
        assert ET.fromstring(image).tag.endswith("svg")  # noqa: S314 (written by this test)


def test_the_page_shows_what_was_run(built):
    text = page_of(built[0])
    lock = store.read_lock(built[0])
    assert "my-study" in text
    assert "scheme: standard" in text
    assert "3.11.9" in text
    assert all(entry["checksum"] in text for entry in lock["datasets"].values())
    assert "original units" in text


def test_the_page_shows_all_sections_figures_and_tables(built):
    page = page_of(built[0])
    parts = [p for section in all_sections(ReportContext(merge.merge([built[0]]))) for p in section.with_parts()]
    assert len({part.id for part in parts}) == len(parts)
    for part in parts:
        assert f'id="{part.id}"' in page
        if part.id == "leaderboard":  # shown by a view of its own
            continue
        for one in part.figures_and_tables():
            assert html.escape(one.caption, quote=False) in html.escape(html.unescape(page), quote=False)
    for table in (table for part in parts for table in part.tables if table.folded):
        assert f"<summary>{table.folded}</summary>" in page


@pytest.mark.usefixtures("undrawn_figures")
def test_missing_cells_and_failures_are_shown(tmp_path, make_study):
    def change(row):
        if row["method"] != "gp" or row["dataset"] != "boston":
            return row
        if row["split"] == 4:
            return None
        if row["split"] == 3:
            keep = ("study", "method", "dataset", "split", "seed", "cell")
            return {key: row[key] for key in keep} | {"status": "timeout", "reason": "over 600 s"}
        return row

    folder = make_study(tmp_path / "s", change=change)
    build([folder])
    for text in ("3 of 5 splits", "1 missing, 1 timeout", "over 600 s"):
        assert text in page_of(folder)


def test_figures_state_n(built):
    folder, _ = built
    drawn = (folder / "report" / "figures" / "critical-difference-rmse.svg").read_text(encoding="utf-8")
    assert "N = 3 data sets<" not in drawn
    assert "at least 5 blocks are needed, here N = 3" in page_of(folder)
    for test in ("Nemenyi", "Wilcoxon-Holm"):
        assert f"RMSE, {test}: N = 15 data sets × splits (not independent)<" in drawn
    panels = (folder / "report" / "figures" / "panels-ll.svg").read_text(encoding="utf-8")
    assert "Mean test log-likelihood (nats)" in panels
    assert "boston (5 splits)" in panels


@pytest.fixture(scope="module")
def parts(built, sections_of):
    return sections_of(built[0])


@pytest.mark.parametrize("part", ["score-ll", "ranks-ll", "ranks-rmse"])
def test_no_words_overlap(parts, no_overlap, part):
    for picture in parts[part].pictures:
        no_overlap(picture.figure)


@pytest.mark.parametrize(
    ("methods", "datasets", "splits"),
    [
        (["pbp"], ["boston"], 1),
        (["pbp"], ["boston", "yacht"], 3),
        (["a", "b"], ["boston"], 2),
        (["a", "b"], ["boston"], 1),
    ],
)
def test_small_studies_report_too(tmp_path, make_study, methods, datasets, splits):
    folder = make_study(tmp_path / "s", methods, datasets, splits)
    build([folder])
    assert Outline(page_of(folder)).errors == []
    assert all(method in page_of(folder) for method in methods)


def test_a_study_without_finished_cells_has_a_report(tmp_path, make_study):
    folder = make_study(tmp_path / "s", change=lambda _: None)
    build([folder])
    assert "0 of 45 fits" in page_of(folder)
    assert "0 of 5 splits" in page_of(folder)


@pytest.mark.usefixtures("undrawn_figures")
def test_published_numbers_are_compared_with_ours(tmp_path, make_study):
    folder = make_study(tmp_path / "s", ["pbp", "gp"], ["boston", "yacht"], 20)
    lock = store.read_lock(folder)
    lock["methods"]["pbp"]["published"] = ["PBP"]
    store.write_lock(folder, {key: value for key, value in lock.items() if key != "format"})
    checks = published.check(pd.DataFrame(store.read_study(folder).rows), lock)
    assert len(checks)
    build([folder])
    text = page_of(folder)
    assert f"{len(checks)} numbers:" in text
    assert text.count("hernandez-lobato2015") >= int((checks["source"] == "hernandez-lobato2015").sum())
    verdicts = re.findall(
        r'class="word" data-value="(\w+)"', text.partition('id="published"')[2].partition("</table>")[0]
    )
    assert sorted(verdicts) == sorted(checks["verdict"])


@pytest.mark.usefixtures("undrawn_figures")
def test_several_folders_are_merged(tmp_path, make_study):
    first = make_study(tmp_path / "one", ["pbp"], splits=4)
    second = make_study(tmp_path / "two", ["gp"], splits=4, seed=1)
    files = build([first, second])
    assert files[0] == first / "report" / "report.html"
    assert (first / "report" / "index.html").read_bytes() == files[0].read_bytes()
    text = (first / "report" / "tables" / "rmse.md").read_text()
    assert "| gp |" in text
    assert "| pbp |" in text


@pytest.mark.usefixtures("undrawn_figures")
def test_an_unknown_experiment_keeps_its_table(tmp_path):
    folder = tmp_path / "new"
    folder.mkdir()
    (folder / "summary.csv").write_text("what,value\nevidence,2.5\n")
    store.write_lock(folder, {"study": "new", "experiment": "something_else", "seed": 0})
    build([folder])
    assert "evidence" in page_of(folder)


def test_a_folder_without_results_is_refused(tmp_path):
    with pytest.raises(UserError, match="no results found"):
        build([tmp_path])
    with pytest.raises(UserError, match="at least one"):
        build([])


@pytest.mark.exhaustive
def test_numba_is_not_loaded(built):
    code = "import sys; from pathlib import Path; from ep_bench.report import build; build([Path(sys.argv[1])])"
    command = [sys.executable, "-c", f"{code}; print({{'numba', 'optuna'}} & set(sys.modules))", str(built[0])]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip() == "set()"
