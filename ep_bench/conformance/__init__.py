"""Conformance checks of methods, from the registry or external.

``checks`` lists the checks and their requirements. ``suite`` runs each check in a child process with a time limit.
``method_under_test`` wraps the method. The checks are in ``basics``, ``calibration``, ``quantiles``, ``side_effects``,
``leakage``, ``edge_cases``, ``classifiers`` and ``registry_checks``.
"""
