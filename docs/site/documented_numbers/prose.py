"""Numbers in sentences: each decimal number and each count "N of M" is a fact or a setting."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

NUMBER = re.compile(r"(?<![\w.,/-])-?\d[\d,]*\.\d+(?![\w.]*\w)|\b\d[\d,]* of (?:the )?\d[\d,]*\b")
CODE = re.compile(r"^ *(```|~~~).*?^ *\1[^\n]*$|^::: .*\n(?: +:.*\n)*", flags=re.DOTALL | re.MULTILINE)
GENERATED = re.compile(r"<!-- table: \S+ -->\n\n?(?:\|.*\n)+")
INLINE = re.compile(r"`[^`]*`|\]\([^)]*\)|<!--.*?-->")

# Numbers that are not results: levels of tests, limits of rules, options, versions, sections of papers.
EVERYWHERE = ("0.05", "1.01", "1.05", "3.11")
SETTINGS: Mapping[str, tuple[str, ...]] = {
    "command-line.md": ("4.4",),
    "CONFORMANCE.md": ("0.25",),
    "methods/bb_alpha.md": ("0.5",),
    "methods/dgp_ep.md": ("0.002", "0.005", "0.001", "0.02"),
    "methods/ensemble.md": ("0.1", "0.01"),
    "methods/ep_nn.md": ("0.1",),
    "methods/gp_t.md": ("1.5",),
    "methods/laplace.md": ("0.3",),
    "networks.md": ("0.1", "0.01"),
    "papers/hernandez-lobato2015.md": ("5.4",),
    "platforms.md": ("3.12", "3.13"),
    "records.md": ("0.2", "0.1"),
    "scores.md": ("0.9",),
    "statistics.md": ("0.1", "14 of 20"),
}


def unchecked(page: str, text: str, facts: Iterable[str]) -> list[str]:
    """Return the numbers in the sentences of a page that are neither in a fact nor a setting."""
    prose = " ".join(CODE.sub("", GENERATED.sub("", text)).split())
    for fact in facts:
        prose = prose.replace(fact, "")
    known = (*EVERYWHERE, *SETTINGS.get(page, ()))
    return [number for number in NUMBER.findall(INLINE.sub("", prose)) if number not in known]
