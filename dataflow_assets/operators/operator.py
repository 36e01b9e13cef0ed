"""What an operator is: a table in; kept, rejected and failed rows out.

The classes here own looping, null handling, error catching and counting, so that an operator is
one short method. `Operator` is the contract of the engines; `TextMapper` and `TextFilter` are what
most operators extend; `DatasetOperator` is for decisions that need all batches.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, Literal, NamedTuple, Protocol, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict, Field, SecretStr

from dataflow_assets.batch import Schema, arrow_field, column_type, places_where, values_of, with_column
from dataflow_assets.errors import MissingValue, Raised, RowError, WrongType, said_by
from dataflow_assets.operators.selected_texts import one_chunk
from dataflow_assets.optional_packages import require

REJECT_REASON = "reject_reason"
FAILED_COLUMNS: Schema = {"error_class": "string", "error_message": "string", "attempts": "int64"}
RESERVED_COLUMNS = ("row_id", REJECT_REASON, *FAILED_COLUMNS)
_MAX_MESSAGE_CHARS = 2000


class Params(BaseModel):
    """Parameters of an operator: unknown names are refused, values are never coerced."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Outcome(NamedTuple):
    """What became of a table's rows.

    `kept` has the operator's output columns. `rejected` has the input columns and `reject_reason`;
    it may have more columns that explain the drop. `failed` has the input columns and
    `error_class`, `error_message`, `attempts`. None stands for no rows.
    """

    kept: pa.Table
    rejected: pa.Table | None = None
    failed: pa.Table | None = None


class RowErrors(NamedTuple):
    """Rows of a table that could not be done: positions in the table and the error of each."""

    positions: list[int]
    errors: list[Raised]

    @classmethod
    def none(cls) -> "RowErrors":
        """No error yet."""
        return cls([], [])

    def add(self, position: int, error: Raised) -> None:
        """Notes that the row at this position failed."""
        self.positions.append(position)
        self.errors.append(error)

    def in_order(self) -> "RowErrors":
        """The same errors by position."""
        pairs = sorted(zip(*self, strict=True), key=lambda pair: pair[0])
        return RowErrors([position for position, _ in pairs], [error for _, error in pairs])

    def failed_rows(self, table: pa.Table, attempts: int = 1) -> pa.Table | None:
        """The failed rows of `table` as they came in, with the three columns that say why.

        An error may carry a class of its own and the number of attempts made.
        """
        if not self.positions:
            return None
        rows = table.take(pa.array(self.positions, pa.int64()))
        columns = {
            "error_class": [_class_of(error) for error in self.errors],
            "error_message": [_printable(error) for error in self.errors],
            "attempts": [getattr(error, "attempts", attempts) for error in self.errors],
        }
        for name, kind in FAILED_COLUMNS.items():
            rows = rows.append_column(
                arrow_field(name, kind), pa.array(columns[name], arrow_field(name, kind).type)
            )
        return rows


def _class_of(error: Raised) -> str:
    return getattr(error, "error_class", None) or type(error).__name__


def _printable(error: Raised) -> str:
    return said_by(error).encode("utf-8", "backslashreplace").decode()[:_MAX_MESSAGE_CHARS]


