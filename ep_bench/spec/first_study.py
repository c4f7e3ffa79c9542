"""The text of a first study, with comments, for ``ep-bench init``."""

from __future__ import annotations

import json

_STUDY = """\
# A first study. Run it, compare it with published numbers, and write its report:
#
#   ep-bench run {file}
#   ep-bench check results/first-study
#   ep-bench report results/first-study
#
# `ep-bench plan {file}` prints the cells and the time left. A cell is one method on one split of one data set; finished
# cells are stored, and never run again.
study: first-study                # name of the folder below results/
seed: 0
datasets: [yacht, energy]         # `ep-bench data list` prints all names
splits: {{scheme: standard, count: 5}}   # the first 5 of the 20 splits of the published tables
methods:                          # `ep-bench methods list` prints all names, `methods show NAME` the options
{own}  - {{use: pbp, label: PBP}}
  - {{use: gp, label: GP}}
  - {{use: "sklearn.linear_model:BayesianRidge", label: Bayesian ridge, standardize: true}}
  - {{use: "ep_bench.baselines:ConstantRegressor", label: Constant}}
# A search for options on validation points of the training data, instead of fixed ones:
#  - {{use: dropout, label: Dropout, tune: {{trials: 10, fraction: 0.2}}}}
# Options for one data set only:
# overrides:
#   yacht: {{PBP: {{epochs: 100}}}}
# Limits of one cell:
# limits: {{seconds: 600, memory_gb: 4}}
"""
_OWN = "  - {{use: {target}, label: Own method, standardize: true}}   # label: its name in the report\n"


def first_study(file: str, target: str | None = None) -> str:
    """Return the text of a study for the name ``file``; ``target`` is an external class that it runs, too."""
    own = "" if target is None else _OWN.format(target=json.dumps(target))
    return _STUDY.format(file=file, own=own)
