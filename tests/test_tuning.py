"""The search: budget, validation points, first trial, result; without files and processes."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from ep_bench import catalogue, methods, tuning
from ep_bench.spec import read_space

SPACE = {"x": {"uniform": [-4.0, 4.0]}, "n": {"int": [1, 9]}, "kind": {"choice": ["a", ["b", 2], {"c": 1}]}}


def bowl(options: Any) -> tuple[float, str]:
    """Highest, 0, at x = 1, n = 5 and the second kind."""
    off = 0.0 if options["kind"] == ["b", 2] else 1.0
    return -((options["x"] - 1.0) ** 2) - 0.1 * (options["n"] - 5) ** 2 - off, ""


def run(evaluate: Any = bowl, space: Any = SPACE, start: Any = None, **settings: Any) -> tuning.SearchResult:
    return tuning.search(evaluate, space, start or {}, **{"trials": 20, "score": "ll", "seed": 3, **settings})


def untimed(found: tuning.SearchResult) -> list[Any]:
    return [{key: value for key, value in trial.items() if key != "seconds"} for trial in found.trials]


class TestValidationRows:
    @pytest.mark.parametrize(("n", "fraction", "count"), [(10, 0.2, 2), (2, 0.01, 1), (2, 0.99, 1), (398, 0.2, 80)])
    def test_number_of_validation_points(self, n: int, fraction: float, count: int) -> None:
        fitting, validation = tuning.validation_rows(n, fraction, 7)
        assert len(validation) == count
        assert sorted([*fitting, *validation]) == list(range(n))
        assert list(fitting) == sorted(fitting)

    def test_the_points_depend_on_the_seed(self) -> None:
        same, again = tuning.validation_rows(100, 0.2, 7)[1], tuning.validation_rows(100, 0.2, 7)[1]
        np.testing.assert_array_equal(same, again)
        assert not np.array_equal(same, tuning.validation_rows(100, 0.2, 8)[1])

    def test_golden(self) -> None:
        # Golden value: committed results depend on these points.
        assert list(tuning.validation_rows(10, 0.3, 2685746324)[1]) == [2, 6, 8]

    def test_one_point_cannot_be_divided(self) -> None:
        with pytest.raises(ValueError, match="1 training point"):
            tuning.validation_rows(1, 0.5, 0)


def test_equal_seeds_give_equal_searches() -> None:
    assert untimed(run()) == untimed(run())
    assert untimed(run()) != untimed(run(seed=4))


def test_the_search_finds_the_optimum() -> None:
    found = run(trials=120)
    assert found.options["kind"] == ["b", 2]
    assert abs(found.options["n"] - 5) <= 1
    assert found.options["x"] == pytest.approx(1.0, abs=0.3)
    scores = [trial["score"] for trial in found.trials]
    assert found.best == int(np.argmax(scores))
    # The last trials are better than the first ones, which are random.
    assert np.mean(scores[-40:]) > np.mean(scores[:10]) + 1.0


def test_rmse_is_minimised() -> None:
    found = run(lambda options: (-bowl(options)[0], ""), score="rmse", trials=60)
    scores = [trial["score"] for trial in found.trials]
    assert found.best == int(np.argmin(scores))
    assert np.mean(scores[-20:]) < np.mean(scores[:10])
    assert untimed(found) == [trial | {"score": -trial["score"]} for trial in untimed(run(trials=60))]


@pytest.mark.parametrize("bad", ["none", "nan", "inf"])
def test_failures_count_and_are_kept_with_their_reason(bad: str) -> None:
    calls = []

    def every_third_fails(options: Any) -> tuple[float | None, str]:
        calls.append(options)
        value, _ = bowl(options)
        if len(calls) % 3:
            return value, ""
        return {"none": (None, "no luck"), "nan": (math.nan, ""), "inf": (math.inf, "")}[bad]

    found = run(every_third_fails, trials=31)
    assert len(calls) == len(found.trials) == 31
    failed = [trial for trial in found.trials if trial["score"] is None]
    assert len(failed) == 10
    assert {trial["reason"] for trial in failed} == {"no luck" if bad == "none" else "non-finite ll"}
    assert found.best is not None
    assert found.trials[found.best]["score"] == max(t["score"] for t in found.trials if t["score"] is not None)


def test_every_combination_of_a_small_finite_space_is_tried_once() -> None:
    space = {"a": {"choice": [1, 2, 3]}, "b": {"choice": ["x", "y"]}}
    found = run(lambda options: (-abs(options["a"] - 2.0) - (options["b"] == "x"), ""), space, {"a": 3, "b": "y"})
    tried = [(trial["options"]["a"], trial["options"]["b"]) for trial in found.trials]
    assert tried[0] == (3, "y")
    assert sorted(tried) == [(a, b) for a in (1, 2, 3) for b in ("x", "y")]
    assert found.options == {"a": 2, "b": "y"}
    assert len(run(lambda _options: (0.0, ""), space, trials=5).trials) == 5
    assert len(run(lambda _options: (0.0, ""), space, {"a": 9, "b": "y"}).trials) == 20  # a start outside the space


class TestStart:
    def test_is_the_first_trial(self) -> None:
        start = {"x": 0.25, "n": 7, "kind": ["b", 2]}
        found = run(start=start)
        assert found.trials[0]["options"] == start
        assert found.trials[1]["options"] != start

    def test_tuples_and_whole_floats_are_found_among_the_choices(self) -> None:
        space = {"a": {"choice": [[50], [50, 50]]}, "b": {"choice": [1, 2]}, "c": {"choice": [0, False, True]}}
        assert tuning._parameters(space, {"a": (50, 50), "b": 2.0, "c": False}) == ({"a": 1, "b": 1, "c": 1}, {})

    @pytest.mark.parametrize("x", [9.0, None, "scale", True, math.nan, (1, 2)])
    def test_a_start_outside_the_space_is_tried(self, x: Any) -> None:
        seen = []

        def evaluate(options: Any) -> tuple[float, str]:
            seen.append(options["x"])
            return (5.0, "") if len(seen) == 1 else bowl(options)

        found = run(evaluate, start={"x": x, "n": 2, "kind": "a"}, trials=15)
        assert seen[0] is x or seen[0] == x
        assert all(isinstance(other, float) and -4.0 <= other <= 4.0 for other in seen[1:])
        assert found.best == 0
        assert found.options["x"] is x or found.options["x"] == x
        assert len(found.trials) == 15
        json.dumps(found.trials, allow_nan=False)


def test_a_method_may_modify_its_options() -> None:
    space = {"h": {"choice": [[1], [2]]}}

    def vandal(options: Any) -> tuple[float, str]:
        value = float(options["h"][0])
        options["h"].append(99)
        return value, ""

    found = run(vandal, space, start={"h": [1]})
    assert found.options == {"h": [2]}
    assert {json.dumps(trial["options"]) for trial in found.trials} == {'{"h": [1]}', '{"h": [2]}'}
    assert space == {"h": {"choice": [[1], [2]]}}


def test_every_declared_space_of_the_registry_can_be_searched(tmp_path: Any) -> None:
    for name in methods.names():
        declared = methods.get(name).space
        space, problems = read_space(declared, lambda o, v, use=name: catalogue.check_options(use, {o: v}, tmp_path))
        assert not problems
        assert set(space) == set(declared)


def test_a_longer_search_begins_with_the_trials_of_a_shorter_one() -> None:
    short, long = run(trials=5), run(trials=16)
    assert untimed(short) == untimed(long)[:5]


def test_known_trials_are_not_evaluated_again() -> None:
    long = run(trials=12)

    def refuse(options: Any) -> tuple[float, str]:
        raise AssertionError(options)

    again = run(refuse, trials=5, known=long.trials)
    assert again.trials == long.trials[:5]
    assert again.options == run(trials=5).options
    assert untimed(run(trials=5, known=run(seed=4).trials)) == untimed(long)[:5]  # those of another search are ignored