class Operator(ABC):
    """The contract that engines and assets keep with every operator.

    Class attributes: `name` (what a pipeline's `type` says), `version` (raise it when the result
    changes: stored batches are then redone), `scope` (`row`: rows are independent and may be split
    over workers in any way; `dataset`: the decision needs all batches), `releases_gil` (True for
    work on whole Arrow columns: threads serve it better than processes), `splits` (True where one
    row becomes several: the children are called `<row_id>/<n>`), `needs_all_rows` (True where it must
    get the rows of the data set at once: the pipeline has one batch then), `regroups` (True where a batch may
    get the rows of others), `heavy` (True where it holds what a machine should hold once, such as a
    model: it is then not built in several processes unasked).
    """

    name: ClassVar[str]
    version: ClassVar[str] = "1"
    scope: ClassVar[Literal["row", "dataset"]] = "row"
    releases_gil: bool = False
    splits: bool = False
    needs_all_rows: bool = False
    regroups: ClassVar[bool] = False
    heavy: bool = False
    Params: ClassVar[type[BaseModel]] = Params

    def __init__(self, params: BaseModel | None = None) -> None:
        self.params = params if params is not None else self.Params()

    def __reduce__(self) -> tuple[type["Operator"], tuple[BaseModel]]:
        return type(self), (self.params,)  # another process builds its own

    def reads(self) -> list[str]:
        """The columns that must be there."""
        return []

    def writes(self) -> Schema:
        """The columns that are added or replaced, with their types."""
        return {}

    def output_schema(self, schema: Schema) -> Schema:
        """The columns of the kept rows, for rows with the columns of `schema`."""
        return {**schema, **self.writes()}

    def touched(self, schema: Schema) -> set[str]:
        """The columns whose values the operator may change or add."""
        return set(self.writes()) | (set(self.output_schema(schema)) - set(schema))

    def meanings(self) -> Mapping[str, str]:
        """What columns mean, in a sentence each: here what the parameters that name them say."""
        fields = type(self.params).model_fields.items()
        told = ((getattr(self.params, name), field.description) for name, field in fields)
        return {value: meaning for value, meaning in told if isinstance(value, str) and meaning}

    def counts(self, kept: pa.Table) -> Mapping[str, int]:
        """Numbers by name that are shown with a batch, from its kept rows alone, e.g. what was replaced."""
        return {}

    def identity(self) -> Mapping[str, object]:
        """What decides the result beside name, version and parameters, e.g. a function's source."""
        return {}

    def needed_packages(self) -> Mapping[str, str]:
        """The packages beyond the core that a run needs, each with the extra that brings it."""
        return {}

    def check_ready(self) -> None:
        """Raises ConfigError where something is missing that a run needs: a package, a model.

        Asked before a run, not when the operator is built: a pipeline that cannot run here can be
        listed and shown all the same.
        """
        require(self.needed_packages(), f"operator {self.name!r}")

    def warm_up(self) -> None:  # noqa: B027  most operators are ready at once
        """Gets what the first row would wait for, such as a model; a replica does it before it is ready."""

    def close(self) -> None:  # noqa: B027  most operators hold nothing
        """Gives back what the operator holds, such as a model; it is loaded again when it is needed."""

    def fingerprint_of_params(self) -> Mapping[str, object]:
        """The parameters as plain JSON values, secrets left out."""
        return {
            name: value
            for name, value in self.params.model_dump(mode="json").items()
            if not isinstance(getattr(self.params, name), SecretStr)
        }


class RowOperator(Operator):
    """An operator whose rows are independent of each other."""

    @abstractmethod
    def apply(self, table: pa.Table) -> Outcome:
        """Does these rows. Order is kept; `kept` has the columns of `output_schema`."""


class Summaries(Protocol):
    """The stored summaries of all batches, in partition order; may be gone through repeatedly."""

    def __iter__(self) -> Iterator[tuple[str, pa.Table]]: ...


class DatasetOperator(Operator):
    """An operator whose decision needs all batches: deduplication, quotas, statistics.

    Pass one makes a small summary of each batch (kept with the step, so that only new or changed
    batches are summarized again), `decide` goes over the summaries in partition order and gives
    each batch its verdict, pass two applies a verdict to its batch. The result depends on the
    order of the rows alone.
    """

    scope = "dataset"

    @abstractmethod
    def summarize(self, table: pa.Table) -> pa.Table:
        """What `decide` must know of this batch; columns of the five column types."""

    @abstractmethod
    def decide(self, summaries: Summaries) -> Iterable[tuple[str, pa.Table]]:
        """The verdict on each batch, in partition order; equal verdicts are equal tables."""

    @abstractmethod
    def apply_verdict(self, table: pa.Table, verdict: pa.Table) -> Outcome:
        """Does the rows of one batch by its verdict."""


class ColumnParams(Params):
    """Parameters of an operator on one text column.

    `on_null` says what happens to a row without text: `fail` sends it to `_failed` as
    MissingValue, `keep` hands it on as it is, `reject` drops it with the reason `missing_text`.
    """

    column: str = Field("text", description="The text column.")
    on_null: Literal["fail", "keep", "reject"] = Field(
        "fail", description="What becomes of a row without text: `fail`, `keep` or `reject`."
    )


class _Texts(NamedTuple):
    """The usable texts of a table: `positions` is None where every row has one."""

    values: pa.ChunkedArray
    positions: pa.Array | None
    nulls: list[int]
    errors: RowErrors


