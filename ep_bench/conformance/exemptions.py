"""Checks of scikit-learn's that a registry method may fail, each with the reason. Tests and the command share them."""

from __future__ import annotations

from collections.abc import Mapping

# Method -> name of the check -> why it cannot pass. The check `scikit-learn` finds those without need.
EXEMPT: Mapping[str, Mapping[str, str]] = {}
