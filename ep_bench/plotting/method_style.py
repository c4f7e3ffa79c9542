"""Colours and markers of methods: a method has the same ones in all figures of a report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ep_bench.plotting.style import LOOKS

LINES = ("-", "--", ":", "-.")


class MethodStyle(NamedTuple):
    """How the figures draw one method."""

    colour: str
    marker: str
    line: str


def style_at(place: int) -> MethodStyle:
    """Return the style at a place in a list of methods.

    The first six differ in colour and marker. Later ones repeat the colours with other markers and lines.
    """
    turn, colour = divmod(place, len(LOOKS))
    return MethodStyle(LOOKS[colour][0], LOOKS[(colour + turn) % len(LOOKS)][1], LINES[turn % len(LINES)])


def method_styles(methods: Sequence[str]) -> dict[str, MethodStyle]:
    """Return the style of each method of a report, by label."""
    return {method: style_at(place) for place, method in enumerate(methods)}
