"""The page of a report in headless Chromium: filters, sorting, single cells, addresses, no JavaScript, dark, phone.

Needs Debian's package ``chromium``; without the program, the tests are skipped.
"""

from __future__ import annotations

import re
import shutil

import pytest

from ep_bench.plotting.page import Section, Table, item
from ep_bench.report import build, render_html

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.exhaustive,
    pytest.mark.skipif(CHROMIUM is None, reason="the program chromium is not installed"),
]
METHODS = ["pbp", "hmc", "laplace", "gp", "ridge"]
SETS = ["boston", "concrete", "energy", "wine", "yacht"]
SECONDS = 120_000  # milliseconds that an action may take on a busy machine


def gaps(row):
    """`ridge` lacks a split of wine, `hmc` has not converged on boston."""
    if row["method"] == "ridge" and row["dataset"] == "wine" and row["split"] == 1:
        return None
    if row["method"] == "hmc" and row["dataset"] == "boston":
        return {**row, "r_hat": 1.2, "reason": "not converged: R-hat of predictions 1.2"}
    return row


@pytest.fixture(scope="module")
def address(tmp_path_factory, make_study):
    folder = make_study(tmp_path_factory.mktemp("page") / "study", METHODS, SETS, splits=4, change=gaps)
    return build([folder])[0].as_uri()


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture
def open_page(browser, address):
    """A function that opens the page; errors of the script and requests for other files fail the test."""
    errors, contexts = [], []

    def opened(fragment="", **options):
        context = browser.new_context(**{"viewport": {"width": 1400, "height": 900}, **options})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(SECONDS)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("request", lambda request: errors.append(request.url) if request.url.startswith("http") else None)
        page.goto(address + fragment, timeout=SECONDS)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert errors == []


def rows_of_leaderboard(page):
    """Return the rows of the leaderboard, once the script has unpacked the data."""
    rows = page.locator("#live-leaderboard tbody tr")
    rows.first.wait_for()
    return rows


def names(page):
    """Return the methods of the leaderboard in the order of its rows, and those with a rank."""
    rows = rows_of_leaderboard(page)
    texts = [row.locator("th, td").all_inner_texts() for row in rows.all()]
    return [text[0].strip("†") for text in texts], [text[0].strip("†") for text in texts if text[1] != "–"]


def test_the_leaderboard_equals_the_static_one(open_page):
    live = open_page()
    static = open_page(java_script_enabled=False)
    rows = static.locator("#leaderboard .static table").first.locator("tbody tr").all()
    expected = [[text.strip() or "–" for text in row.locator("th, td").all_inner_texts()] for row in rows]
    shown = rows_of_leaderboard(live).all()
    found = [[text.strip() for text in row.locator("th, td").all_inner_texts()] for row in shown]
    assert len(found) == len(METHODS)
    assert [row[:4] for row in found] == [row[:4] for row in expected]  # method, rank, interval, loss
    assert [row[6:8] for row in found] == [row[6:8] for row in expected]  # finished, converged


def test_filters_change_ranks_and_tests(open_page):
    page = open_page()
    note = page.locator("#subset")
    assert "not tested" not in note.inner_text().lower() or "Friedman" in note.inner_text()
    page.locator("button.preset", has_text="networks").click()
    assert set(names(page)[0]) == {"pbp", "hmc", "laplace"}
    assert "preset=networks" in page.url
    page.locator("#filter-methods > summary").click()
    page.locator("input[data-method=laplace]").uncheck()
    assert set(names(page)[0]) == {"pbp", "hmc"}
    assert "not tested" in note.inner_text()
    assert all(row == "–" for row in rows_of_leaderboard(page).locator("td:nth-of-type(2)").all_inner_texts())
    page.locator("input[data-family=networks]").check()
    assert set(names(page)[0]) == {"pbp", "hmc", "laplace"}


def test_only_complete_and_converged_methods(open_page):
    page = open_page("#view:sets=boston,wine")
    everything, ranked = names(page)
    assert set(everything) == set(METHODS)
    assert set(ranked) == {"pbp", "hmc", "laplace", "gp"}
    page.locator("#filter-complete").check()
    assert set(names(page)[0]) == set(ranked)
    page.locator("#filter-converged").check()
    assert set(names(page)[1]) == {"pbp", "laplace", "gp"}
    assert "complete=1&converged=1" in page.url


def test_a_dagger_refers_to_the_chosen_data_sets(open_page):
    for chosen, name in (("boston,wine", "hmc†"), ("wine,yacht", "hmc")):
        page = open_page(f"#view:sets={chosen}")
        assert name in [link.inner_text() for link in page.locator("#live-leaderboard button.link").all()]


