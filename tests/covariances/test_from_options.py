"""Covariances from the options of a study."""

from __future__ import annotations

import pytest

from ep_bench.covariances import Constant, Linear, NetworkCovariance, Product, Stationary, Sum, build
from ep_bench.covariances.from_options import NAMES, checked


@pytest.mark.parametrize("ard", [True, False])
def test_names(ard):
    stationary = [Stationary(kind, 4, ard) for kind in ("se", "matern32", "matern52")]
    assert [build(checked(name), 4, ard) for name in NAMES] == [
        *stationary,
        NetworkCovariance(4, ard),
        Linear(4, ard),
        Constant(),
    ]


def test_nested_lists():
    words = checked({"sum": ("se", {"product": ["linear", {"sum": ["constant", "nn"]}]})})
    assert words == {"sum": ["se", {"product": ["linear", {"sum": ["constant", "nn"]}]}]}
    inner = Product((Linear(2), Sum((Constant(), NetworkCovariance(2)))))
    assert build(words, 2, ard=True) == Sum((Stationary("se", 2), inner))


def test_parameters_are_named_by_their_part():
    covariance = build({"sum": ["se", {"product": ["linear", "nn"]}]}, 1, ard=True)
    assert covariance.names == (
        "1.lengthscale", "1.magnitude", "2.1.weight_variance", "2.2.bias_variance", "2.2.weight_variance",
        "2.2.magnitude",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("matern53", "'matern53'; allowed: se, .*did you mean 'matern52'"),
        ("", "unknown covariance ''"),
        ({"sum": ["se", "rbf"]}, "unknown covariance 'rbf'"),
        ({"sum": []}, "list of them under sum or product"),
        ({"sum": "se"}, "list of them under sum or product; found {'sum': 'se'}"),
        ({"sum": ["se", {"use": "nn"}]}, "list of them under sum or product; found {'use': 'nn'}"),
        ({"sum": ["se"], "product": ["nn"]}, "list of them"),
        ({"difference": ["se", "nn"]}, "list of them"),
        (["se", "nn"], "list of them"),
        (3, "list of them"),
        (None, "list of them"),
    ],
)
def test_invalid_options(words, message):
    with pytest.raises(ValueError, match=message):
        checked(words)
