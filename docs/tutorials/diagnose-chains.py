# %% [markdown]
# # Diagnose chains
#
# A sampler such as `hmc` returns draws, and the draws need not be from the posterior. This tutorial compares chains that
# are too short with longer ones on yacht.
# %%
import numpy as np

import ep_bench

data = ep_bench.load_dataset("yacht")
train, test = ep_bench.standard_split(len(data.y), 0)


def fit(samples, steps):
    model = ep_bench.Estimator(
        "hmc",
        hidden=[10],
        chains=4,
        warmup=samples,
        samples=samples,
        steps=steps,
        noise_prior=[0.1, 2.0],
        random_state=0,
    )
    return model.fit(data.X[train], data.y[train])


short, longer = fit(samples=20, steps=5), fit(samples=400, steps=150)
# %% [markdown]
# ## R-hat and effective sample sizes
#
# R-hat compares the variance between chains with the variance within them. ep-bench judges the *predictions*: R-hat of the
# worst of 64 monitored inputs must be at most 1.05. Even the longer chains of this page may exceed it. The weights have no
# meaningful R-hat, since hidden units can be exchanged.
# %%
for name, model in (("short", short), ("longer", longer)):
    found = model.diagnostics_
    print(
        f"{name:7} R-hat {found['r_hat_predictions']:.3f}, bulk ESS {found['ess_bulk_predictions']:.0f}, "
        f"acceptance {found['acceptance']:.2f}"
    )
# %% [markdown]
# ## Traces
#
# `chains_` has the monitored quantities by name, each as an array of chains and draws. Chains that have mixed
# cover the same range.
# %%
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

figure, axes = plt.subplots(1, 2, figsize=(8, 2.4), layout="constrained")
for axis, (name, model) in zip(axes, (("short", short), ("longer", longer)), strict=True):
    axis.plot(model.chains_["prediction"].T, linewidth=0.7)
    axis.set(title=f"{name} chains", xlabel="draw", ylabel="worst prediction")
figure.savefig("traces.svg")
# %% [markdown]
# ![Traces of the worst monitored prediction, one line per chain](traces.svg)
#
# ## Predictions at your own inputs
#
# `diagnose(X)` computes the same at any inputs, such as the test points of a score that you report.
# %%
print(longer.diagnose(data.X[test]))
# %% [markdown]
# ## The score depends on it
# %%
for name, model in (("short", short), ("longer", longer)):
    ll = np.mean(model.predict_dist(data.X[test]).logpdf(data.y[test]))
    print(f"{name:7} mean test log-likelihood {ll:.3f} nats per data point")
# %% [markdown]
# A single split and one seed decide nothing about the two.
#
# ## What to change
#
# | You see | Change |
# |---|---|
# | R-hat falls as chains get longer | more `warmup` and `samples` |
# | traces move slowly, the ESS is far below the number of draws | longer trajectories: more `steps` |
# | acceptance far from `target_acceptance`, or many divergences | more `warmup`; then a higher `target_acceptance` |
# | chains stay apart at different levels | more `chains` and `warmup`; compare the noise of the chains |
# | the noise is close to zero | another `noise_prior`, which changes the posterior: report it |
#
# If nothing helps, report the score with its dagger, and do not call it that of the posterior.
#
# In a study, a fit with R-hat above 1.05 at a monitored input has the reason `not converged`. The dagger (†) of its mean
# goes by R-hat at the test inputs, so that the two can differ. The page of [hmc](../methods/hmc.md) shows how long
# chains must be on yacht and energy, and [Statistics](../statistics.md) describes the marks.
