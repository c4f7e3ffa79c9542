"""The text of a first study, with comments, for ``ep-bench init``."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
from pathlib import Path

from ep_bench.errors import UserError
from ep_bench.spec.yaml_source import read_value

_STUDY = """\
# A first study. Run it, compare it with published numbers, and write its report:
#
#   ep-bench run {file}
#   ep-bench check results/{name}
#   ep-bench report results/{name}
#
# `ep-bench plan {file}` prints the cells and the time left. A cell is one method on one split of one data set; finished
# cells are stored, and never run again.
study: {key}# name of the folder below results/
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
    """Return the text of a study for the file ``file``; ``target`` is an external class that it runs, too."""
    own = "" if target is None else _OWN.format(target=json.dumps(target))
    name = study_name(file)
    return _STUDY.format(file=shlex.quote(file), own=own, name=shlex.quote(name), key=f"{_as_yaml(name)} ".ljust(27))


def study_name(file: str) -> str:
    """Return the name of the study in a new file: that of the file, without characters that a name cannot have.

    ``study.yaml``, the file of ``ep-bench init`` without an argument, has the study ``first-study``.
    """
    cleaned = re.sub(r"[^A-Za-z0-9._+-]+", "-", Path(file).stem)[:100]
    name = re.sub(r"^[^A-Za-z0-9]+|[^A-Za-z0-9]+$", "", cleaned)
    return "first-study" if name in {"", "study"} else name


def _as_yaml(name: str) -> str:
    """Return a name in quotes if it would not be text without them, such as a number."""
    with contextlib.suppress(UserError):
        if read_value(name, "the name of the study") == name:
            return name
    return json.dumps(name)
