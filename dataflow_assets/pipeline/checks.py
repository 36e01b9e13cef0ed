"""The checks of a step as a pipeline declares them: a rule, its limits, and whether a failure blocks."""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

import xxhash
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from dataflow_assets.batch import ROW_ID, ColumnType
from dataflow_assets.pipeline.problems import listed, near_names, shown

Rule = Literal["failed_share", "keep_rate", "null_rate", "mean", "duplicate_share"]
_RULES: dict[str, Rule] = {
    "max_failed_share": "failed_share",
    "min_keep_rate": "keep_rate",
    "max_null_rate": "null_rate",
    "min_mean": "mean",
    "max_mean": "mean",
    "max_duplicate_share": "duplicate_share",
}
_OF_ROWS = ("failed_share", "keep_rate")
_NO_NAME = re.compile(r"[^A-Za-z0-9_]")
_NUMBERS = ("int64", "float64")


class CheckSpec(BaseModel):
    """A limit for all rows of a step, or for those of each batch; one rule a check.

    Shares and rates are between 0 and 1. A value that is the limit passes.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)

    max_failed_share: float | None = Field(
        default=None, ge=0, le=1, description="Failed rows, of the rows that came in."
    )
    min_keep_rate: float | None = Field(
        default=None, ge=0, le=1, description="Rows neither rejected nor failed, of the rows that came in."
    )
    max_null_rate: float | None = Field(
        default=None, ge=0, le=1, description="Kept rows without a value in `column`."
    )
    min_mean: float | None = Field(default=None, description="Lowest mean of the numbers in `column`.")
    max_mean: float | None = Field(default=None, description="Highest mean of the numbers in `column`.")
    max_duplicate_share: float | None = Field(
        default=None, ge=0, le=1, description="Values in `column` that repeat an earlier one."
    )
    column: str | None = Field(default=None, min_length=1, description="A column of the step's output.")
    each: Literal["step", "batch"] = Field(
        default="step", description="Over all batches at the end, or for each as soon as it is committed."
    )
    blocking: bool = Field(
        default=False, description="A failure stops the run and what is downstream; else it is a warning."
    )
    name: str | None = Field(
        default=None,
        pattern="^[A-Za-z0-9_]{1,100}$",
        description="Default: made of the rule and the column.",
    )

    @model_validator(mode="after")
    def _is_one_rule(self) -> "CheckSpec":
        rules = sorted({_RULES[limit] for limit in self.limits})
        if len(rules) != 1:
            found = f"found {listed(self.limits)}"
            raise ValueError(
                f"a check has one rule: one of {', '.join(_RULES)} ({found}); make it more checks"
            )
        if (self.column is None) != (self.rule in _OF_ROWS):
            told = "needs a `column`" if self.column is None else "counts rows; leave out `column`"
            raise ValueError(f"{next(iter(self.limits))} {told} (found column {shown(self.column)})")
        if self.min_mean is not None and self.max_mean is not None and self.min_mean > self.max_mean:
            found = f"found {self.min_mean:g} and {self.max_mean:g}"
            raise ValueError(f"min_mean is above max_mean ({found}), so nothing passes")
        return self

    @property
    def limits(self) -> dict[str, float]:
        """The limits that are set, by the names of their fields."""
        return {limit: value for limit in _RULES if (value := getattr(self, limit)) is not None}

    @property
    def rule(self) -> Rule:
        """What is measured."""
        return _RULES[next(iter(self.limits))]

    @property
    def check_name(self) -> str:
        """What it is called in Dagster and in the status: unique in its step, the same for other limits."""
        if self.name is not None:
            return self.name
        parts = [self.rule, *([_as_name(self.column)] if self.column else [])]
        return "_".join([*parts, *(["each_batch"] if self.each == "batch" else [])])

    def margin(self, value: float) -> float:
        """How far within the nearest limit a value is; negative outside."""
        sides = (1 if limit.startswith("min_") else -1 for limit in self.limits)
        return min(side * (value - bound) for side, bound in zip(sides, self.limits.values(), strict=True))

    def problem(self, schema: Mapping[str, ColumnType]) -> str | None:
        """What is wrong with its column, in a step with this output."""
        if self.column is None:
            return None
        if self.column not in schema:
            others = [name for name in schema if name != ROW_ID]
            return (
                f"checks: {self.check_name!r} looks at the column {shown(self.column)}, which the step's "
                f"output does not have (there are: {listed(others)}){near_names(self.column, others)}"
            )
        if self.rule == "mean" and schema[self.column] not in _NUMBERS:
            return (
                f"checks: {self.check_name!r} needs numbers, and the column {shown(self.column)} is "
                f"{schema[self.column]}; expected int64 or float64"
            )
        return None


def _as_name(column: str) -> str:
    """The column as Dagster takes it in names; a hash keeps two of them apart."""
    plain = _NO_NAME.sub("_", column)
    return plain if plain == column else f"{plain}_{xxhash.xxh3_64_hexdigest(column.encode())[:8]}"


def _named_once(checks: Sequence[CheckSpec]) -> Sequence[CheckSpec]:
    names = [check.check_name for check in checks]
    twice = [name for place, name in enumerate(names) if name in names[:place]]
    if twice:
        raise ValueError(f"two checks are called {twice[0]!r}; give one of them a `name` of its own")
    return checks


def any_blocking(checks: Sequence[CheckSpec], each: Literal["batch"] | None = None) -> bool:
    """Whether one of them stops what is downstream; with `each`, one that is looked at batch by batch."""
    return any(check.blocking and each in (None, check.each) for check in checks)


Checks = Annotated[list[CheckSpec], AfterValidator(_named_once)]