def test_a_single_data_set_has_means_instead_of_ranks(open_page):
    page = open_page("#view:sets=boston")
    head = page.locator("#live-leaderboard thead th").all_inner_texts()
    assert [text.split("\n")[0].strip(" ↕↑↓") for text in head[1:3]] == [
        "Mean test log-likelihood on boston",
        "loss (nats)",
    ]
    assert "±" in page.locator("#live-leaderboard tbody tr td").first.inner_text()
    assert "Lowest average rank" not in page.locator("#subset").inner_text()


def test_a_heading_sorts_the_rows(open_page):
    page = open_page()
    head = page.locator("#live-leaderboard th button", has_text="median CPU time")
    head.click()
    column = page.locator("#live-leaderboard tbody tr td:nth-of-type(5)")
    values = [cell.get_attribute("data-value") for cell in column.all()]
    known = [float(value) for value in values if value]
    assert known == sorted(known)
    assert values == [value for value in values if value] + [value for value in values if not value]
    head.click()
    known = [float(value) for cell in column.all() if (value := cell.get_attribute("data-value"))]
    assert known == sorted(known, reverse=True)


def test_a_cell_shows_splits_differences_seeds_and_reasons(open_page):
    page = open_page()
    page.locator("#live-leaderboard button.link", has_text="hmc").click()
    cell = page.locator("#cell")
    assert "hmc† on boston" in cell.locator("h3").inner_text()
    assert cell.locator("#cell-splits circle").count() == 4 + 1  # splits and their mean
    cell.locator("#cell-versus").select_option(label="gp")
    caption = cell.locator("#cell-difference figcaption").inner_text()
    assert re.search(r"Paired difference, hmc† minus gp: .* over 4 common splits", caption)
    assert re.search(r"Median CPU time of a split: .*, [\d.]+ times that of gp \(", cell.inner_text())
    cell.locator("summary", has_text="All 4 splits").click()
    text = cell.locator("table").inner_text()
    assert "R-hat of predictions 1.2" in text
    assert text.count("not converged") >= 4
    again = open_page("#" + page.url.partition("#")[2])
    assert again.locator("#cell-difference figcaption").inner_text() == caption


def test_an_address_restores_the_view_and_unknown_names_are_ignored(open_page):
    page = open_page("#view:score=rmse&methods=pbp,gp,nobody&sets=boston&complete=1&broken=%E0%A4%A")
    assert page.locator("#filter-score option:checked").inner_text().startswith("RMSE")
    assert set(names(page)[0]) == {"pbp", "gp"}
    assert "on 1 data set (boston)" in page.locator("#subset").inner_text()


def test_without_javascript_tables_and_the_figures_outside_folded_sections_are_there(open_page):
    page = open_page(java_script_enabled=False)
    assert page.locator("#leaderboard .static table").first.is_visible()
    assert not page.locator("#explorer").is_visible()
    assert page.locator("figure img").count() >= 8
    assert page.locator("section:not(:has(> details)) img[data-packed]").count() == 0
    assert "figures" in page.locator("section:has(img[data-packed]) noscript").first.text_content()
    assert page.locator("#score-ll table").count() + page.locator("#scores table").count() >= 3


def test_the_page_is_dark_if_the_reader_asks_for_it(open_page):
    def brightness(scheme):
        page = open_page(color_scheme=scheme)
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(int(part) for part in re.findall(r"\d+", colour)[:3])

    assert brightness("light") > 700
    assert brightness("dark") < 200


def test_on_a_phone_only_tables_scroll_sideways_and_no_text_is_tiny(open_page):
    page = open_page(viewport={"width": 400, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    sizes = page.evaluate(
        "[...document.querySelectorAll('body *')].filter(e => e.childNodes.length && e.offsetParent)"
        ".map(e => parseFloat(getComputedStyle(e).fontSize))"
    )
    assert min(sizes) >= 9.0
    scale = page.evaluate(
        "(() => { const c = document.getElementById('time-chart'); return c.getBoundingClientRect().width / 760 })()"
    )
    assert 11.5 * scale >= 9.0


def test_menus_filter_the_rows_of_a_table_and_of_its_csv(browser, tmp_path):
    rows = [["a", item("1.0 ± 0.2†", 1.0)], ["b", item("38 ms", 0.038)]]
    table = Table(["paper", "score"], rows, filters=["paper"])
    (tmp_path / "page.html").write_text(
        render_html.page("t", "s", [Section("s", "S", tables=[table])]), encoding="utf-8"
    )
    page = browser.new_page()
    page.goto((tmp_path / "page.html").as_uri(), timeout=SECONDS)

    def csv():
        with page.expect_download() as download:
            page.get_by_role("button", name="CSV").click()
        return download.value.path().read_text(encoding="utf-8")

    assert csv() == "paper,score,score standard error\na,1,0.2\nb,0.038,\n"
    page.get_by_label("paper", exact=True).select_option("b")
    assert page.get_by_role("status").inner_text() == "1 row"
    assert csv() == "paper,score\nb,0.038\n"
    page.close()
