"""Talts, Betancourt, Simpson, Vehtari and Gelman (2018): simulation-based calibration."""
