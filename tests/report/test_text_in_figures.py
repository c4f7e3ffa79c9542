"""Text in figures as a reader sees it, in headless Chromium: none is cut off, and no two texts overlap.

Needs Debian's package ``chromium``; without the program, the tests are skipped.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
RESULTS = Path(__file__).parents[2] / "results"
FIGURES = sorted(RESULTS.glob("*/report/figures/*.svg"))
SAMPLE = FIGURES[:: max(1, len(FIGURES) // 12)]
# Boxes of the texts on the screen, without the space above and below letters; texts are turned by 0 or 90 degrees.
FAULTS = """() => {
  const page = document.querySelector('svg').getBoundingClientRect();
  const texts = [...document.querySelectorAll('svg text')].filter((node) => node.textContent.trim()).map((node) => {
    const box = node.getBoundingClientRect();
    const turned = Math.abs(node.getScreenCTM().b) > 0.5;
    const [dx, dy] = turned ? [0.2 * box.width, 0.5] : [0.5, 0.2 * box.height];
    return { text: node.textContent.trim().slice(0, 40), left: box.left + dx, right: box.right - dx,
      top: box.top + dy, bottom: box.bottom - dy };
  });
  const cut = texts.filter((one) => one.left < page.left - 1 || one.right > page.right + 1
    || one.top < page.top - 1 || one.bottom > page.bottom + 1).map((one) => `cut: ${one.text}`);
  const meet = (a, b) => Math.min(a.right, b.right) > Math.max(a.left, b.left)
    && Math.min(a.bottom, b.bottom) > Math.max(a.top, b.top);
  const pairs = texts.flatMap((a, i) => texts.slice(i + 1).filter((b) => meet(a, b))
    .map((b) => `overlap: ${a.text} | ${b.text}`));
  return [...cut, ...pairs];
}"""
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="the program chromium is not installed")


@pytest.fixture(scope="module")
def faults_of():
    """A function that returns the faults of an SVG text."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1500, "height": 900})
        page.set_default_timeout(120_000)

        def faults(svg):
            page.set_content(f'<body style="margin:0;display:inline-block">{svg[svg.index("<svg") :]}</body>')
            return page.evaluate(FAULTS)

        yield faults
        browser.close()


@needs_chromium
def test_faults_are_found(faults_of):
    text = '<text x="{x}" y="20" font-size="10">{word}</text>'
    page = '<svg xmlns="http://www.w3.org/2000/svg" width="200" height="40">{}</svg>'
    apart = text.format(x=5, word="first") + text.format(x=60, word="second")
    assert faults_of(page.format(apart)) == []
    near = text.format(x=5, word="first") + text.format(x=20, word="second")
    assert faults_of(page.format(near)) == ["overlap: first | second"]
    assert faults_of(page.format(text.format(x=190, word="outside"))) == ["cut: outside"]


@needs_chromium
def test_no_text_of_some_committed_figures_is_cut_or_overlaps(faults_of):
    check(SAMPLE, faults_of)


@needs_chromium
@pytest.mark.exhaustive
def test_no_text_of_any_committed_figure_is_cut_or_overlaps(faults_of):
    check(FIGURES, faults_of)


def check(paths, faults_of):
    assert paths
    found = {str(path.relative_to(RESULTS)): faults_of(path.read_text(encoding="utf-8")) for path in paths}
    assert {name: faults for name, faults in found.items() if faults} == {}
