"""Methods from outside: found by dotted path, file or plugin's name, given the face that the runner expects.

A target is ``package.module:Class``, ``./file.py:Class`` (relative to the study) or the name of a plugin that refers to
a class. The class needs ``fit(X, y)`` and one of these, the first that it has being asked:

1. ``predict_dist(X)`` returning an ``ep_bench.Predictive`` or any distribution of the kinds below;
2. ``pred_dist(X)``, as NGBoost's: a distribution with its scipy one under ``dist``;
3. ``predict_proba(X)``, as skpro's: a distribution of one column over the rows;
4. ``predict(X, return_std=True)``, as scikit-learn's: Gaussians;
5. ``predict_quantiles(X, levels)``, ``predict(X, quantiles=levels)`` or skpro's ``predict_interval(X, coverage=...)``;
6. ``predict(X)``: points.

A distribution is a frozen one of scipy.stats with batch shape (N,), a skpro one of shape (N, 1), or any object with a
log density, a distribution function, a mean and a variance of shape (N,). It sees original units; with neither density
nor deviation its log-likelihood is empty. The option ``standardize: true`` hands it standardised rows and turns its
predictions back. A scikit-learn pipeline answers as its last step does. An option that is itself a mapping with ``use``
is built first, ``kernel: {use: "sklearn.gaussian_process.kernels:RBF", length_scale: 2.0}``; one with ``object`` alone
is a class or function as it is, ``Dist: {object: "ngboost.distns:LogNormal"}``.

On a classification set a class is asked for ``predict_dist(X)`` returning ``ep_bench.ClassProbabilities``, else for
``predict_proba(X)``, an array with a column a class of its ``classes_``, else for ``predict(X)``, classes alone. Its y
are class indices.
"""

from ep_bench.adapters.classifier import ExternalClassifier
from ep_bench.adapters.options import STANDARDIZE, build_model, problems
from ep_bench.adapters.regressor import ExternalRegressor, build
from ep_bench.adapters.targets import files, is_target, parameters, resolve, tasks, use_copies, version

__all__ = [
    "STANDARDIZE",
    "ExternalClassifier",
    "ExternalRegressor",
    "build",
    "build_model",
    "files",
    "is_target",
    "parameters",
    "problems",
    "resolve",
    "tasks",
    "use_copies",
    "version",
]
