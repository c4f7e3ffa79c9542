"""Preparation of inputs with missing values and categories, fitted to the training points of a split only.

The transformers are those of scikit-learn. Categories are indices of their sorted names, which say nothing about other
data points; dates are days since 1970. Only what depends on several data points is fitted here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ep_bench.types import Array, Preparation


def fit_inputs(preparation: Sequence[Preparation], X: Array) -> Callable[[Array], Array]:
    """Return the function that prepares inputs, fitted to those of training points X (n, d).

    It is the identity without a preparation. The order of the inputs remains; with onehot, one input becomes several.
    A category that no training point has is 0 in all of them, and -1 with ordinal.
    """
    if not preparation:
        return lambda X: X
    from sklearn.compose import ColumnTransformer

    steps = [(str(column), _transformer(each), [column]) for column, each in enumerate(preparation)]
    fitted = ColumnTransformer(steps, sparse_threshold=0.0).fit(X)
    return lambda X: np.ascontiguousarray(fitted.transform(X), dtype=np.float64)


def _transformer(preparation: Preparation) -> Any:
    """Return the transformer of one column; a missing value that is kept is a category of its own with onehot."""
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

    steps: list[Any] = []
    is_category = preparation.categories != "error"
    if preparation.missing in {"median", "most_frequent"}:
        strategy = "most_frequent" if is_category else preparation.missing  # categories have no median
        steps.append(SimpleImputer(strategy=strategy, keep_empty_features=True))
    if preparation.categories == "onehot":
        steps.append(OneHotEncoder(handle_unknown="ignore", sparse_output=False))
    elif preparation.categories == "ordinal":
        steps.append(OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1))
    return make_pipeline(*steps) if steps else "passthrough"
