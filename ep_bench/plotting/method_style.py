"""Colours, markers and families of methods, the same in reports, experiments and the script of the page.

The colour of a method is that of its family, the kind of inference that it uses. Its marker is its own within the
family. Its ``METHOD`` has both, whatever the other methods of a report. Further entries of one method have other
markers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ep_bench.methods import REGISTRY, literals

LINES = ("-", "--", ":", "-.")
MARKERS = "osD^vP"  # of further entries
EXTERNAL, CONTROLS = "external", "controls"
# All colours have a contrast of about 3 or more on white and on dark backgrounds.
COLOURS = {
    "EP": "#0072B2",
    "variational": "#D55E00",
    "sampling": "#009E73",
    "Laplace": "#C75B9B",
    "ensembles, point": "#A87B00",
    "GP": "#2B9FD0",
    "deep GP": "#7B61C9",
    EXTERNAL: "#000000",
    CONTROLS: "#808080",
}
# Beginnings of the targets of controls, with the marker of each.
_CONTROLS = {"ep_bench.baselines:Constant": "o", "sklearn.linear_model:": "s"}

# Groups of methods, by their name in the registry: filters of the report are by group.
NETWORKS, PROCESSES, DEEP, OTHER = "networks", "Gaussian processes", "deep Gaussian processes", "other methods"
FAMILIES = (NETWORKS, PROCESSES, DEEP, OTHER)
_GROUPS = {"GP": PROCESSES, "deep GP": DEEP, EXTERNAL: OTHER, CONTROLS: OTHER}  # all other families are networks


class MethodStyle(NamedTuple):
    """How the figures draw one method."""

    colour: str
    marker: str
    line: str
    family: str = EXTERNAL
    is_hollow: bool = False  # the mark of methods that have not converged

    @property
    def is_control(self) -> bool:
        """Return whether the method is a control, such as a constant, which may be far outside the other methods."""
        return self.family == CONTROLS


def method_styles(methods: Sequence[str], uses: Mapping[str, str] | None = None) -> dict[str, MethodStyle]:
    """Return the style of each method of a figure or report, by label.

    ``uses`` has the names in the registry, or the targets of external methods, by label; a label without one is that of
    an external method. The first entry of a method has its own marker, further ones the free markers of the family.
    """
    homes = {method: _home((uses or {}).get(method, "")) for method in methods}
    used: Counter[tuple[str, str]] = Counter()
    styles = {}
    for method, (family, marker) in homes.items():
        if marker and not used[family, marker]:
            styles[method] = _style(family, marker, used)
    for method, (family, _) in homes.items():
        if method not in styles:
            styles[method] = _style(family, min(MARKERS, key=lambda marker: used[family, marker]), used)
    return {method: styles[method] for method in methods}


def _style(family: str, marker: str, used: Counter[tuple[str, str]]) -> MethodStyle:
    line = LINES[(MARKERS.find(marker) + used[family, marker]) % len(LINES)]
    used[family, marker] += 1
    return MethodStyle(COLOURS[family], marker, line, family)


def _home(use: str) -> tuple[str, str]:
    """Return the family and the marker of a method; external methods have no marker of their own."""
    if use in REGISTRY:
        family, marker = literals(use)["style"]
        return family, marker
    return next(((CONTROLS, mark) for target, mark in _CONTROLS.items() if use.startswith(target)), (EXTERNAL, ""))


def family_of(name: str) -> str:
    """Return the group of a method of the registry; baselines and external methods are other methods."""
    return _GROUPS.get(_home(name)[0], NETWORKS)
