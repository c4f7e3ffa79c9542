"""Conformance: what every method keeps to, checked from outside, and told in plain words where one does not.

``checks`` names the checks and what each demands; ``suite`` runs them, each in a child process under a limit of
time; ``method_under_test`` is the method under test. The checks themselves stand in ``basics``, ``calibration``,
``quantiles``, ``side_effects``, ``leakage``, ``edge_cases`` and ``registry_checks``.
"""
