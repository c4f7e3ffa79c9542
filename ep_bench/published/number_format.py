"""Formatting of means with standard errors: published ones as printed, ours to two digits of the standard error."""

from __future__ import annotations

import math
from decimal import Decimal

MOST_DECIMALS = 8


def printed(mean: float, stderr: float) -> str:
    """Return a published mean and standard error as printed; the error has at least the decimals of the mean.

    A standard error computed from another printed spread has more decimals. It is rounded to those of the mean, or to
    one digit if it would be 0.
    """
    if math.isnan(mean):
        return ""
    places = _decimals(mean)
    if math.isnan(stderr):
        return f"{mean:.{places}f}"
    own = max(places, _decimals(stderr))
    own = own if own <= places + 1 else places
    if stderr > 0.0 and round(stderr, own) == 0.0:
        return f"{mean:.{places}f} ± {stderr:.1g}"
    return f"{mean:.{places}f} ± {stderr:.{own}f}"


def measured(mean: float, stderr: float) -> str:
    """Return a mean and standard error to two digits of the standard error, else the mean to four digits."""
    if math.isnan(mean):
        return ""
    if math.isnan(stderr) or stderr <= 0.0:
        return f"{mean:.4g}"
    places = error_decimals(stderr)
    return f"{mean:.{places}f} ± {stderr:.{places}f}"


def error_decimals(error: float) -> int:
    """Return the decimals, at most ``MOST_DECIMALS``, that show two digits of a positive error."""
    return min(max(1 - math.floor(math.log10(error)), 0), MOST_DECIMALS)


def _decimals(value: float) -> int:
    exponent = Decimal(repr(value)).normalize().as_tuple().exponent
    return max(-exponent, 0) if isinstance(exponent, int) else 0
