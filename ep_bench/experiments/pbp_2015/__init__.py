"""Hernandez-Lobato and Adams (2015): probabilistic backpropagation."""
