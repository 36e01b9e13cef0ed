"""From what became of each row to the outcome of a batch: new columns, children, drops, failures."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import NamedTuple

import pyarrow as pa

from dataflow_assets.batch import (
    ROW_ID,
    ColumnType,
    Schema,
    arrow_field,
    arrow_schema,
    column_of,
    column_type,
    schema_of,
    values_of,
)
from dataflow_assets.errors import Raised, WrongType
from dataflow_assets.operators.llm.operator import Done, LLMOperator, Rejected
from dataflow_assets.operators.operator import REJECT_REASON, Outcome, RowErrors
from dataflow_assets.serving.usage import Usage

RAW_ANSWER, FAILED_AT = "raw_answer", "failed_at"
REJECT_DETAILS = "reject_details"


class RowDone(NamedTuple):
    """What became of a row, or its error; and what its calls took."""

    done: Done | Raised
    usage: Usage


class _Kept(NamedTuple):
    """A row that goes on: where it came in, under which id, and its new values."""

    position: int
    row_id: str
    values: Mapping[str, object]


def outcome_of(operator: LLMOperator, table: pa.Table, results: Sequence[RowDone]) -> Outcome:
    """The rows in their order. A value that its column cannot hold fails its row as WrongType."""
    schema = operator.output_schema(schema_of(table))
    row_ids = table[ROW_ID].to_pylist()
    kept: list[_Kept] = []
    rejected: list[tuple[int, Rejected]] = []
    errors = RowErrors.none()
    for position, result in enumerate(results):
        if isinstance(result.done, Rejected):
            rejected.append((position, result.done))
            continue
        try:
            kept += _rows(operator, schema, position, row_ids[position], result)
        except (Exception, SystemExit) as error:  # noqa: BLE001  raised by the row's own values, or its error itself
            errors.add(position, error)
    return Outcome(_kept_table(table, schema, kept), _rejected(table, rejected), _failed(table, errors))


def _rows(operator: LLMOperator, schema: Schema, position: int, row_id: str, result: RowDone) -> list[_Kept]:
    if isinstance(result.done, Exception | SystemExit):
        raise result.done
    several = isinstance(result.done, Sequence)
    if several != operator.splits:
        raise WrongType(
            f"wrong type: {operator.name!r} gave {'several rows' if several else 'one row'}, "
            f"but its `splits` is {operator.splits}"
        )
    parts: Sequence[Mapping[str, object]] = result.done if several else [result.done]  # pyright: ignore
    if not parts:
        raise WrongType(f"wrong type: {operator.name!r} gave no child; reject the row instead")
    ids = [f"{row_id}/{number}" for number in range(len(parts))] if several else [row_id]
    extra = _usage_values(operator, result.usage)
    return [
        _Kept(position, child, _checked(operator, schema, {**values, **extra}))
        for child, values in zip(ids, parts, strict=True)
    ]


def _usage_values(operator: LLMOperator, usage: Usage) -> dict[str, object]:
    column = operator.usage_column
    if column is None:
        return {}
    return {column: {"tokens_in": usage.tokens_in, "tokens_out": usage.tokens_out, "cost": usage.cost}}


def _checked(operator: LLMOperator, schema: Schema, values: Mapping[str, object]) -> Mapping[str, object]:
    """The values, each of which fits its column."""
    for name, value in values.items():
        kind = schema.get(name)
        if kind is None:
            raise WrongType(
                f"wrong type: {operator.name!r} gave the column {name!r}, which it does not declare"
            )
        try:
            column_of([value], kind)
        except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
            raise WrongType(f"wrong type: column {name!r} is {kind}; {error}") from error
    return values


def _kept_table(table: pa.Table, schema: Schema, kept: Sequence[_Kept]) -> pa.Table:
    rows = table.take(pa.array([row.position for row in kept], pa.int64()))
    arrays = [_column(rows, name, kind, kept) for name, kind in schema.items()]
    return pa.Table.from_arrays(arrays, schema=arrow_schema(schema))


def _column(rows: pa.Table, name: str, kind: ColumnType, kept: Sequence[_Kept]) -> pa.Array | pa.ChunkedArray:
    if name == ROW_ID:
        return column_of([row.row_id for row in kept], kind)
    present = name in rows.column_names
    given = any(name in row.values for row in kept)
    if present and not given and column_type(rows.schema.field(name)) == kind:
        return rows[name]
    old = values_of(rows, name) if present else [None] * len(kept)
    return column_of([row.values.get(name, value) for row, value in zip(kept, old, strict=True)], kind)


def _rejected(table: pa.Table, rejected: Sequence[tuple[int, Rejected]]) -> pa.Table | None:
    if not rejected:
        return None
    rows = table.take(pa.array([position for position, _ in rejected], pa.int64()))
    reasons = pa.array([drop.reason for _, drop in rejected], pa.large_string())
    rows = rows.append_column(arrow_field(REJECT_REASON, "string"), reasons)
    if not any(drop.details for _, drop in rejected):
        return rows
    details = column_of([dict(drop.details) or None for _, drop in rejected], "json")
    return rows.append_column(arrow_field(REJECT_DETAILS, "json"), details)


def _failed(table: pa.Table, errors: RowErrors) -> pa.Table | None:
    """The failed rows, with the last raw answer and the time (UTC) beside the three usual columns."""
    rows = errors.failed_rows(table)
    if rows is None:
        return None
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    raw = [_encodable(getattr(error, "raw", "")) or None for error in errors.errors]
    rows = rows.append_column(arrow_field(RAW_ANSWER, "string"), pa.array(raw, pa.large_string()))
    times = pa.array([now] * rows.num_rows, pa.large_string())
    return rows.append_column(arrow_field(FAILED_AT, "string"), times)


def _encodable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
