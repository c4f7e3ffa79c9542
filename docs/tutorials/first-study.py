# %% [markdown]
# # First study
#
# A *study* names data sets, a split scheme and methods. A *cell* is one method on one split of one data set. This
# tutorial writes a study, runs it, compares it with published numbers and opens its report.
#
# ## Write a study
# %% [console]
# $ ep-bench init study.yaml
# $ cat study.yaml
# %% [markdown]
# The comments name what else a study may have. [Studies](../studies.md) describes all keys.
#
# `plan` prints what a run would compute, without computing it:
# %% [console]
# $ ep-bench plan study.yaml
# %% [markdown]
# ## Run it
#
# To be fast, this page runs two of the five splits. Without `--select`, the command runs all of them.
# %% [console]
# $ ep-bench run study.yaml --select "split=[01]" --quiet
# %% [markdown]
# Finished cells are stored, and another `run` computes the missing cells only. You may interrupt a run at any time.
# %% [console]
# $ ep-bench status results/first-study  # exit status 3
# %% [markdown]
# ## Compare with published numbers
#
# `check` compares means with the numbers that papers print. Here splits are missing, so the verdict is `incomplete`.
# %% [console]
# $ ep-bench check results/first-study
# %% [markdown]
# ## Write the report
# %% [console]
# $ ep-bench report results/first-study
# $ head -8 results/first-study/report/tables/ll.md
# %% [markdown]
# `report.html` is one file with all tables and figures. It needs no server and no network. The folder `tables` has
# the scores as Markdown, LaTeX and CSV. This is one of the figures:
#
# ![Mean test log-likelihood by data set](results/first-study/report/figures/panels-ll.svg)
#
# A point is the mean over the splits, and a line is one standard error. [Reports](../reports.md) explains the other parts.
#
# Next: [benchmark your method](your-method.md).
