"""Black-box alpha-divergence minimisation: J. M. Hernandez-Lobato and others, ICML 2016."""
