"""Conformance: what every method keeps to, checked from outside, and told in plain words where one does not.

``catalogue`` names the checks and what each demands; ``suite`` runs them, each in a child process under a limit of
time; ``subject`` is the method under test. The checks themselves stand in ``basics``, ``honesty``, ``quantiles``,
``manners``, ``leaks``, ``awkward`` and ``registered``.
"""
