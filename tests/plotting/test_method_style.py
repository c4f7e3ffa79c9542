"""Colours and markers of methods."""

from __future__ import annotations

from ep_bench.methods import REGISTRY
from ep_bench.plotting.method_style import COLOURS, CONTROLS, EXTERNAL, OTHER, family_of, method_styles


def test_entries_of_a_family_share_their_colour_and_differ_in_marker_or_line() -> None:
    styles = method_styles([f"m{i}" for i in range(24)])
    assert len(set(styles.values())) == 24
    assert {style.colour for style in styles.values()} == {COLOURS[EXTERNAL]}


def test_a_method_has_the_same_look_in_every_report() -> None:
    looks = [
        method_styles(labels, uses)["PBP-1"]
        for labels, uses in (
            (["PBP-1"], {"PBP-1": "pbp"}),
            (["other", "BB-alpha", "PBP-1", "PBP-2"], {"BB-alpha": "bb_alpha", "PBP-1": "pbp", "PBP-2": "pbp"}),
        )
    ]
    assert looks[0] == looks[1]


def test_all_methods_of_the_registry_have_a_family_and_a_look_of_their_own() -> None:
    styles = method_styles(list(REGISTRY), {name: name for name in REGISTRY})
    assert EXTERNAL not in {style.family for style in styles.values()}
    assert len({(style.colour, style.marker) for style in styles.values()}) == len(REGISTRY)
    assert OTHER not in {family_of(name) for name in REGISTRY}


def test_controls_are_known_by_their_target() -> None:
    uses = {"Constant": "ep_bench.baselines:ConstantRegressor", "ridge": "sklearn.linear_model:BayesianRidge"}
    styles = method_styles(list(uses), uses)
    assert {style.family for style in styles.values()} == {CONTROLS}
    assert all(style.is_control for style in styles.values())
    assert family_of(uses["ridge"]) == OTHER
