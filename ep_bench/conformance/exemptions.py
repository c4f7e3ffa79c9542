"""Estimator checks of scikit-learn that a registry method may fail, with reasons; used by tests and the command."""

from __future__ import annotations

from collections.abc import Mapping

# Method -> name of the check -> why it fails. The check `scikit-learn` reports exemptions that are not needed.
EXEMPT: Mapping[str, Mapping[str, str]] = {}
