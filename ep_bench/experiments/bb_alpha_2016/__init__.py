"""Hernandez-Lobato and others (2016): black-box alpha-divergence minimisation."""
