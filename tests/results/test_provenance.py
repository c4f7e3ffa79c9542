"""Which environments compute the same last bits."""

from __future__ import annotations

import copy

import numpy as np

from ep_bench.results import provenance
from ep_bench.results.provenance import environment, same_arithmetic


def test_an_environment_without_instructions_or_with_others_is_another_one():
    stored = copy.deepcopy(environment())
    assert same_arithmetic(stored)
    assert stored["machine"]["instructions"]
    stored["machine"]["instructions"] = "another"
    assert not same_arithmetic(stored)
    del stored["machine"]["instructions"]
    assert not same_arithmetic(stored)


def test_the_version_of_ep_bench_and_the_revision_do_not_matter():
    stored = copy.deepcopy(environment())
    stored["packages"]["ep-bench"], stored["revision"] = "another", "another"
    assert same_arithmetic(stored)
    stored["packages"]["numpy"] = "another"
    assert not same_arithmetic(stored)


def test_a_processor_without_further_instruction_sets(monkeypatch):
    monkeypatch.setattr(np, "show_config", lambda **_: {"SIMD Extensions": {"baseline": ["X86_V2"]}})
    assert provenance._instructions() in environment()["machine"]["instructions"]
