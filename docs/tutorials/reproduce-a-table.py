# results: pbp-table-1 bnn-optimisation bnn-sampling
# %% [markdown]
# # Reproduce a table
#
# Table 1 of Hernandez-Lobato and Adams (2015) has the columns VI, BP and PBP. This tutorial computes a row of the PBP
# column, and then states which numbers of the table are not reproduced. Work in a clone of the repository, because the
# later steps read its folder `results`.
#
# ## Compute one row
#
# The study is part of the package. Its 20 splits of yacht take seconds, and all 165 cells take minutes.
# %% [console]
# $ ep-bench run pbp_table1 --select dataset=yacht --results mine --quiet
# $ ep-bench check mine/pbp-table-1 --against hernandez-lobato2015
# %% [markdown]
# Each line compares a mean with a printed number. z divides the difference by its standard error. Up to 2, the verdict is
# `reproduced`; [Check](../check.md) defines all verdicts. Data sets that were not run are not shown.
#
# ## The whole column
#
# A clone has the results of all 165 cells in `results/pbp-table-1`. `check` writes `check.csv` into the folder; with
# `--out build`, the committed file stays as it is:
# %% [console]
# $ ep-bench check results/pbp-table-1 --against hernandez-lobato2015 --summary --out build
# %% [markdown]
# ## What is not reproduced
#
# The columns BP and VI are in another folder. Without `--summary`, the worst verdicts come first:
# %% [console]
# $ ep-bench check results/bnn-optimisation --against hernandez-lobato2015 --out build | head -12
# $ ep-bench check results/bnn-optimisation --against hernandez-lobato2015 --out build --summary
# %% [markdown]
# Read the verdicts as follows:
#
# - `worse`: a number is not reproduced, and the study does not accept the difference. `check` then exits with status 1.
# - `incomplete`: splits have not been run, so there is no verdict. `ep-bench plan bnn_optimisation` lists them.
# - `disputed`: the printed column is not trusted; the last column has the reason.
# - `better`: the result differs from the printed number, in the good direction. It is not a reproduction either.
#
# [Reproductions](../reproductions.md) has these counts for all papers, and a page per paper explains each table.
#
# ## Is the stored result itself reproducible?
#
# `verify` computes stored cells again and compares their scores:
# %% [console]
# $ ep-bench verify results/pbp-table-1 --cells 2 --select dataset=yacht --seed 1