def unusable_text(column: str, value: object) -> RowError | None:
    """Why a value that is not null cannot be read as text, or None."""
    if not isinstance(value, str):
        return WrongType(f"wrong type: column {column!r} holds {type(value).__name__}, expected text")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        return WrongType(
            f"wrong type: column {column!r} holds a lone surrogate at character {error.start}, "
            "which is no text; `fix_unicode` repairs it"
        )
    return None


class TextColumnOperator(Operator):
    """An operator on one text column: finds the texts, and the rows that have none."""

    Params = ColumnParams

    @property
    def _column(self) -> ColumnParams:
        """The parameters that every text operator has; a subclass declares `params` as its own type."""
        return cast(ColumnParams, self.params)

    def reads(self) -> list[str]:
        """The text column."""
        return [self._column.column]

    def texts(self, table: pa.Table) -> _Texts:
        """The texts of the column. A value that is not text makes its row fail as WrongType."""
        name = self._column.column
        column = table[name]
        if column_type(table.schema.field(name)) == "string" and not column.null_count:
            return _Texts(column, None, [], RowErrors.none())
        if column_type(table.schema.field(name)) == "string":
            valid = column.is_valid()
            nulls = places_where(pc.invert(valid)).to_pylist()
            return self._without_nulls(column.drop_null(), places_where(valid), nulls, RowErrors.none())
        errors, nulls, positions, values = RowErrors.none(), [], [], []
        for position, value in enumerate(values_of(table, name)):
            if value is None:
                nulls.append(position)
            elif (error := unusable_text(name, value)) is not None:
                errors.add(position, error)
            else:
                positions.append(position)
                values.append(value)
        array = pa.chunked_array([pa.array(values, pa.large_string())])
        return self._without_nulls(array, pa.array(positions, pa.int64()), nulls, errors)

    def _without_nulls(
        self, values: pa.ChunkedArray, positions: pa.Array, nulls: list[int], errors: RowErrors
    ) -> _Texts:
        """The texts, with the rows that have none as errors where `on_null` says so."""
        if self._column.on_null != "fail":
            return _Texts(values, positions, nulls, errors)
        name = self._column.column
        for position in nulls:
            errors.add(position, MissingValue(f"missing {name}: the row has no value in column {name!r}"))
        return _Texts(values, positions, [], errors)

    def with_columns(
        self,
        table: pa.Table,
        texts: _Texts,
        columns: Mapping[str, pa.Array | pa.ChunkedArray],
        row_errors: RowErrors,
    ) -> Outcome:
        """The rows with columns of `writes()` that have one value for each text; null for other rows.

        Rows without a usable text, and those of `row_errors` (positions within the texts), are failed.
        """
        kinds = self.writes()
        errors = _merged(texts, row_errors)
        result = table
        for name, values in columns.items():
            whole = values if texts.positions is None else _scattered(values, texts.positions, table.num_rows)
            result = with_column(result, name, kinds[name], whole)
        rejected = self._rejected_nulls(table, texts)
        if not errors.positions and rejected is None:
            return Outcome(result)
        keep = np.ones(table.num_rows, bool)
        keep[errors.positions] = False
        if rejected is not None:
            keep[texts.nulls] = False
        return Outcome(result.filter(pa.array(keep)), rejected, errors.failed_rows(table))

    def _rejected_nulls(self, table: pa.Table, texts: _Texts) -> pa.Table | None:
        if self._column.on_null != "reject" or not texts.nulls:
            return None
        rows = table.take(pa.array(texts.nulls, pa.int64()))
        reasons = pa.array(["missing_text"] * len(texts.nulls), pa.large_string())
        return rows.append_column(arrow_field(REJECT_REASON, "string"), reasons)


class TextOperator(TextColumnOperator, RowOperator):
    """An operator on one text column whose rows are independent of each other."""


