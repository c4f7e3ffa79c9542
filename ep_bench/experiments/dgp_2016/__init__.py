"""Bui and others (2015, 2016): deep Gaussian processes by approximate expectation propagation."""
