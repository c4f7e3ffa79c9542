"""What a study leaves on disk: cell files, tables, curves, scores of test rows, and their provenance."""
