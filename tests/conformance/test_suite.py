"""Children that crash, hang or end themselves; the catalogue; the document; foreign distributions."""

from __future__ import annotations

import ast
import contextlib
import inspect
import os
import re
from pathlib import Path

import numpy as np
import psutil
import pytest
from scipy import stats

from ep_bench.conformance.calibration import wrong_density
from ep_bench.conformance.checks import ALL_CHECKS, CHECKS, CLASSIFIER_CHECKS, CheckOutcome
from ep_bench.conformance.method_under_test import Answer, MethodUnderTest
from ep_bench.conformance.suite import CheckRunner, examine
from ep_bench.conformance.worker import function_of
from tests.conformance.support import HERE, bad

DOCUMENT = Path(__file__).parents[2] / "docs/CONFORMANCE.md"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("EndlessLoop", "not finished after 2 seconds"),
        ("EndsTheProcess", "ended its process with exit code 3"),
        ("Segfault", "crashed: SIGSEGV"),
    ],
)
def test_a_child_that_is_lost_is_a_fault_of_that_check_and_the_next_one_goes_on(name: str, words: str) -> None:
    examiner = CheckRunner(bad(name), {}, HERE, 2.0)
    try:
        examiner.start()
        lost, after = examiner.ask("wide"), examiner.ask("one-row")
    finally:
        examiner.stop()
    assert (lost.status, after) == ("FAULT", CheckOutcome("one-row", "ok"))
    assert words in lost.findings[0].found


@pytest.mark.slow
def test_a_fit_without_end_costs_one_limit_not_one_a_check() -> None:
    found = list(examine(bad("SpinsAlways"), {}, HERE, 1.0))
    assert [outcome.check for outcome in found if outcome.status == "FAULT"] == ["fits"]
    assert {outcome.reason for outcome in found[2:]} == {"see fits"}


def test_no_child_is_left(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(
        "import os\nclass X:\n    def fit(self, X, y):\n        open('pid', 'w').write(str(os.getpid()))\n"
        "    def predict(self, X):\n        return X[:, 0]\n"
    )
    before = Path.cwd()
    os.chdir(tmp_path)
    try:
        outcomes = examine("./m.py:X", {}, tmp_path, 30.0)
        assert [next(outcomes).status for _ in range(2)] == ["ok", "ok"]
        outcomes.close()
    finally:
        os.chdir(before)
    with contextlib.suppress(psutil.NoSuchProcess):  # otherwise the kernel is still ending it
        psutil.Process(int((tmp_path / "pid").read_text())).wait(timeout=5.0)


@pytest.mark.parametrize("checks", [CHECKS, CLASSIFIER_CHECKS])
def test_every_check_has_a_function_and_follows_the_checks_it_needs(checks: tuple) -> None:
    names = [check.name for check in checks]
    assert len(set(names)) == len(names)
    for i, check in enumerate(checks):
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", check.name)
        assert set(check.needs) <= set(names[:i])
        assert inspect.getdoc(function_of(check.name))


def test_the_document_lists_the_checks_as_they_are() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \| (.+?) \|$", DOCUMENT.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert rows == [(check.name, check.demands) for check in ALL_CHECKS]


def test_the_example_of_the_document_conforms(tmp_path: Path) -> None:
    code = re.findall(r"```python\n(.+?)```", DOCUMENT.read_text(encoding="utf-8"), flags=re.DOTALL)[0]
    ast.parse(code)
    (tmp_path / "my_method.py").write_text(code)
    found = {outcome.check: outcome for outcome in examine("./my_method.py:MyRegressor", {}, tmp_path, 60.0)}
    assert {name for name, outcome in found.items() if outcome.status == "FAULT"} == {"noise-included"}


class Foreign:
    """A distribution that is no Predictive: a Student-t at 50, of scale 7."""

    def __init__(self, df: float = 5.0, factor: float = 1.0, shift: float = 0.0) -> None:
        self._distribution, self._factor, self._shift = stats.t(df, 50.0, 7.0), factor, shift

    def mean(self) -> np.ndarray:
        return np.array([50.0 + self._shift])

    def std(self) -> np.ndarray:
        return np.array([self._distribution.std()])

    def quantile(self, p: float) -> np.ndarray:
        return np.array([self._distribution.ppf(p)])

    def logpdf(self, y: np.ndarray) -> np.ndarray:
        return self._distribution.logpdf(y) + np.log(self._factor)


@pytest.mark.parametrize("distribution", [Foreign(), Foreign(df=2.0), Foreign(df=3.0)])
def test_a_correct_density_has_no_finding_even_with_infinite_variance(distribution: Foreign) -> None:
    assert wrong_density(Answer(distribution.mean(), distribution.std(), distribution)) is None


def test_a_narrow_part_of_a_mixture_is_not_missed() -> None:
    from ep_bench import Predictive

    distribution = Predictive([0.5, 0.5], [[0.0], [3.0]], [[1e-4], [4.0]])
    assert wrong_density(Answer(distribution.mean(), distribution.std(), distribution)) is None


@pytest.mark.parametrize(
    ("distribution", "words"),
    [
        (Foreign(factor=7.0), "integrates to 7"),
        (Foreign(factor=1.0 / 7.0), "integrates to 0.143"),
        (Foreign(shift=10.0), "mean() and std() return 60"),
    ],
)
def test_a_density_in_other_units_is_found(distribution: Foreign, words: str) -> None:
    finding = wrong_density(Answer(distribution.mean(), distribution.std(), distribution))
    assert finding is not None
    assert words in finding.found


def test_a_distribution_of_quantiles_alone_has_its_median_for_a_mean() -> None:
    class Quantiles:
        def quantile(self, p: float) -> np.ndarray:
            return np.full(4, p)

    class Face:
        def predict_dist(self, X: np.ndarray) -> Quantiles:
            return Quantiles()

    answer = MethodUnderTest("./x.py:X", {}, HERE).answer(Face(), np.zeros((4, 1)))
    assert (answer.mean.tolist(), answer.std) == ([0.5] * 4, None)
