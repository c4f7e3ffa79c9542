"""Numbers in sentences: each decimal number, each count "N of M" and each count of results is a fact or a setting.

Counts of results are whole numbers before the nouns of ``COUNT``, such as "nine data sets", on pages about results.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

NUMBER = re.compile(r"(?<![\w.,/-])-?\d[\d,]*\.\d+(?![\w.]*\w)|\b\d[\d,]* of (?:the )?\d[\d,]*\b")
CODE = re.compile(r"^ *(```|~~~).*?^ *\1[^\n]*$|^::: .*\n(?: +:.*\n)*", flags=re.DOTALL | re.MULTILINE)
GENERATED = re.compile(r"<!-- table: \S+ -->\n\n?(?:\|.*\n)+")
INLINE = re.compile(r"`[^`]*`|\]\([^)]*\)|<!--.*?-->")

WORDS = "two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|twenty"
NOUNS = "sets|folders|networks|methods|studies|folds|columns|entries|claims|cells|papers"
COUNT = re.compile(rf"(?<![\w.,/-])(?:{WORDS}|\d[\d,]*)(?: (?!compares)[A-Za-z-]+)? (?:{NOUNS})\b", flags=re.IGNORECASE)
WITH_COUNTS = ("README", "findings", "leaderboard", "losses", "networks", "performance", "reproductions", "results")
COUNT_FOLDERS = ("methods/", "papers/")

# Counts that a study, a paper or a list on the same page defines.
DEFINED: Mapping[str, tuple[str, ...]] = {
    "README.md": ("ten classification sets", "five papers", "ten neural networks"),
    "findings.md": ("five papers", "twelve columns", "ten data sets"),
    "leaderboard.md": ("four data sets",),
    "losses.md": ("four data sets",),
    "methods/ep_nn.md": ("two folds", "ten folds"),
    "methods/gp_t.md": ("two other studies",),
    "methods/hmc.md": ("300 data sets", "four networks"),
    "methods/laplace.md": ("five data sets",),
    "papers/bui2015.md": ("three folders",),
    "papers/jylanki2011.md": ("eleven methods", "three studies", "three folders"),
    "reproductions.md": ("two data sets",),
    "results.md": ("nine data sets", "300 data sets", "four networks", "10 folds", "eleven methods"),
}

# Numbers that are not results: levels of tests, limits of rules, options, versions, sections of papers.
EVERYWHERE = ("0.05", "1.01", "1.05", "3.11")
SETTINGS: Mapping[str, tuple[str, ...]] = {
    "command-line.md": ("4.4",),
    "CONFORMANCE.md": ("0.1", "0.25"),
    "methods/bb_alpha.md": ("0.5",),
    "own-methods.md": ("0.25", "0.5", "0.75", "0.95"),
    "methods/dgp_ep.md": ("0.002", "0.005", "0.001", "0.02"),
    "methods/ensemble.md": ("0.1", "0.01"),
    "methods/ep_nn.md": ("0.1",),
    "methods/gp_t.md": ("1.5",),
    "methods/laplace.md": ("0.3",),
    "networks.md": ("0.1", "0.01"),
    "papers/hernandez-lobato2015.md": ("5.4",),
    "platforms.md": ("3.12", "3.13"),
    "records.md": ("0.001", "0.1", "0.2", "0.3", "1.5"),
    "scores.md": ("0.9",),
    "statistics.md": ("0.1", "14 of 20"),
    "studies.md": ("0.1",),
    "tuning.md": ("0.5", "0.002", "0.005", "0.01"),
}


def unchecked(page: str, text: str, facts: Iterable[str]) -> list[str]:
    """Return the numbers in the sentences of a page that are neither in a fact nor a setting."""
    prose = " ".join(CODE.sub("", GENERATED.sub("", text)).split())
    for fact in facts:
        prose = prose.replace(fact, "")
    known = (*EVERYWHERE, *SETTINGS.get(page, ()))
    prose = INLINE.sub("", prose)
    numbers = [number for number in NUMBER.findall(prose) if number not in known]
    return numbers + [count for count in _counts(page, prose) if count not in DEFINED.get(page, ())]


def _counts(page: str, prose: str) -> list[str]:
    """Return the counts of results in the prose of a page, none for a page that is not about results."""
    about_results = page.removesuffix(".md") in WITH_COUNTS or page.startswith(COUNT_FOLDERS)
    return COUNT.findall(prose) if about_results else []
