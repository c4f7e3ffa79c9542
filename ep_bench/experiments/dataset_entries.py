"""Data sets in the options of an experiment: names, or own CSV files as in a study."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, GetJsonSchemaHandler, model_serializer, model_validator
from pydantic_core import CoreSchema

from ep_bench import data
from ep_bench.errors import UserError
from ep_bench.experiments.method_entries import refuse_unknown
from ep_bench.experiments.study_folder import study_folder
from ep_bench.types import Dataset, DatasetRef

KEYS = ("name", "csv", "target")  # of a mapping in a study; ``checksum`` is added to the lock file


class DatasetEntry(BaseModel):
    """A data set for regression: a name, or name, file and target of a user's own CSV file.

    ``csv`` is relative to the folder of the study. ``checksum``, the sha256 of the file, makes its content a factor of
    the results.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    name: str = ""
    csv: str = ""
    target: str = ""
    checksum: str = ""

    @model_validator(mode="before")
    @classmethod
    def _of_name(cls, given: Any) -> Any:
        return {"name": given} if isinstance(given, str) else given

    @model_validator(mode="after")
    def _check(self) -> DatasetEntry:
        for key in self.model_extra or {}:
            refuse_unknown("a data set of this experiment has no such key", key, KEYS)
        if not self.name:
            raise ValueError("name is missing")
        if self.csv:
            self._check_file()
            return self
        if self.target:
            raise ValueError("target requires csv")
        refuse_unknown("unknown data set", self.name, data.names())
        if data.card(self.name).task != "regression":
            raise ValueError(f"{self.name} is a data set for classification; the experiment is about regression")
        return self

    def _check_file(self) -> None:
        if not self.target:
            raise ValueError("target, the name of a column, is missing")
        if self.name in data.names():
            raise ValueError(f"{self.name!r} is the name of another data set; choose a different name")
        try:
            found = self.load().checksum
        except UserError as error:
            raise ValueError(str(error)) from None
        if self.checksum not in {"", found}:
            raise ValueError(f"{self.csv} has changed")
        object.__setattr__(self, "checksum", found)  # the model is frozen

    @model_serializer
    def to_json(self) -> Any:
        """Return the name, or the mapping of an own file."""
        if not self.csv:
            return self.name
        return {"name": self.name, "csv": self.csv, "target": self.target, "checksum": self.checksum}

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        text = {"type": "string", "minLength": 1}
        own_file = {"properties": dict.fromkeys(KEYS, text), "required": ["name"], "additionalProperties": False}
        return {"anyOf": [{"type": "string", "enum": sorted(data.names())}, {"type": "object", **own_file}]}

    def load(self) -> Dataset:
        """Return the data set in original units. Raises UserError if its file is missing or not valid."""
        if self.csv:
            return data.load(DatasetRef(self.name, self.name, csv=str(study_folder() / self.csv), target=self.target))
        return data.load_dataset(self.name)

    def size(self) -> int:
        """Return the number of data points; only an own file is read."""
        return len(self.load().y) if self.csv else data.card(self.name).n

    def inputs(self) -> int:
        """Return the number of inputs; only an own file is read."""
        return self.load().X.shape[1] if self.csv else data.card(self.name).d


def distinct_sets(entries: tuple[DatasetEntry, ...]) -> tuple[DatasetEntry, ...]:
    """Return data sets. Raises ValueError if two have the same name."""
    if len({entry.name for entry in entries}) < len(entries):
        raise ValueError("a data set occurs twice")
    return entries


RegressionSets = Annotated[tuple[DatasetEntry, ...], AfterValidator(distinct_sets)]


def known_set(name: str) -> str:
    """Return the name of a data set. Raises ValueError if there is none of this name."""
    refuse_unknown("unknown data set", name, data.names())
    return name


SetName = Annotated[str, AfterValidator(known_set)]
