"""Titles and units of the quantities that methods trace during a fit."""

from __future__ import annotations

# Title and unit by name of the trace. Traces with other names are internal quantities of a method.
WORDS = {
    "objective": ("Objective", ""),  # each method has its own unit
    "noise_deviation": ("Noise standard deviation", "standardised units"),
    "prior_variance": ("Prior variance of the weights", "standardised units"),
    "log_z": ("Mean log normaliser of the updates", "nats, standardised units"),
    "undone": ("Rejected updates of weights", "fraction"),
    "log_joint": ("Log joint density", "nats"),
    "log_joint_a_row": ("Log joint density per data point", "nats"),
    "log_evidence": ("Log evidence", "nats, standardised units"),
    "well_determined": ("Well-determined weights", "number, gamma of MacKay"),
    "step_size": ("Step size of the weights", "standardised units"),
    "prior_deviation": ("Prior standard deviation of the weights", "standardised units"),
    "prediction": ("Prediction", "standardised units"),
    "nu": ("Degrees of freedom", "number"),
    "scale": ("Scale of the noise", "standardised units"),
    "acceptance": ("Acceptance", "fraction"),
}
_PLACES = {name: place for place, name in enumerate(WORDS)}


def trace_words(name: str) -> tuple[str, str] | None:
    """Return title and unit of a trace, such as ``prior_variance`` or ``prior_variance_2``; None if it is unknown."""
    known, _, number = name.rpartition("_")
    if name in WORDS or not number.isdecimal() or known not in WORDS:
        return WORDS.get(name)
    title, unit = WORDS[known]
    return f"{title}, group {number}", unit


def trace_order(name: str) -> tuple[int, str]:
    """Return the sort key of a trace: known names first, in the order of ``WORDS``."""
    return _PLACES.get(name, len(_PLACES)), name
