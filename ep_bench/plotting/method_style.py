"""Colours, markers and families of methods, the same in reports, experiments and the script of the page.

The first entry of a method has the look of the method in ``HOMES``, in every report. Further entries get free looks,
with the colours that are used least.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ep_bench.plotting.style import LOOKS

LINES = ("-", "--", ":", "-.")
COUNT = len(LOOKS) ** 2  # different pairs of a colour and a marker
# Places of the looks (``style_at``) by the method's name in the registry. Those of one paper differ in colour.
HOMES = {
    "pbp": 0, "vi": 1, "hmc": 2, "dropout": 3, "bb_alpha": 4, "sgld": 5, "sgp": 6, "vi_graves": 7, "laplace": 8,
    "ensemble": 9, "ep_nn": 10, "gp": 11, "gp_t": 13, "bp": 14, "dgp_ep": 15,
}  # fmt: skip

# Families of methods, by their name in the registry: filters of the report are by family.
NETWORKS, PROCESSES, DEEP, OTHER = "networks", "Gaussian processes", "deep Gaussian processes", "other methods"
FAMILIES = (NETWORKS, PROCESSES, DEEP, OTHER)
_MEMBERS = {
    NETWORKS: "pbp bp vi_graves vi dropout bb_alpha hmc sgld laplace ensemble ep_nn",
    PROCESSES: "gp sgp gp_t",
    DEEP: "dgp_ep",
}
_FAMILY = {name: family for family, names in _MEMBERS.items() for name in names.split()}


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


def method_styles(methods: Sequence[str], uses: Mapping[str, str] | None = None) -> dict[str, MethodStyle]:
    """Return the style of each method of a figure or report, by label.

    ``uses`` has the names in the registry by label; a label without one has no look of its own.
    """
    names = uses or {}
    places: dict[str, int] = {}
    for method in methods:
        home = HOMES.get(names.get(method, ""))
        if home is not None and home not in places.values():
            places[method] = home
    for method in methods:
        if method not in places:
            places[method] = _free(set(places.values()))
    return {method: style_at(places[method]) for method in methods}


def _free(taken: set[int]) -> int:
    """Return the free place whose colour and marker are used least; beyond all pairs, only lines differ."""
    looks = [style_at(place) for place in taken]
    colours, markers = (Counter(values) for values in ([x.colour for x in looks], [x.marker for x in looks]))
    start = COUNT * (len(taken) // COUNT)
    free = [place for place in range(start, start + COUNT) if place not in taken]
    found = [(colours[style_at(place).colour], markers[style_at(place).marker], place) for place in free]
    return min(found)[2] if found else max(taken) + 1


def family_of(name: str) -> str:
    """Return the family of a method of the registry; baselines and external methods are other methods."""
    return _FAMILY.get(name, OTHER)
