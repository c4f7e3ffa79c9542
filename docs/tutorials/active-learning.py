# %% [markdown]
# # Active learning
#
# A method that knows where it is uncertain can choose the next point to label. The experiment `active_learning` compares
# such choices with random ones, as section 5.4 of Hernandez-Lobato and Adams (2015).
#
# An entry has an `acquisition`: `variance` adds the point of the pool with the largest predictive variance, `random` adds
# a random one. A regressor of scikit-learn or of your own is an entry too; with `standardize: true` it gets standardised
# inputs and targets.
# %% [file active.yaml]
# study: active
# seed: 0
# experiment: active_learning
# options:
#   datasets: [boston, yacht]
#   train: 20          # training points at the start
#   test: 100
#   additions: 9       # one point at a time
#   repetitions: 8     # random divisions of the data; the paper has 40
#   methods:
#     - {use: pbp, label: PBP-A, hidden: [10], acquisition: variance}
#     - {use: pbp, label: PBP-R, hidden: [10], acquisition: random}
#     - {use: "sklearn.linear_model:BayesianRidge", label: ridge-A, standardize: true, acquisition: variance}
#     - {use: "sklearn.linear_model:BayesianRidge", label: ridge-R, standardize: true, acquisition: random}
# %% [console]
# $ ep-bench run active.yaml --quiet
# $ ep-bench report results/active
# %% [markdown]
# `summary.csv` has the mean and the standard error of both scores after each addition:
# %%
import pandas as pd

summary = pd.read_csv("results/active/summary.csv")
print(summary[summary["additions"] == summary["additions"].max()].round(3).to_string(index=False))
# %% [markdown]
# ![RMSE by the number of added points](results/active/report/figures/active-learning-rmse-active.svg)
#
# The standard deviation of a method of your own must include the noise: test it with `ep-bench methods test` first.
#
# Eight repetitions decide little, and with five or fewer the paired test of the report cannot reject at level 0.05. The full study `active_learning` has nine data sets, 40 repetitions and four methods.
# Its results are in [results/active-learning](../../results/active-learning). [Experiments](../experiments.md#active-learning) describes the options and the
# paired test of the report.
