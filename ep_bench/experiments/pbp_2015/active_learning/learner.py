"""Method entries of active learning: a method, and the rule by which it chooses points."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, WithJsonSchema

from ep_bench import published as tables
from ep_bench.experiments.method_entries import AnyMethod, refuse_unknown
from ep_bench.experiments.pbp_2015.active_learning.acquisition import NAMES, known_acquisition, version_of
from ep_bench.experiments.pbp_2015.active_learning.paper_columns import SOURCE, TABLE

ACQUISITIONS = {"anyOf": [{"type": "string", "enum": [*NAMES]}, {"type": "string", "pattern": ":"}]}


def _known_column(column: str | None) -> str | None:
    """Return the name of a column of table 2. Raises ValueError if the table has no such column."""
    if column is not None:
        refuse_unknown("table 2 of the paper has no such column", column, _columns())
    return column


def _columns() -> list[str]:
    return [row["method"] for row in tables.described_rows() if (row["source"], row["table"]) == (SOURCE, TABLE)]


class Learner(AnyMethod):
    """A method entry as in a study, external classes included, with the rule by which it chooses points."""

    acquisition: Annotated[str, AfterValidator(known_acquisition), WithJsonSchema(ACQUISITIONS)] = Field(
        "variance",
        description="variance: the point with the largest predictive variance; random; mutual_information: the most "
        "informative point; or an own function, ./file.py:function or package.module:function",
    )

    published: Annotated[str | None, AfterValidator(_known_column)] = Field(
        None,
        exclude=True,  # not a factor of the results
        description="column of table 2 with which the entry is compared, whatever its options",
    )

    def versions(self) -> dict[str, tuple[str, ...]]:
        """Return the versions of the method, and of an own function that chooses points."""
        own = version_of(self.acquisition)
        return super().versions() | ({self.acquisition: (own,)} if own else {})
