"""Conformance checks of methods, from the registry or external.

``checks`` lists the checks and their requirements. ``suite`` runs each check in a child process (``worker``) with a
time limit. ``method_under_test`` wraps the method. The checks are in the other modules.
"""