class TextMapper(TextOperator):
    """Replaces one text column by an edited text; every other column stays as it is.

    Give `edit` (one text) or, where Arrow has the function, `edit_column` (all texts at once).
    """

    def writes(self) -> Schema:
        """The text column, as a string."""
        return {self._column.column: "string"}

    def edit(self, text: str) -> str:
        """The new text of one row. Raises anything to send the row to `_failed`."""
        raise NotImplementedError(f"{type(self).__name__} must define edit or edit_column")

    def edit_column(self, texts: pa.ChunkedArray) -> tuple[pa.ChunkedArray, RowErrors]:
        """The new texts; positions in the errors count within `texts`, their new text is null."""
        edited: list[str | None] = []
        errors = RowErrors.none()
        for position, text in enumerate(texts.to_pylist()):
            try:
                edited.append(_encodable(self.edit(text)))
            except (Exception, SystemExit) as error:  # noqa: BLE001  a row that raises fails alone
                edited.append(None)
                errors.add(position, error)
        return pa.chunked_array([pa.array(edited, pa.large_string())]), errors

    def apply(self, table: pa.Table) -> Outcome:
        """Edits the texts; rows without a usable text or whose edit raised are failed."""
        texts = self.texts(table)
        edited, row_errors = self.edit_column(texts.values)
        return self.with_columns(table, texts, {self._column.column: edited}, row_errors)


class TextFilter(TextOperator):
    """Keeps or rejects rows by one text column; kept rows are unchanged.

    Give `reason` (one text) or `reasons` (all texts at once): the rule that drops the row, or None.
    """

    def reason(self, text: str) -> str | None:
        """The name of the rule that drops this text, or None. Raising fails the row."""
        raise NotImplementedError(f"{type(self).__name__} must define reason or reasons")

    def reasons(self, texts: pa.ChunkedArray) -> tuple[pa.Array | pa.ChunkedArray, RowErrors]:
        """The reason of each text or null; positions in the errors count within `texts`."""
        found: list[str | None] = []
        errors = RowErrors.none()
        for position, text in enumerate(texts.to_pylist()):
            try:
                found.append(self.reason(text))
            except (Exception, SystemExit) as error:  # noqa: BLE001  a row that raises fails alone
                found.append(None)
                errors.add(position, error)
        return pa.array(found, pa.large_string()), errors

    def apply(self, table: pa.Table) -> Outcome:
        """Keeps the rows without a reason, in order."""
        texts = self.texts(table)
        reasons, row_errors = self.reasons(texts.values)
        if texts.positions is not None:
            reasons = _scattered(reasons, texts.positions, table.num_rows)
            if self._column.on_null == "reject" and texts.nulls:
                reasons = _with_value(reasons, texts.nulls, "missing_text")
        return split_by_reason(table, reasons, _merged(texts, row_errors))


def split_by_reason(
    table: pa.Table, reasons: pa.Array | pa.ChunkedArray, errors: RowErrors | None = None
) -> Outcome:
    """Kept rows have a null reason and no error, rejected ones get it as `reject_reason`."""
    failed = errors.failed_rows(table) if errors else None
    dropped = reasons.is_valid() if isinstance(reasons, pa.ChunkedArray) else pc.is_valid(reasons)
    keep = pc.invert(dropped)
    if errors and errors.positions:
        done = [True] * table.num_rows
        for position in errors.positions:
            done[position] = False
        keep, dropped = pc.and_(keep, pa.array(done)), pc.and_(dropped, pa.array(done))
    rejected = table.append_column(arrow_field(REJECT_REASON, "string"), reasons).filter(dropped)
    return Outcome(table.filter(keep), rejected if rejected.num_rows else None, failed)


def _encodable(text: str) -> str:
    if not isinstance(text, str):
        raise WrongType(f"wrong type: the edit gave {type(text).__name__}, expected text")
    text.encode()
    return text


def _merged(texts: _Texts, row_errors: RowErrors) -> RowErrors:
    """The errors of both stages by position in the table, in row order."""
    if not texts.errors.positions and texts.positions is None:
        return row_errors
    places: Sequence[int] = [] if texts.positions is None else texts.positions.to_pylist()
    pairs = list(zip(*texts.errors, strict=True))
    pairs += [
        (places[position], error)
        for position, error in zip(row_errors.positions, row_errors.errors, strict=True)
    ]
    return RowErrors([position for position, _ in pairs], [error for _, error in pairs]).in_order()


def _scattered(values: pa.Array | pa.ChunkedArray, positions: pa.Array, length: int) -> pa.Array:
    """The values at their positions in a column of this length; null elsewhere."""
    mask = np.zeros(length, bool)
    mask[positions.to_numpy()] = True
    return pc.replace_with_mask(pa.nulls(length, values.type), pa.array(mask), one_chunk(values))


def _with_value(array: pa.Array, positions: Sequence[int], value: str) -> pa.Array:
    column = array.to_pylist()
    for position in positions:
        column[position] = value
    return pa.array(column, pa.large_string())
