"""The documentation site: navigation, tutorials, the check of the built pages, the citation."""

from __future__ import annotations

import importlib.util
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
import yaml

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
GENERATED = {"contributing.md", "changelog.md", *(f"reference/{name}.md" for name in
             ("data-cards", "options", "study-schema", "studies"))}  # fmt: skip


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def entries(nav: object) -> list[str]:
    """Return the pages of a navigation tree."""
    if isinstance(nav, str):
        return [nav]
    return [page for one in (nav.values() if isinstance(nav, dict) else nav) for page in entries(one)]


def test_the_navigation_has_every_page_once() -> None:
    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    pages -= {f"methods/{path.name}" for path in (DOCS / "methods").glob("[a-z]*.md")}  # the hooks add these
    pages |= {f"tutorials/{path.stem}.md" for path in (DOCS / "tutorials").glob("*.py")}
    found = entries(config["nav"])
    assert sorted(found) == sorted(pages | GENERATED)


def test_nothing_is_requested_from_other_servers() -> None:
    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    assert config["theme"]["font"] is False
    assert "repo_url" not in config
    assert config["strict"] is True
    assert "offline" in config["plugins"]
    assert all((DOCS / script).is_file() for script in config["extra"]["polyfills"])
    assert any("iframe-worker" in script for script in config["extra"]["polyfills"])  # otherwise loaded from a server


PAGE = '<html><body><a href="b.html#here">b</a><img src="data:image/png;base64,AA=="><a href="https://x.org">x</a>{}</body></html>'


@pytest.mark.parametrize(
    ("planted", "kinds"),
    [
        ("", []),
        ('<script src="https://cdn.org/a.js"></script>', ["external request"]),
        ('<link rel="stylesheet" href="//cdn.org/a.css">', ["external request"]),
        ('<img src="http://x.org/a.png">', ["external request"]),
        ("<style>@import url('https://fonts.org/a.css');</style>", ["external request"]),
        ('<img src="missing.png">', ["broken link"]),
        ('<a href="missing.html">m</a>', ["broken link"]),
        ('<a href="b.html#nowhere">m</a>', ["broken link"]),
        ('<link rel="canonical" href="https://x.org/a.html">', []),
    ],
)
def test_the_check_of_the_built_site(planted: str, kinds: list[str], tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(PAGE.format(planted))
    (tmp_path / "b.html").write_text('<h1 id="here">b</h1>')
    assert [one.kind for one in load(DOCS / "site" / "check_site.py").problems(tmp_path)] == kinds


def test_a_style_sheet_with_a_font_of_another_server_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.css").write_text("@font-face { src: url(https://fonts.org/a.woff2); }")
    assert len(load(DOCS / "site" / "check_site.py").problems(tmp_path)) == 1


TUTORIAL = """\
# %% [markdown]
# # Title
# %% [file a.txt]
# content
# %% [console]
# $ cat a.txt
# $ exit 3  # exit status 3
# %%
print(6 * 7)
"""


def test_a_tutorial_is_run_and_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "t.py"
    script.write_text(TUTORIAL)
    page = load(DOCS / "site" / "tutorial_pages.py").run(script)
    assert "# Title" in page
    assert "```console\n$ cat a.txt\ncontent\n$ exit 3\n```" in page
    assert "```text\n42\n```" in page


@pytest.mark.parametrize("cell", ["# %% [console]\n# $ exit 1\n", "# %%\nraise ValueError\n"])
def test_a_tutorial_that_fails_is_an_error(cell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "t.py"
    script.write_text(cell)
    with pytest.raises((RuntimeError, ValueError)):
        load(DOCS / "site" / "tutorial_pages.py").run(script)


def test_the_citation_has_the_version_of_the_package() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert str(citation["version"]) == project["version"]
    assert [one["name"] for one in citation["authors"]] == [one["name"] for one in project["authors"]]
