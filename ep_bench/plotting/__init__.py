"""Figures and page content, used by the report and the experiments."""
