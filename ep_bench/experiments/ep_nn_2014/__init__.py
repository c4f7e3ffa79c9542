"""Jylanki, Nummenmaa and Vehtari (2014): expectation propagation for neural networks."""

PAPER = "Jylänki and others (2014)"
QUANTILE = 1.959963984540054  # of the standard normal distribution, for central intervals of 95 percent
CLOSE = 1e-4  # relative step of the sites below which a fit with the method's default tolerance ends
