"""Numbers of a comparison as text: the published one as it was printed, ours to two digits of its error."""

from __future__ import annotations

import math
from decimal import Decimal

MOST_PRINTED = 5  # decimals of a printed error


def printed(mean: float, stderr: float) -> str:
    """Return a published mean and standard error as they were printed, but for zeros at the end.

    An error that was worked out from another printed spread is cut to three digits.
    """
    if math.isnan(mean):
        return ""
    errors = [] if math.isnan(stderr) else [stderr if _decimals(stderr) <= MOST_PRINTED else float(f"{stderr:.3g}")]
    return " ± ".join(f"{value:.{_decimals(value)}f}" for value in (mean, *errors))


def measured(mean: float, stderr: float) -> str:
    """Return our mean and standard error to two digits of the error, or four of the mean where there is none."""
    if math.isnan(mean):
        return ""
    if math.isnan(stderr) or stderr <= 0.0:
        return f"{mean:.4g}"
    places = min(max(1 - math.floor(math.log10(stderr)), 0), 8)
    return f"{mean:.{places}f} ± {stderr:.{places}f}"


def _decimals(value: float) -> int:
    exponent = Decimal(repr(value)).normalize().as_tuple().exponent
    return max(-exponent, 0) if isinstance(exponent, int) else 0
