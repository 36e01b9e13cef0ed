"""A function of the user, named by its path: checked at load, hashed so that a change is seen."""

import hashlib
import inspect
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, cast

from pydantic import Field, field_validator

from dataflow_assets.batch import ColumnType, Schema
from dataflow_assets.errors import ConfigError
from dataflow_assets.operators.operator import RESERVED_COLUMNS, Params, RowOperator
from dataflow_assets.operators.registry import import_object


class UserFunctionParams(Params):
    """The function, the columns that it brings, and a version for what it calls."""

    function: str = Field(description="The function, as `package.module:name`.")
    columns: dict[str, ColumnType] = Field(
        default_factory=dict, description="The columns that the function adds or whose type it changes."
    )
    version: str | None = Field(
        None, description="Change it when code that the function calls has changed: the step is redone."
    )

    @field_validator("function")
    @classmethod
    def _is_callable(cls, path: str) -> str:
        try:
            function = import_object(path)
        except ConfigError as error:
            raise ValueError(str(error)) from error
        if not callable(function):
            raise ValueError(f"{path!r} is a {type(function).__name__}, expected a function")
        return path

    @field_validator("columns")
    @classmethod
    def _not_reserved(cls, columns: dict[str, ColumnType]) -> dict[str, ColumnType]:
        if taken := [name for name in columns if name in RESERVED_COLUMNS or not name]:
            raise ValueError(f"reserved column names: {', '.join(map(repr, taken))}")
        return columns


class UserFunctionOperator(RowOperator):
    """An operator that calls a function of the user."""

    Params = UserFunctionParams

    @property
    def _own(self) -> UserFunctionParams:
        """The parameters, for a subclass that declares `params` as its own type."""
        return cast(UserFunctionParams, self.params)

    def writes(self) -> Schema:
        """The declared columns."""
        return dict(self._own.columns)

    def touched(self, schema: Schema) -> set[str]:
        """Every column but `row_id`: the function may change any."""
        return set(self.output_schema(schema)) - {"row_id"}

    def identity(self) -> Mapping[str, object]:
        """The hash of the function's source, so that editing it redoes the step."""
        return {"source": self._source_hash}

    @cached_property
    def _source_hash(self) -> str:
        """Taken once, so that a file that is edited during a run counts for the next one."""
        return hashlib.sha256(_source(self.function).encode()).hexdigest()

    @cached_property
    def function(self) -> Callable[..., Any]:
        """The function itself."""
        return cast("Callable[..., Any]", import_object(self._own.function))


def _source(function: object) -> str:
    """The source of a function or of its class; nothing where Python keeps none (builtins)."""
    target = inspect.unwrap(function) if inspect.isfunction(function) else function
    if not (inspect.isroutine(target) or inspect.isclass(target)):
        target = type(target)
    try:
        return inspect.getsource(target)
    except (OSError, TypeError):
        return ""
