"""All files that state the release agree: version, date and address."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
import yaml

from release import metadata

ROOT = Path(__file__).parents[1]


def test_version_and_address_are_the_same_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    about = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert (str(about["version"]), about["repository-code"]) == (project["version"], project["urls"]["Repository"])
    assert project["version"] in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    for name, text in metadata.derived().items():
        assert (ROOT / name).read_text(encoding="utf-8") == text, f"{name}: run `python release/metadata.py`"


def test_one_command_states_a_release(tmp_path: Path, monkeypatch) -> None:
    for name in ("pyproject.toml", "CITATION.cff", "CHANGELOG.md", "README.md"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    monkeypatch.setattr(metadata, "ROOT", tmp_path)
    (tmp_path / "CHANGELOG.md").write_text("## 7.8.8, 2026-01-01\n")
    with pytest.raises(SystemExit, match="Unreleased"):
        metadata.main("7.8.9", "https://example.org/x")
    (tmp_path / "CHANGELOG.md").write_text("## Unreleased\n\n## 7.8.8, 2026-01-01\n")
    metadata.main("7.8.9", "https://example.org/x")
    texts = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    assert all("7.8.9" in text for name, text in texts.items() if name != "README.md")
    assert all(
        "https://example.org/x" in text for name, text in texts.items() if name not in {"README.md", "CHANGELOG.md"}
    )
    assert not any("OWNER" in text for name, text in texts.items() if name != "README.md")
    assert "date-released: " in texts["CITATION.cff"]
    project = tomllib.loads(texts["pyproject.toml"])
    assert project["project"]["urls"]["Repository"] == "https://example.org/x"
    assert project["tool"]["mypy"]["python_version"] == "3.11"
