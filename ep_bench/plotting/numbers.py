"""Numbers as texts of figures and tables: minus signs, powers of ten, and tick labels with equal decimals."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.axis import Axis, XAxis
from matplotlib.ticker import Formatter, FuncFormatter, LogLocator, NullFormatter

MINUS = "\N{MINUS SIGN}"
DIGIT, MARGIN = 0.0707, 0.1  # inches: width of a digit of 8 points, and space of labels beyond the ends of an axis
PLAIN = (1e-6, 1e7)  # absolute values from the first to below the second are written in plain digits
_SIGN = re.compile(r"(?<![\w.)\]-])-(?=[\d.]|inf\b)")
_POWER = re.compile(r"e([-+]?)0*(\d+)\b")
_RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def with_minus(text: str) -> str:
    """Return a text in which the hyphens before numbers are minus signs."""
    return _SIGN.sub(MINUS, text)


def readable(text: str) -> str:
    """Return a number in program notation, such as ``-9.5e-16``, with minus sign and power: −9.5 × 10⁻¹⁶."""
    power = _POWER.search(text)
    if power is not None:
        exponent = power.group(1).strip("+") + power.group(2)
        text = f"{text[: power.start()]} × 10{exponent.translate(_RAISED)}{text[power.end() :]}"
    return with_minus(text)


def tick_texts(places: Sequence[float]) -> list[str]:
    """Return the labels of ticks at ``places``: all with the decimals that their smallest step requires."""
    known = sorted({abs(place) for place in places if place} | {0.0})
    if len(known) == 1:
        return ["0"] * len(places)
    if known[-1] >= PLAIN[1] or known[-1] < 10.0 * PLAIN[0]:
        return [readable(f"{place:.3g}").replace(" ", "") for place in places]
    ordered = sorted(set(places))
    step = min((b - a for a, b in pairwise(ordered)), default=known[-1])
    decimals = next((n for n in range(8) if _is_multiple(ordered, 10.0**-n, step)), 8)
    return [with_minus(f"{place:.{decimals}f}") for place in places]


def log_tick_texts(places: Sequence[float]) -> list[str]:
    """Return the labels of ticks of a logarithmic axis, each with the decimals that it requires."""
    return [readable(f"{place:.6g}").replace(" ", "") for place in places]


def fitting(ax: Axes, places: Sequence[float], texts: Sequence[str]) -> list[str]:
    """Return the labels of the horizontal axis without those that would reach into the next panel."""
    box, dpi = ax.bbox, float(getattr(ax.figure, "dpi", 72.0))
    found = []
    for place, text in zip(places, texts, strict=True):
        x = ax.transData.transform((place, ax.get_ylim()[0]))[0] / dpi
        half = 0.5 * DIGIT * len(text)
        found.append(text if box.x0 / dpi - MARGIN <= x - half and x + half <= box.x1 / dpi + MARGIN else "")
    return found


def _is_multiple(places: Sequence[float], unit: float, step: float) -> bool:
    """Return whether rounding to multiples of ``unit`` moves no tick by more than a hundredth of the step."""
    return all(abs(place - round(place / unit) * unit) < 0.01 * step for place in places)


class PlainTicks(Formatter):
    """Labels of ticks in plain digits, without an offset or a common power of ten at the end of the axis."""

    def __call__(self, value: float, _place: int | None = None) -> str:
        """Return the label of one tick."""
        return tick_texts([value])[0]

    def format_ticks(self, values: Sequence[float]) -> list[str]:
        """Return the labels of all ticks, of which only those within the axis decide on the decimals."""
        axis = self.axis
        low, high = sorted(axis.get_view_interval()) if isinstance(axis, Axis) else (-math.inf, math.inf)
        margin = 1e-9 * (high - low) if math.isfinite(high - low) else 0.0
        inside = [float(v) for v in values if low - margin <= v <= high + margin and math.isfinite(v)]
        texts = tick_texts(inside)
        if isinstance(axis, XAxis):
            texts = fitting(axis.axes, inside, texts)
        known = dict(zip(inside, texts, strict=True))
        return [known.get(float(value), "") for value in values]


def plain_ticks(*axes: Axis) -> None:
    """Give axes labels in plain digits."""
    for axis in axes:
        axis.set_major_formatter(PlainTicks())


def log_ticks(*axes: Axis) -> None:
    """Give logarithmic axes labels in plain digits: of powers of ten, or also of 2 and 5 within 1.5 decades."""
    for axis in axes:
        low, high = axis.get_view_interval()
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 30.0 * low else (1.0,)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: log_tick_texts([value])[0]))
        axis.set_minor_formatter(NullFormatter())
