"""Targets that are not methods are reported when the study is read."""

from __future__ import annotations

import importlib.metadata
import sys
from pathlib import Path

import pytest

from ep_bench import adapters
from ep_bench.adapters import targets
from ep_bench.errors import UserError
from ep_bench.runner.cell import run_cell
from ep_bench.runner.plan import make_plan
from ep_bench.spec import read_study

KINDS = "tests.adapters.kinds:"


def read(tmp_path: Path, use: str):
    (tmp_path / "s.yaml").write_text(
        f'study: s\ndatasets: [cubic]\nsplits: {{scheme: standard, count: 1}}\nmethods: [{{use: "{use}"}}]\n'
    )
    return read_study(tmp_path / "s.yaml")


def test_a_class_without_fit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"s\.yaml:4: methods\[0\]\.use: has no method fit"):
        read(tmp_path, "collections:OrderedDict")


def test_a_class_without_predictions_is_refused(tmp_path: Path) -> None:
    missing = (
        r"s\.yaml:4: methods\[0\]\.use: has no method for predictions; found '.*'; allowed: .* predict_dist, .*predict,"
    )
    with pytest.raises(UserError, match=missing):
        read(tmp_path, f"{KINDS}NoPrediction")
    assert read(tmp_path, f"{KINDS}OnInstances").methods


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("Points", "no log-likelihood: the method gives points only"),
        ("QuantileMethod", "no log-likelihood: the method gives quantiles only"),
        ("Density", ""),
        ("Deviation", ""),
    ],
)
def test_a_row_without_a_likelihood_gives_the_reason(tmp_path: Path, name: str, reason: str) -> None:
    (planned,) = make_plan(read(tmp_path, KINDS + name), tmp_path / "r").cells
    row = run_cell(planned.job).row
    assert (row["status"], row["reason"]) == ("ok", reason)
    assert ("ll" in row) == (not reason)
    assert "rmse" in row


def test_what_did_not_converge_comes_first(tmp_path: Path) -> None:
    (tmp_path / "warns.py").write_text(
        "import warnings\nfrom sklearn.exceptions import ConvergenceWarning\n"
        "class Warns:\n    def fit(self, X, y):\n"
        "        warnings.warn('three sweeps', ConvergenceWarning)\n        self.mean = y.mean()\n"
        "    def predict(self, X):\n        return 0.0 * X[:, 0] + self.mean\n"
    )
    (planned,) = make_plan(read(tmp_path, "./warns.py:Warns"), tmp_path / "r").cells
    row = run_cell(planned.job).row
    assert row["reason"] == "not converged: three sweeps; no log-likelihood: the method gives points only"


def test_distributions_are_those_of_importlib() -> None:
    expected = importlib.metadata.packages_distributions()
    found = {name: {one.metadata["Name"] for one in targets.distributions()[name]} for name in expected}
    assert {name: sorted(names) for name, names in found.items()} == {n: sorted(set(d)) for n, d in expected.items()}


def test_the_version_of_a_class_follows_all_modules_of_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without an installed distribution; the class is in one module and the change in another one."""
    package = tmp_path / "unpackaged_of_mine"
    (package / "inner").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "model.py").write_text("class Cls:\n    def fit(self, X, y): ...\n    def predict(self, X): ...\n")
    helper = package / "inner" / "helper.py"
    helper.write_text("A = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    first = adapters.version("unpackaged_of_mine.model:Cls", tmp_path)
    assert first.startswith("package ")
    helper.write_text("A = 2\n")
    second = adapters.version("unpackaged_of_mine.model:Cls", tmp_path)
    assert second.startswith("package ")
    assert second != first


def test_the_version_of_an_editable_package_follows_its_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info, module = tmp_path / "tiny_methods-1.2.3.dist-info", tmp_path / "tiny_methods_of_mine.py"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tiny-methods\nVersion: 1.2.3\n")
    (info / "top_level.txt").write_text("tiny_methods_of_mine\n")
    module.write_text("class Cls:\n    def fit(self, X, y): ...\n    def predict(self, X): ...\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(targets, "distributions", targets.distributions.__wrapped__)
    versions = []
    for editable in ("false", "true", "true"):
        (info / "direct_url.json").write_text(f'{{"dir_info": {{"editable": {editable}}}, "url": "file:///x"}}')
        module.write_text(module.read_text() + "\n# changed\n")
        versions.append(adapters.version("tiny_methods_of_mine:Cls", tmp_path))
    assert versions[0] == "tiny-methods 1.2"
    assert all(version.startswith("tiny-methods 1.2; file ") for version in versions[1:])
    assert versions[1] != versions[2]


def test_nested_errors_keep_their_parts(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("class Right: ...\nclass Other: ...\n")
    with pytest.raises(UserError) as caught:
        read(tmp_path, "./mine.py:Rihgt")
    error = caught.value
    assert error.head == f"{tmp_path / 's.yaml'}:4: methods[0].use: './mine.py' has no 'Rihgt'"
    assert (error.found, error.choices, error.suggestion) == ("./mine.py:Rihgt", "Other, Right", "Right")
    options = {"steps": [{"use": "./mine.py:Otherr"}, {"object": "./mine.py:Otherr"}]}
    problems = list(adapters.problems("sklearn.pipeline:Pipeline", options, tmp_path))
    assert [problem.path for problem in problems] == [("steps", 0, "use"), ("steps", 1, "object")]
    for problem in problems:
        assert (problem.problem, problem.found) == ("'./mine.py' has no 'Otherr'", "./mine.py:Otherr")
        assert (problem.allowed, problem.name) == (["Other", "Right"], "Otherr")


STEPS = """    steps:
      - [poly, {use: "sklearn.preprocessing:PolynomialFeatures"}]
      - [ridge, {use: "sklearn.linear_model:BayesianRidge"}]
