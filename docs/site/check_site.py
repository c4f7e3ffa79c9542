"""Check the built site: no broken link, and nothing that a browser would request from another server.

``python docs/site/check_site.py build/site`` prints the number of pages, broken links and external requests, with their
places. It exits with status 1 if there is any.
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

LOADING = {"script", "img", "iframe", "source", "video", "audio", "embed", "object", "link", "image", "use", "input"}
RELATIONS = {"canonical", "prev", "next", "alternate", "author", "license"}  # of `link`: named, but not loaded
CSS_URL = re.compile(r"(?:url\(|@import)\s*[\"']?((?:https?:)?//[^\"')\s]+)")


class Problem(NamedTuple):
    """One broken link or external request."""

    kind: str
    page: str
    target: str


class Page(HTMLParser):
    """Links, anchors and loaded addresses of one page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.loaded: list[str] = CSS_URL.findall(text)
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect what one element links to, names or loads."""
        found = {key: value or "" for key, value in attrs}
        self.anchors |= {found[key] for key in ("id", "name") if key in found}
        if tag in LOADING and not RELATIONS & set(found.get("rel", "").split()):
            self.loaded += [found[key] for key in ("src", "href", "data", "xlink:href", "poster") if key in found]
            self.loaded += [one.split()[0] for one in found.get("srcset", "").split(",") if one.strip()]
        if tag == "a" and "href" in found:
            self.links.append(found["href"])


def problems(site: Path) -> list[Problem]:
    """Return the broken links and external requests of all pages and style sheets of a built site."""
    pages = {path.resolve(): Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        name = path.relative_to(site.resolve()).as_posix()
        external = [one for one in page.loaded if re.match(r"(https?:)?//", one)]
        found += [Problem("external request", name, one) for one in external]
        inside = [one for one in page.loaded if one and not re.match(r"(https?:)?//|data:|#", one)]
        links = [one for one in page.links if not re.match(r"[a-z]+:|//", one)] if name != "404.html" else []
        missing = [one for one in (inside if name != "404.html" else []) + links if not _exists(path, one, site, pages)]
        found += [Problem("broken link", name, one) for one in missing]
    for path in sorted(site.rglob("*.css")):
        name = path.relative_to(site).as_posix()
        found += [Problem("external request", name, one) for one in CSS_URL.findall(path.read_text(encoding="utf-8"))]
    return found


def _exists(page: Path, link: str, site: Path, pages: dict[Path, Page]) -> bool:
    """Return whether the file and the anchor of a relative link exist."""
    parts = urlsplit(link)
    target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if target.is_dir():
        target /= "index.html"
    if not target.exists() or not target.is_relative_to(site.resolve()):
        return False
    anchor = unquote(parts.fragment)
    return not anchor or target not in pages or anchor in pages[target].anchors or anchor.startswith("__")


def main() -> int:
    """Print the problems of a built site and their numbers."""
    site = Path(sys.argv[1])
    found = problems(site)
    for one in found:
        print(f"{one.kind}: {one.page}: {one.target}")
    counts = {kind: sum(one.kind == kind for one in found) for kind in ("broken link", "external request")}
    pages = len(list(site.rglob("*.html")))
    print(f"{pages} pages: {counts['broken link']} broken links, {counts['external request']} external requests")
    return len(found) > 0


if __name__ == "__main__":
    sys.exit(main())
