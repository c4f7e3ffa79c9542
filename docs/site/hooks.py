"""Hooks of mkdocs for the documentation site.

They check the tables of all pages against the committed results, add the pages that are generated from the code, run
the tutorials, and lead links from the pages to files of the repository to a page or a copy in the site. The reports of
the committed results are those in ``build/reports/``, which ``make reports`` writes.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath
from typing import Any

from committed_results import committed_folders
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from page_tables import pages, with_tables
from reference_pages import PAGES, data_cards, method_reference, options_page, schema_page, studies_page
from tutorial_pages import tutorials

DOCS = Path(__file__).parents[1]
ROOT = DOCS.parent
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?!https?:|data:|#|mailto:)([^)\s#]+)(#[^)\s]+)?\)")
NUMBER = re.compile(r"[\d.]+(?: ± [\d.]+)?(?: [†°])?")  # with its standard error and mark, for one line of a table
ROW = re.compile(r"^ *\|.*\|$", flags=re.MULTILINE)
RANGE = re.compile(r"`[^`]*`|-?[\d.,]+ (?:to|of) -?[\d.,]+")  # of a table, for one line; inline code stays as it is
# Pages of the site that are made from files of the repository outside docs/.
MOVED = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "datasets/README.md": "reference/data-cards.md",
    "README.md": "README.md",
}
COPIED = {".csv", ".svg", ".md", ".yaml", ".html", ".cff", ".json"}  # types of files that the site may have a copy of


def on_config(config: Any) -> None:
    """Add the pages of the methods to the navigation."""
    (pages,) = (part["Methods"] for part in config["nav"] if "Methods" in part)
    for page in sorted(set(PAGES.values())):
        names = " and ".join(sorted(name for name, place in PAGES.items() if place == page))
        pages.append({names: f"methods/{page}.md"})


def on_pre_build(config: Any) -> None:  # noqa: ARG001
    """Stop if a table is not that of the committed results."""
    changed = [page for page in pages() if with_tables(page.read_text("utf-8")) != page.read_text("utf-8")]
    problems = [f"{page}: a table differs from results/; run `make docs-tables`" for page in changed]
    if problems:
        raise PluginError("\n".join(problems))


def on_files(files: Files, config: Any) -> Files:
    """Add the generated pages, and the reports of the committed results."""
    generated = {
        "contributing.md": _nested_by_four((ROOT / "CONTRIBUTING.md").read_text("utf-8")),
        "changelog.md": (ROOT / "CHANGELOG.md").read_text("utf-8"),
        "reference/data-cards.md": data_cards(),
        "reference/options.md": options_page(),
        "reference/study-schema.md": schema_page(),
        "reference/studies.md": studies_page(ROOT / "configs"),
    }
    generated |= {f"tutorials/{name}.md": text for name, text in tutorials(DOCS / "tutorials", ROOT / "build").items()}
    for name, text in generated.items():
        files.append(File.generated(config, name, content=text))
    for folder in committed_folders():
        report = ROOT / "build" / "reports" / folder.name / "report.html"
        if report.is_file():
            files.append(File.generated(config, _report(f"results/{folder.name}"), abs_src_path=str(report)))
    for page in [*DOCS.rglob("*.md"), ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]:
        origin = page.relative_to(ROOT).as_posix()
        for _, _, target, _ in LINK.findall(page.read_text("utf-8")):
            path = _in_repository(origin, target)
            if _is_copied(path) and files.get_file_from_path(path) is None:
                files.append(File.generated(config, path, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: Any, files: Files) -> str:  # noqa: ARG001
    """Complete a page: the reference of a method, and links to files of the repository."""
    here = page.file.src_uri
    origin = {"contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md"}.get(here, f"docs/{here}")
    if found := re.fullmatch(r"methods/([a-z_]+)\.md", here):
        markdown += method_reference(found[1])

    def lead(link: re.Match[str]) -> str:
        image, text, target, anchor = link[1], link[2], link[3], link[4] or ""
        path = _in_repository(origin, target)
        place = _place(path, files)
        if place is None:
            return text if text.startswith("`") else f"{text} (`{path}`)"
        return f"{image}[{text}]({relpath(place, str(PurePosixPath(here).parent))}{_anchor(path, place, anchor)})"

    linked = _outside_code(LINK, lead, markdown)
    return _outside_code(ROW, _with_unbroken_ranges, _outside_code(NUMBER, _with_unbroken_errors, linked))


def _with_unbroken_errors(number: re.Match[str]) -> str:
    return re.sub(" (?=[±†°])|(?<=±) ", "\N{NO-BREAK SPACE}", number[0])


def _with_unbroken_ranges(row: re.Match[str]) -> str:
    return RANGE.sub(lambda f: f[0] if f[0].startswith("`") else f[0].replace(" ", "\N{NO-BREAK SPACE}"), row[0])


def _place(path: str, files: Files) -> str | None:
    """Return the place in the site of a path of the repository, or None if the site does not have it."""
    if path.startswith("docs/"):
        return re.sub(r"^(tutorials/.*)\.py$", r"\1.md", path.removeprefix("docs/"))
    if path in MOVED:
        return MOVED[path]
    if path.startswith("configs/") and path.endswith(".yaml"):
        return "reference/studies.md"
    if (ROOT / path).is_dir() and path.startswith("results/"):
        path = _report(path)
    return path if files.get_file_from_path(path) is not None else None


def _anchor(path: str, place: str, anchor: str) -> str:
    """Return the anchor of a link; a study of the package has one of its own."""
    return f"#{PurePosixPath(path).stem}" if place == "reference/studies.md" and path != f"docs/{place}" else anchor


def _report(folder: str) -> str:
    """Return the place in the site of the report of a folder of results."""
    return f"{folder}/report/report.html"


def _is_copied(path: str) -> bool:
    """Return whether a file of the repository outside docs/ is copied into the site as it is."""
    file = ROOT / path
    inside = path.startswith(("docs/", "../", "configs/")) or path in MOVED
    return not inside and file.is_file() and file.suffix in COPIED


def _in_repository(origin: str, target: str) -> str:
    """Return the path in the repository that a relative link of a file names."""
    return normpath(str(PurePosixPath(origin).parent / target))


def _nested_by_four(text: str) -> str:
    """Indent nested blocks of lists by four spaces instead of three, as Python-Markdown requires."""
    return re.sub(r"^(?=   )", " ", text, flags=re.MULTILINE)


def _outside_code(pattern: re.Pattern[str], replace: Any, text: str) -> str:
    """Substitute matches, except in fenced blocks."""
    parts = re.split(r"(^ *```.*?^ *``` *$)", text, flags=re.DOTALL | re.MULTILINE)
    return "".join(part if i % 2 else pattern.sub(replace, part) for i, part in enumerate(parts))
