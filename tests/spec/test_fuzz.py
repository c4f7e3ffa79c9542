"""A good study with any value replaced is a valid study or refused in one message."""

from __future__ import annotations

import copy

import pytest
import yaml

from ep_bench.errors import UserError


def places(value, path=()):
    """Return the path of every node below the root."""
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, child in children for found in [(*path, key), *places(child, (*path, key))]]


def replaced(values, path, new):
    changed = copy.deepcopy(values)
    node = changed
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = new
    return changed


@pytest.mark.parametrize("new", [None, -1, 1.5, [None], {"zzz": 1}], ids=str)
def test_a_wrong_value_is_refused_in_one_message_at_its_place(read, good, new):
    """Only the options of an external class, which the reader does not know, accept any of these."""
    values = yaml.safe_load(good.replace("1e-4", "0.0001"))
    accepted = set()
    for path in places(values):
        message = refusal(read, yaml.safe_dump(replaced(values, path, new)))
        if message:
            assert "study.yaml" in message
            assert len(message.splitlines()) <= 6
        else:
            accepted.add(path[-1])
    assert accepted <= {"alpha"} | ({"seconds", "memory_gb"} if new == 1.5 else set())


def refusal(read, text) -> str:
    try:
        read(text)
    except UserError as error:
        return str(error)
    return ""


def test_each_missing_key_is_reported_or_optional(read, good):
    values = yaml.safe_load(good)
    optional = {"seed", "splits", "overrides", "limits", "compare", "ranks", "accept", "options"}
    for key in values:
        rest = {other: value for other, value in values.items() if other != key}
        if key in optional:
            assert read(yaml.safe_dump(rest))
        else:
            with pytest.raises(UserError, match="missing"):
                read(yaml.safe_dump(rest))
