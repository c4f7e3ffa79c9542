"""Small charts of the page as inline SVG and HTML, whose colours follow the light or dark page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from markupsafe import Markup

from ep_bench.convergence import DAGGER
from ep_bench.plotting.method_style import MethodStyle
from ep_bench.plotting.numbers import log_tick_texts, tick_texts

if TYPE_CHECKING:
    from ep_bench.report.sections.leaderboard import Leaderboard

INTERVAL, MARGIN = 150, 6  # width of an interval of ranks, and the space at its ends for the marker
WIDTH, HEIGHT = 760, 350  # of the chart of losses and times
LEFT, RIGHT, TOP, BOTTOM = 52, 16, 34, 40  # its margins
LINE = 19  # height of a label
CLIPPED = 3.0  # losses of more than so many medians are drawn at the edge
SHAPES = {
    "o": "M-4.5,0a4.5,4.5 0 1,0 9,0a4.5,4.5 0 1,0 -9,0z",
    "s": "M-4,-4h8v8h-8z",
    "^": "M0,-5L5,4H-5z",
    "v": "M0,5L5,-4H-5z",
    "D": "M0,-5.5L5.5,0L0,5.5L-5.5,0z",
    "P": "M-1.7,-5h3.4v3.3h3.3v3.4h-3.3v3.3h-3.4v-3.3h-3.3v-3.4h3.3z",
    "X": "M-4.7,-2.3L-2.3,-4.7L0,-2.4L2.3,-4.7L4.7,-2.3L2.4,0L4.7,2.3L2.3,4.7L0,2.4L-2.3,4.7L-4.7,2.3L-2.4,0z",
    "<": "M-5,0L4,-5V5z",
    ">": "M5,0L-4,-5V5z",
}


def interval(value: float, low: float, high: float, largest: int, *, hollow: bool) -> Markup:
    """Return a rank with its interval on an axis from 1 to the largest rank."""

    def place(rank: float) -> str:
        return f"{MARGIN + (INTERVAL - 2 * MARGIN) * (rank - 1.0) / max(largest - 1, 1):.0f}"

    line = "" if math.isnan(low) else f'<path d="M{place(low)} 8H{place(high)}"/>'
    title = "no interval" if math.isnan(low) else f"{low:.1f} to {high:.1f}"
    kind = " class=hollow" if hollow else ""
    return Markup(  # noqa: S704 numbers only
        f'<svg class=interval width={INTERVAL} height=16 role=img aria-label="{title}"><title>{title}</title>'
        f"{line}<circle{kind} cx={place(value)} cy=8 r=4></circle></svg>"
    )


def bar(share: float, nearly: float, text: str, title: str) -> Markup:
    """Return a bar with the fractions of converged and of nearly converged splits, and a text."""
    style = f"--c:{share:.2f};--n:{share + nearly:.2f}"
    return Markup('<span class=bar title="{}" style="{}"></span>{}').format(title, style, text)


class Point(NamedTuple):
    """A method in the chart of losses and times."""

    method: str
    seconds: float
    loss: float
    hollow: bool  # some splits have not converged


def points(board: Leaderboard) -> list[Point]:
    """Return the ranked methods that have a loss and a CPU time."""
    return [
        Point(row.method, row.seconds, row.loss, row.mark == DAGGER)
        for row in board.ranked
        if row.seconds > 0.0 and math.isfinite(row.loss)
    ]


def front(points: Sequence[Point]) -> list[Point]:
    """Return the points, sorted by time, that no other point beats in both time and loss."""
    found: list[Point] = []
    for point in sorted(points, key=lambda one: (one.seconds, one.loss)):
        if not found or point.loss < found[-1].loss:
            found.append(point)
    return found


def largest_shown(points: Sequence[Point]) -> float:
    """Return the largest loss on the axis of a chart; larger ones are drawn at its edge."""
    losses = sorted(point.loss for point in points)
    return min(losses[-1], CLIPPED * losses[len(losses) // 2]) or losses[-1] or 1.0


class LossAndTime:
    """The chart of losses against CPU time. The methods of the front have labels, the others under the pointer.

    ``unit`` is the factor of the numbers on the axis of losses. Losses of more than ``CLIPPED`` medians are drawn as
    arrows at the lower edge.
    """

    def __init__(self, points: Sequence[Point], styles: Mapping[str, MethodStyle], axis: str, unit: float) -> None:
        self.points, self.styles, self.axis, self.unit = points, styles, axis, unit
        self.limit = largest_shown(points)
        times = [point.seconds for point in points]
        self.times = min(times) / 1.4, max(times) * 1.4

    def svg(self) -> Markup:
        """Return the chart."""
        best = front(self.points)
        labels, highest = self._labels(best)
        line = " ".join(f"{self._x(one.seconds):.0f},{self._y(one.loss):.0f}" for one in best)
        body = [*self._grid(), Markup('<polyline class=front points="{}"/>').format(line)]
        body += [*map(self._point, self.points), *labels]
        body.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 4, "median CPU seconds per split, tuning included"))
        body.append(_text(4, 14, f"{self.axis}; better is higher up", "start"))
        label = f"{len(self.points)} methods: {self.axis} by CPU time. Front: {', '.join(one.method for one in best)}."
        top = min(round(highest) - LINE, 0)
        return Markup('<svg class=scatter viewBox="0 {} {} {}" role=img aria-label="{}">{}</svg>').format(
            top, WIDTH, HEIGHT - top, label, Markup().join(body)
        )

    def _x(self, seconds: float) -> float:
        low, high = self.times
        return LEFT + math.log(seconds / low) / math.log(high / low) * (WIDTH - LEFT - RIGHT)

    def _y(self, loss: float) -> float:
        return TOP + 8 + min(loss / self.limit, 1.0) * (HEIGHT - TOP - BOTTOM - 16)

    def _grid(self) -> Iterator[Markup]:
        places = _decades(*self.times)
        for place, words in zip(places, log_tick_texts(places), strict=True):
            yield Markup('<path class=grid d="M{} {}V{}"/>').format(f"{self._x(place):.0f}", TOP, HEIGHT - BOTTOM)
            yield _text(self._x(place), HEIGHT - BOTTOM + 15, words)
        steps = _steps(self.limit * self.unit)
        for step, words in zip(steps, tick_texts(steps), strict=True):
            y = self._y(step / self.unit)
            yield Markup('<path class=grid d="M{} {}H{}"/>').format(LEFT, f"{y:.0f}", WIDTH - RIGHT)
            yield _text(LEFT - 6, y + 4, words, "end")

    def _point(self, one: Point) -> Markup:
        style = self.styles[one.method]
        colour = "currentColor" if style.colour == "#000000" else style.colour
        shape = SHAPES["v" if one.loss > self.limit else style.marker]
        seconds, loss = (
            f"{one.seconds:.6g}",
            f"{one.loss:.6g}",
        )  # of the page's script, which draws the front of a filter
        about = f"{one.method}: {one.loss * self.unit:.3g} after {one.seconds:.3g} s"
        place = f"translate({self._x(one.seconds):.0f},{self._y(one.loss):.0f})"
        return Markup(
            '<path class="point{}" tabindex=0 role=button data-method="{}" data-seconds={} data-loss={} style="--m:{}" '
            'transform="{}" d="{}"><title>{}</title></path>'
        ).format(" hollow" if one.hollow else "", one.method, seconds, loss, colour, place, shape, about)

    def _labels(self, best: Sequence[Point]) -> tuple[list[Markup], float]:
        """Return the names of the front, to the upper left of it, where no point is, and the place of the highest."""
        found, above = [], math.inf
        for one in best:
            x, y = self._x(one.seconds), min(self._y(one.loss) - 3, above - LINE)
            inside = x - 9 > LEFT + 7 * len(one.method)
            found.append(_text(x - 9 if inside else x + 9, y, one.method, "end" if inside else "start", kind="label"))
            above = y
        return found, above


def _text(x: float, y: float, words: str, anchor: str = "middle", kind: str = "axis") -> Markup:
    return Markup("<text class={} x={} y={} text-anchor={}>{}</text>").format(
        kind, f"{x:.0f}", f"{y:.0f}", anchor, words
    )


def _decades(low: float, high: float) -> list[float]:
    """Return powers of ten within the limits, with 3 between them if there are few."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    factors = (1.0,) if len(powers) > 4 else (1.0, 3.0)
    places = [float(f"{factor * 10.0**power:.3g}") for power in powers for factor in factors]
    return [place for place in places if low <= place <= high]


def _steps(limit: float) -> list[float]:
    """Return round values from 0 to a limit, about four."""
    size = 10.0 ** math.floor(math.log10(limit / 4.0))
    step = next(factor * size for factor in (1.0, 2.0, 5.0, 10.0) if factor * size >= limit / 4.0)
    return [float(f"{place * step:.6g}") for place in range(int(limit / step + 1e-9) + 1)]
