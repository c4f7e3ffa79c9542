"""The results folder of a study: cell files, tables, curves, scores of single test points, and their provenance."""
