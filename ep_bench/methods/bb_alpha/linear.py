from typing import NamedTuple


class LinearPosterior(NamedTuple):
    trace: list


def fit_linear(*a, **k):
    raise NotImplementedError


def predict_linear(*a):
    raise NotImplementedError
