"""External methods: found by dotted path or file, and adapted to the interface of the runner.

A target is ``package.module:Class`` or ``./file.py:Class`` (relative to the study). The class needs ``fit(X, y)`` and
one of the following; the first available one is used:

1. ``predict_dist(X)`` returning an ``ep_bench.Predictive`` or a distribution as described below;
2. ``pred_dist(X)`` as in NGBoost: a distribution with a scipy distribution as ``dist``;
3. ``predict_proba(X)`` as in skpro: a distribution of shape (N, 1);
4. ``predict(X, return_std=True)`` as in scikit-learn: Gaussians; ``predict(X, **kwargs)`` is asked in this way too;
5. ``predict_quantiles(X, levels)``, ``predict(X, quantiles=levels)`` or skpro's ``predict_interval(X, coverage=...)``;
6. ``predict(X)``: points.

A distribution is a frozen one of scipy.stats with batch shape (N,), one of skpro with shape (N, 1), or an object with
log density, distribution function, mean and variance of shape (N,). Inputs, targets and predictions are in original
units; with the option ``standardize: true`` the class gets standardised data, and its predictions are transformed back.
The log-likelihood is empty if a method has neither a density nor a standard deviation. Of a scikit-learn
``Pipeline`` or ``TransformedTargetRegressor``, the prediction methods of the estimator inside are used.

An option that is a mapping with ``use`` is constructed first:
``kernel: {use: "sklearn.gaussian_process.kernels:RBF", length_scale: 2.0}``. A mapping with only ``object`` is a class
or function: ``Dist: {object: "ngboost.distns:LogNormal"}``.

In classification y holds class indices. The class needs ``predict_dist(X)`` returning ``ep_bench.ClassProbabilities``,
else ``predict_proba(X)``, an array with one column per class of ``classes_``, else ``predict(X)``, which has no
log-likelihood.
"""

from ep_bench.adapters.best_prediction import predict_dist, preload, tuning_scores
from ep_bench.adapters.construction import STANDARDIZE, accepts_missing, build_model, missing_prediction, problems
from ep_bench.adapters.external_models import ExternalClassifier, ExternalRegressor, build
from ep_bench.adapters.session_classes import named
from ep_bench.adapters.targets import files, is_target, names_a_file, parameters, resolve, tasks, use_copies, version

__all__ = [
    "STANDARDIZE",
    "ExternalClassifier",
    "ExternalRegressor",
    "accepts_missing",
    "build",
    "build_model",
    "files",
    "is_target",
    "missing_prediction",
    "named",
    "names_a_file",
    "parameters",
    "predict_dist",
    "preload",
    "problems",
    "resolve",
    "tasks",
    "tuning_scores",
    "use_copies",
    "version",
]
