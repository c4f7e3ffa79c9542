"""Experiments after Bouthillier and others (2021), Accounting for variance in machine learning benchmarks."""
