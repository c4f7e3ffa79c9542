"""The JSON schema of studies: every study of the package is valid, wrong ones are not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from ep_bench.spec.shipped import shipped_studies
from ep_bench.spec.yaml_source import read_document
from tests.commands import ep_bench


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    schema = json.loads(ep_bench("schema").stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.mark.parametrize("path", shipped_studies().values(), ids=lambda path: path.stem)
def test_studies_of_the_package_are_valid(validator: Any, path: Path) -> None:
    assert not list(validator.iter_errors(read_document(path).values))


@pytest.mark.parametrize(
    "changed",
    [
        {"datasets": ["bostn"]},
        {"datasets": [{"name": "boston", "constant_input": "paper"}]},
        {"methods": [{"use": "pbp", "epoch": 3}]},
        {"methods": [{"use": "pbp", "epochs": "many"}]},
        {"methods": [{"use": "bp", "tune": {"trial": 3}}]},
        {"methods": [{"use": "bp", "tune": {"space": {"learning_rates": [0.1]}}}]},
        {"methods": ["pbpp"]},
        {"splits": {"scheme": "kfold", "count": 3}},
        {"limits": {"seconds": -1}},
        {"dataset": ["boston"]},
    ],
    ids=str,
)
def test_mistakes_are_found(validator: Any, changed: dict[str, Any]) -> None:
    study = {"study": "a", "datasets": ["boston"], "methods": ["pbp"]}
    assert validator.is_valid(study)
    assert not validator.is_valid(study | changed)


def test_options_of_an_experiment(validator: Any) -> None:
    assert validator.is_valid({"study": "a", "experiment": "cubic_toy"})
    assert not validator.is_valid({"study": "a", "experiment": "cubic_toy", "options": {"no_such": 1}})


def test_external_classes_have_any_options(validator: Any) -> None:
    methods = ["./mine.py:Mine", {"use": "package.module:Regressor", "alpha": 0.1}]
    assert validator.is_valid({"study": "a", "datasets": ["boston"], "methods": methods})


def test_a_file_is_written(tmp_path: Path) -> None:
    done = ep_bench("schema", "--out", "schema.json", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    assert (tmp_path / "schema.json").read_text() == ep_bench("schema").stdout


CONFIGS = Path(__file__).parents[2] / "configs"


@pytest.mark.parametrize("study", sorted(CONFIGS.rglob("*.yaml")), ids=lambda path: path.name)
def test_editors_find_the_schema_of_every_study(study: Path) -> None:
    schema = "../" * (len(study.relative_to(CONFIGS).parts) - 1) + "study.schema.json"
    expected = f"# yaml-language-server: $schema={schema}"
    first = study.read_text(encoding="utf-8").splitlines()[0]
    same = first == expected
    assert same, f"the first line of {study.relative_to(CONFIGS.parent)} must be `{expected}`"
