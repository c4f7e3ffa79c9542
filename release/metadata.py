"""State a release in all files that name its version, date or address: ``make release VERSION=1.0.0 REPOSITORY=URL``.

pyproject.toml has the version and the address, CITATION.cff also the date. ``.zenodo.json``, ``codemeta.json`` and the
entry in README follow from CITATION.cff; without arguments, these are written again.
"""

from __future__ import annotations

import datetime as dt
import json
import re
import sys
from pathlib import Path
from typing import Any

import yaml

from ep_bench.cli.output.cite import entries

ROOT = Path(__file__).parents[1]
BIBTEX = re.compile(r"@software\{ep-bench,.*?\n\}", flags=re.DOTALL)
DESCRIPTION = (
    "Benchmark of methods that predict with uncertainty: Bayesian neural networks, Gaussian processes and deep "
    "Gaussian processes, scored on the standard UCI regression splits and compared with numbers of five papers."
)


def replace(name: str, **values: str) -> None:
    """Set lines ``key: value`` or ``key = "value"`` of a file; a key that it lacks is added before ``license``."""
    text = (ROOT / name).read_text(encoding="utf-8")
    for key, value in values.items():
        line = rf"(?m)^({key}(?: = |: )\"?)[^\"\n]*"
        if re.search(line, text):
            text = re.sub(line, rf"\g<1>{value}", text, count=1)
        else:
            text = re.sub(r"(?m)^license:", f"{key}: {value}\nlicense:", text, count=1)
    (ROOT / name).write_text(text, encoding="utf-8")


def zenodo(about: dict[str, Any]) -> dict[str, Any]:
    """Return the content of ``.zenodo.json``."""
    return {
        "title": about["title"],
        "description": DESCRIPTION,
        "upload_type": "software",
        "version": str(about["version"]),
        "license": about["license"],
        "creators": [{"name": each["name"]} for each in about["authors"]],
        "keywords": about["keywords"],
        "related_identifiers": [{"identifier": about["repository-code"], "relation": "isSupplementTo"}],
    } | ({"publication_date": str(about["date-released"])} if "date-released" in about else {})


def codemeta(about: dict[str, Any]) -> dict[str, Any]:
    """Return the content of ``codemeta.json``."""
    return {
        "@context": "https://doi.org/10.5063/schema/codemeta-2.0",
        "@type": "SoftwareSourceCode",
        "name": "ep-bench",
        "description": DESCRIPTION,
        "version": str(about["version"]),
        "license": f"https://spdx.org/licenses/{about['license']}",
        "author": [{"@type": "Organization", "name": each["name"]} for each in about["authors"]],
        "keywords": about["keywords"],
        "codeRepository": about["repository-code"],
        "programmingLanguage": "Python",
    } | ({"datePublished": str(about["date-released"])} if "date-released" in about else {})


def citation() -> dict[str, Any]:
    """Return the content of CITATION.cff."""
    return dict(yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8")))


def derived() -> dict[str, str]:
    """Return the content of the files that follow from CITATION.cff, by name."""
    about = citation()
    entry = next(entries([]))
    readme = BIBTEX.sub(lambda _: entry, (ROOT / "README.md").read_text(encoding="utf-8"))
    files = {".zenodo.json": zenodo(about), "codemeta.json": codemeta(about)}
    return {name: json.dumps(content, indent=2) + "\n" for name, content in files.items()} | {"README.md": readme}


def main(version: str = "", repository: str = "") -> None:
    """Write the version, the address and today's date, then the files that follow from them."""
    if version:
        if not re.fullmatch(r"https://\S+", repository):
            sys.exit("REPOSITORY: give the address of the repository, https://...")
        today = dt.datetime.now(dt.UTC).date().isoformat()
        changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
        changes, sections = re.subn(r"(?m)^## Unreleased.*$", f"## {version}, {today}", changes, count=1)
        if not sections:
            sys.exit("CHANGELOG.md: there is no section `## Unreleased`")
        replace("pyproject.toml", version=version)
        replace("CITATION.cff", version=version, **{"date-released": today})
        address = citation()["repository-code"]
        for name in ("pyproject.toml", "CITATION.cff"):
            text = (ROOT / name).read_text(encoding="utf-8")
            (ROOT / name).write_text(text.replace(address, repository), encoding="utf-8")
        (ROOT / "CHANGELOG.md").write_text(changes, encoding="utf-8")
    for name, text in derived().items():
        (ROOT / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
