"""Figures and pages: what the report and the experiments both need."""
