"""`ep-bench methods test` as a user meets it."""

from __future__ import annotations

import pytest

from ep_bench.conformance.checks import CHECKS
from tests.cli.test_cli import ep_bench
from tests.conformance.support import HERE, bad


def test_a_fault_is_reported_in_three_parts_with_exit_code_2() -> None:
    done = ep_bench("methods", "test", bad("VarianceForDeviation"), cwd=HERE)
    assert done.returncode == 2
    assert not done.stderr
    lines = done.stdout.splitlines()
    starts = [line.split() for line in lines if not line.startswith(" ")]
    verdicts = {"original-units": "FAULT", "quantiles": "skipped"}  # the latter rests on the former
    assert [words[:2] for words in starts[:-1]] == [[verdicts.get(check.name, "ok"), check.name] for check in CHECKS]
    below = [line.split()[0] for line in lines if line.startswith("         ") and line[9] != " "]
    assert below == ["found", "expected", "remedy"]
    assert lines[-1].startswith(
        "./bad_methods.py:VarianceForDeviation does not conform: 18 checks, 16 ok, 1 FAULT, 1 skipped; "
    )


def test_quiet_prints_the_faults_and_the_result() -> None:
    target = "sklearn.linear_model:ARDRegression"
    done = ep_bench("methods", "test", target, "--option", "max_iter=50", "--option", "tol=1e-3", "--quiet")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0].split()[:2] == ["advice", "one-row"]
    assert lines[-1].startswith(f"{target} conforms: 18 checks, 17 ok, 1 advice; ")


@pytest.mark.slow
def test_a_method_of_the_registry_with_an_option() -> None:
    done = ep_bench("methods", "test", "pbp", "--option", "hidden=[10, 10]", "--option", "epochs=10")
    assert done.returncode == 0, done.stdout
    assert f"pbp conforms: {len(CHECKS)} checks, {len(CHECKS)} ok" in done.stdout
