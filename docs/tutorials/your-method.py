# %% [markdown]
# # Benchmark your method
#
# A class with `fit(X, y)` and `predict(X, return_std=True)` is enough. It receives inputs and targets in original units.
# The standard deviation that it returns includes the observation noise.
# %% [file my_method.py]
# import numpy as np
#
#
# class MyRegressor:
#     """Linear regression on the inputs and their squares."""
#
#     def __init__(self, squares=True, penalty=1e-3):
#         self.squares, self.penalty = squares, penalty
#
#     def _features(self, X):
#         Z = (X - self.mean) / self.scale
#         return np.column_stack([Z, Z**2, np.ones(len(Z))] if self.squares else [Z, np.ones(len(Z))])
#
#     def fit(self, X, y):
#         self.mean, self.scale = X.mean(axis=0), X.std(axis=0) + 1e-9
#         A = self._features(X)
#         self.weights = np.linalg.solve(A.T @ A + self.penalty * np.eye(A.shape[1]), A.T @ y)
#         self.noise = np.std(y - A @ self.weights) + 1e-9
#         return self
#
#     def predict(self, X, return_std=False):
#         mean = self._features(X) @ self.weights
#         return (mean, np.full(len(X), self.noise)) if return_std else mean
# %% [markdown]
# ## Test the method
#
# About twenty checks find mistakes that would make its scores wrong. [Conformance](../CONFORMANCE.md) lists them.
# %% [console]
# $ ep-bench methods test ./my_method.py:MyRegressor
# %% [markdown]
# `FAULT` needs a correction before a study. `advice` is an improvement, and does not stop you.
#
# ## Name it in a study
#
# An entry has the path of the file and the name of the class. Further keys are arguments of the class.
# %% [file mine.yaml]
# study: mine
# datasets: [energy, yacht]
# splits: {scheme: standard, count: 5}   # remove `count` for the splits of the published tables
# methods:
#   - {use: "./my_method.py:MyRegressor", label: squares}
#   - {use: "./my_method.py:MyRegressor", label: linear, squares: false}
#   - {use: pbp, label: PBP}
#   - {use: "ep_bench.baselines:ConstantRegressor", label: Constant}
# %% [console]
# $ ep-bench run mine.yaml --quiet
# $ ep-bench report results/mine
# $ sed -n '/^| method/,/^$/p' results/mine/report/tables/ll.md
# %% [markdown]
# The table has the mean test log-likelihood in nats per data point; higher is better. Bold is the best mean, and ≈ marks
# entries that a paired test does not distinguish from it. [Statistics](../statistics.md) describes the test.
#
# ## Is it better, and how sure is that?
#
# - `tables/scores.csv` has the p-value of each entry against the best of its data set, in the column `p_against_best`.
# - In `report.html`, select a method in the leaderboard and choose another one under "Compare with". The page shows the
#   difference with its paired test, the scores of each split, and the ratio of times.
#
# Two data sets decide little. A difference that no test finds is no proof of equality.
#
# ## Compare with the stored methods
#
# A clone of the repository has the results of all other methods. One report merges your folder with theirs, because the
# splits are the same.
#
# Change the study first: remove `count: 5`, because an entry without all splits is neither tested nor ranked. Then write
# `datasets: [boston, concrete, energy, wine, yacht]`: these have all splits of the stored methods, and average ranks are
# computed over them. In the commands, `CLONE` is the path of the clone:
#
# ```console
# $ ep-bench run mine.yaml
# $ ep-bench report results/mine CLONE/results/bnn-optimisation
# ```
#
# With fewer data sets in your study, name them, so that the report ranks the stored methods on these alone:
# `--select dataset=boston --select dataset=yacht --out build/mine`.
#
# `compare` tests two methods on the splits that both have, also if these are few:
#
# ```console
# $ ep-bench compare results/mine CLONE/results/bnn-optimisation --methods squares,PBP-1
# ```
#
# ## If a cell fails
#
# A failed cell has a `status` and a `reason` and does not stop the others. After a correction, run
# `ep-bench run mine.yaml --retry-failed`. A change of the file makes its own cells stale; the next run computes them again.
#
# Next: [other kinds of prediction](../own-methods.md#kinds-of-prediction), [tuning](../studies.md#tuning), and how to
# [publish the results](../results.md#publish-your-own).
