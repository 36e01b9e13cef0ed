"""The base of operators with a local model: finds texts, loads the model when needed, adds columns."""

import threading
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Generic, TypeVar, cast

import pyarrow as pa

from dataflow_assets.batch import ROW_ID, column_of, values_of, with_column
from dataflow_assets.errors import MissingValue, RowError
from dataflow_assets.operators.models.loading import check_model_is_there, free_memory, model_identity
from dataflow_assets.operators.models.model_params import ModelParams
from dataflow_assets.operators.operator import Outcome, RowErrors, RowOperator, unusable_text

# How a model is run decides nothing but the time.
_HOW_IT_IS_RUN = ("device", "tokens_per_pass", "compile")
Model = TypeVar("Model")
Texts = Sequence[str | None]
Values = Sequence[object]


class ModelOperator(RowOperator, Generic[Model]):
    """Adds columns that a model makes of one or more texts of the row.

    A subclass says which texts it reads, loads its model, and gives for each row the values of
    `writes` or the error of the row. The model is loaded at the first batch, once a process, and used
    by one thread at a time; it stays until `close`.
    """

    releases_gil = True
    heavy = True

    def __init__(self, params: ModelParams) -> None:
        super().__init__(params)
        self._lock = threading.Lock()
        self._model: Model | None = None

    @property
    def _place(self) -> ModelParams:
        """The parameters that every such operator has; a subclass declares `params` as its own type."""
        return cast(ModelParams, self.params)

    def __reduce__(self) -> tuple[type, tuple[ModelParams]]:
        """Another process loads the model anew."""
        return type(self), (self._place,)

    @abstractmethod
    def load(self) -> Model:
        """The model. Raises RunError where it cannot be loaded."""

    @abstractmethod
    def results(self, model: Model, rows: Sequence[Texts], row_ids: Sequence[str]) -> list[Values | RowError]:
        """The values of each row's new columns, or why it has none."""

    @abstractmethod
    def needed_columns(self) -> list[str]:
        """The text columns without which a row fails."""

    def optional_columns(self) -> list[str]:
        """Further text columns, whose values may be missing."""
        return []

    def reads(self) -> list[str]:
        """The text columns."""
        return list(dict.fromkeys([*self.needed_columns(), *self.optional_columns()]))

    def identity(self) -> Mapping[str, object]:
        """The model's files as they were when first asked for, or its name."""
        return self._identity

    @cached_property
    def _identity(self) -> Mapping[str, object]:
        return model_identity(self._place)

    def fingerprint_of_params(self) -> Mapping[str, object]:
        """The parameters without those that the model's identity stands for, or that change no result."""
        left_out = {"model", "revision", *_HOW_IT_IS_RUN}
        return {key: value for key, value in super().fingerprint_of_params().items() if key not in left_out}

    def needed_packages(self) -> Mapping[str, str]:
        """What runs the model."""
        return {"torch": "models", "transformers": "models"}

    def check_ready(self) -> None:
        """Raises ConfigError without the packages or the model's folder."""
        super().check_ready()
        check_model_is_there(self.name, self._place)

    def model(self) -> Model:
        """The model, loaded now where it is not there yet."""
        if self._model is None:
            self.check_ready()
            self._model = self.load()
        return self._model

    def warm_up(self) -> None:
        """Loads the model."""
        with self._lock:
            self.model()

    def close(self) -> None:
        """Gives the model's memory back."""
        with self._lock:
            if self._model is not None:
                self._model = None
                free_memory()

    def apply(self, table: pa.Table) -> Outcome:
        """The rows with their new columns; rows without a text, or without a result, are failed."""
        positions, rows, errors = self._texts(table)
        results: Sequence[Values | RowError] = []
        if rows:
            row_ids = table[ROW_ID].take(pa.array(positions, pa.int64())).to_pylist()
            with self._lock:
                results = self.results(self.model(), rows, row_ids)
        kept: list[int] = []
        values: list[Values] = []
        for position, result in zip(positions, results, strict=True):
            if isinstance(result, RowError):
                errors.add(position, result)
            else:
                kept.append(position)
                values.append(result)
        return Outcome(self._with_values(table, kept, values), None, errors.in_order().failed_rows(table))

    def _texts(self, table: pa.Table) -> tuple[list[int], list[Texts], RowErrors]:
        """The positions and texts of the rows that have all that is needed, and the errors of the others."""
        columns = {name: values_of(table, name) for name in self.reads()}
        needed = set(self.needed_columns())
        errors = RowErrors.none()
        positions: list[int] = []
        rows: list[Texts] = []
        for position, texts in enumerate(zip(*columns.values(), strict=True)):
            problem = _problem(dict(zip(columns, texts, strict=True)), needed)
            if problem is not None:
                errors.add(position, problem)
            else:
                positions.append(position)
                rows.append(texts)
        return positions, rows, errors

    def _with_values(self, table: pa.Table, positions: list[int], values: list[Values]) -> pa.Table:
        whole = len(positions) == table.num_rows
        kept = table if whole else table.take(pa.array(positions, pa.int64()))
        for place, (name, kind) in enumerate(self.writes().items()):
            kept = with_column(kept, name, kind, column_of([row[place] for row in values], kind))
        return kept


def _problem(texts: Mapping[str, object], needed: set[str]) -> RowError | None:
    for name, value in texts.items():
        if value is None and name in needed:
            return MissingValue(f"missing {name}: the row has no value in column {name!r}")
        if value is not None and (problem := unusable_text(name, value)) is not None:
            return problem
    return None


def or_problem(problem: object, values: Values) -> Values | RowError:
    """The error where there is one, else the values."""
    return problem if isinstance(problem, RowError) else values
