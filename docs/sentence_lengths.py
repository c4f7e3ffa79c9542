"""Measure the lengths of the sentences of the documentation, in words.

``python docs/sentence_lengths.py`` prints median and 90th percentile of all pages. With ``--long N`` it lists the
sentences of more than N words; with paths as arguments, it reads these pages only.

A sentence is prose: code blocks, tables, headings, comments and images are omitted. An item of a list is a sentence of
its own, and so is what follows a colon at the end of a line. Inline code and the text of a link count as written.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
FENCE = re.compile(r"^ *(```|~~~).*?^ *\1 *$", flags=re.DOTALL | re.MULTILINE)
OMITTED = re.compile(r"^ *(\||#|<!--|:::|!\[|!!!).*$", flags=re.MULTILINE)
ITEM = re.compile(r"^ *([-*]|\d+\.) +", flags=re.MULTILINE)
END = re.compile(r"(?<=[.!?])[)\"]?\s+(?=[A-Z`\[(*\"\d])")
ABBREVIATION = re.compile(r"\b(e\.g|i\.e|al|vs|cf|[A-Z])\.(?=\s)")


def pages() -> list[Path]:
    """Return the pages of the documentation: README, CONTRIBUTING and all of ``docs/``."""
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a page."""
    prose = OMITTED.sub("\n\n", FENCE.sub("\n\n", text))
    prose = re.sub(r"\]\([^)]*\)", "]", ITEM.sub("\n\n", prose))
    for paragraph in re.split(r"\n\s*\n", prose):
        words = ABBREVIATION.sub(r"\1", " ".join(paragraph.split()))
        yield from (one for one in END.split(words) if re.search(r"\w", one))


def lengths(texts: list[str]) -> np.ndarray:
    """Return the number of words of every sentence."""
    return np.array([len(one.split()) for text in texts for one in sentences(text)])


def main() -> None:
    """Print the lengths."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--long", type=int, metavar="N", help="list the sentences of more than N words")
    parser.add_argument("pages", nargs="*", type=Path)
    arguments = parser.parse_args()
    found = arguments.pages or pages()
    counts = lengths([page.read_text(encoding="utf-8") for page in found])
    print(f"{len(found)} pages, {len(counts)} sentences: median {np.median(counts):.0f} words, "
          f"90th percentile {np.percentile(counts, 90):.0f}")  # fmt: skip
    for page in found if arguments.long else ():
        for one in sentences(page.read_text(encoding="utf-8")):
            if len(one.split()) > arguments.long:
                print(f"{page}: {len(one.split())}: {one}")


if __name__ == "__main__":
    main()