"""


def of_pipeline(tmp_path: Path, *more: str):
    head = 'study: s\ndatasets: [yacht]\nmethods:\n  - use: "sklearn.pipeline:Pipeline"\n    label: a\n'
    (tmp_path / "s.yaml").write_text(head + STEPS + "".join(f"    {line}\n" for line in more))
    return read_study(tmp_path / "s.yaml")


def test_options_of_the_steps_of_a_pipeline_are_set_and_searched(tmp_path: Path) -> None:
    fixed = of_pipeline(tmp_path, "poly__degree: 3").methods[0]
    assert adapters.build_model(fixed.use, fixed.options, tmp_path).get_params()["poly__degree"] == 3
    searched = of_pipeline(tmp_path, "tune: {trials: 2, score: rmse, space: {poly__degree: [1, 2]}}")
    record = run_cell(make_plan(searched, tmp_path / "r").cells[0].job)
    assert {trial["options"]["poly__degree"] for trial in record.notes["tune"]["trials"]} == {1, 2}


@pytest.mark.parametrize(
    ("line", "found"), [("poly__degre: 3", "poly__degree"), ("pol__degree: 3", "poly__degree"), ("a__b: 1", "steps")]
)
def test_a_wrong_option_of_a_step_has_a_message(tmp_path: Path, line: str, found: str) -> None:
    with pytest.raises(UserError, match=r"s\.yaml:9: methods\[0\].* has no such option") as caught:
        of_pipeline(tmp_path, line)
    assert found in str(caught.value)


USES_OTHERS = """
import pickle, subprocess, sys

class Late:
    def fit(self, X, y):
        import late_helper
        self.value = late_helper.VALUE
        return self
    def predict(self, X): ...

class Sent(Late):
    name = "Sent"
    def fit(self, X, y):
        code = f"import pickle, sys; sys.path[:] = {sys.path!r}; print(pickle.loads({pickle.dumps(self)!r}).name)"
        self.value = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip()
        return self
"""


@pytest.mark.parametrize(("name", "value"), [("Late", 3), ("Sent", "Sent")])
def test_a_fit_imports_modules_of_its_folder_and_other_processes_import_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: object
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "m.py").write_text(USES_OTHERS)
    (tmp_path / "late_helper.py").write_text("VALUE = 3\n")
    assert adapters.build_model(f"./m.py:{name}", {}, tmp_path).fit([], []).value == value


def test_a_class_of_a_script_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"the class itself in `ep_bench\.run`") as caught:
        read(tmp_path, "__main__:Mine")
    assert "./file.py:Mine" in str(caught.value)


def test_a_required_option_is_given_by_the_entry_or_its_search(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "class Needs:\n    def __init__(self, alpha): self.alpha = alpha\n"
        "    def fit(self, X, y): ...\n    def predict(self, X): ...\n"
        "class Seeded(Needs):\n    def __init__(self, random_state): self.random_state = random_state\n"
    )

    def study(entry: str) -> None:
        head = "study: s\ndatasets: [cubic]\nmethods:\n  - {use: './mine.py:"
        (tmp_path / "s.yaml").write_text(f"{head}{entry}}}\n")
        read_study(tmp_path / "s.yaml")

    with pytest.raises(UserError, match=r"s\.yaml:4: methods\[0\]\.alpha: \./mine\.py:Needs requires this option"):
        study("Needs'")
    study("Seeded'")
    study("Needs', alpha: 1")
    study("Needs', tune: {space: {alpha: [1, 2]}, score: rmse}")
