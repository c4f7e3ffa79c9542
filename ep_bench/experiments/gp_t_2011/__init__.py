"""Jylanki, Vanhatalo and Vehtari (2011): Gaussian process regression with a Student-t likelihood."""

PAPER = "Jylänki and others (2011)"
EXAMPLES = (1, 2)  # numbers of the examples in ``conflict_examples``
INNER_STEPS = 20  # of moment matching in ``conflict_convergence``, for the inner optimality of figure 3 (d)
MIDPOINT = 2.0  # input midway between the two contradicting observations, at which the paper shows f
