"""The interface of the engines, the in-process engine, and the law that every outcome keeps."""

from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from dataflow_assets.batch import ROW_ID, arrow_schema, json_value, schema_of
from dataflow_assets.control import StopFlag
from dataflow_assets.engines.isolation import isolated
from dataflow_assets.errors import ConservationError
from dataflow_assets.operators.operator import Operator, Outcome, RowOperator
from dataflow_assets.row_ids import parents_of


class Engine(Protocol):
    """Runs row operators. `run` may be called from several threads, one batch each."""

    def begin(self, stop: StopFlag) -> None:
        """Is told of the run's stop flag before the first batch."""
        ...

    def run(self, operator: RowOperator, table: pa.Table) -> Outcome:
        """The operator's outcome on all rows of a batch, in row order."""
        ...

    def close(self) -> None:
        """Frees what the engine holds: processes, replicas."""
        ...


class InlineEngine:
    """Runs the operator in the calling thread, and closes it at the end."""

    def __init__(self) -> None:
        self._operators: set[RowOperator] = set()

    def begin(self, stop: StopFlag) -> None:
        """A batch is short: it is not stopped."""

    def run(self, operator: RowOperator, table: pa.Table) -> Outcome:
        """The operator's outcome; a row on which it raises fails alone."""
        self._operators.add(operator)
        return isolated(operator, table)

    def close(self) -> None:
        """Frees what the operator holds."""
        for operator in self._operators:
            operator.close()

    def __reduce__(self) -> tuple[type["InlineEngine"], tuple[()]]:
        return InlineEngine, ()  # what it holds stays


def check_law(operator: Operator, rows: pa.Table, outcome: Outcome, where: str) -> None:
    """Raises ConservationError where an outcome lost or invented rows, or has other columns than declared.

    Every input row is kept, rejected or failed, exactly one of them, under its own `row_id`; a
    splitting operator may give children `<row_id>/<n>` instead. One that regroups may give a batch the
    rows of others; it counts them over all batches itself.
    """
    expected = arrow_schema(operator.output_schema(schema_of(rows)))
    if not outcome.kept.schema.equals(expected, check_metadata=True):
        raise ConservationError(
            f"{where}: operator {operator.name!r} gave the columns {_shown(outcome.kept.schema)}, "
            f"its declaration says {_shown(expected)}; the commit was refused"
        )
    _check_json(operator, rows, outcome, where)
    if operator.regroups:
        _check_unique(operator, outcome.kept[ROW_ID], where)
        return
    came_in = rows[ROW_ID]
    went_out = [table[ROW_ID] for table in outcome if table is not None and table.num_rows]
    if operator.splits:
        kept_parents = pc.unique(parents_of(outcome.kept[ROW_ID]))
        went_out[: 1 if outcome.kept.num_rows else 0] = [pa.chunked_array([kept_parents])]
    found = pa.chunked_array([chunk for column in went_out for chunk in column.chunks], came_in.type)
    if len(found) == len(came_in) and _same_ids(found, came_in):
        return
    raise ConservationError(
        f"{where}: operator {operator.name!r} was given {len(came_in)} rows and gave {len(found)} "
        f"({_difference(came_in, found)}); every row must be kept, rejected or failed once, so the commit "
        "was refused"
    )


def _check_json(operator: Operator, rows: pa.Table, outcome: Outcome, where: str) -> None:
    """Raises ConservationError where a JSON column that the operator wrote holds what is not JSON."""
    touched = operator.touched(schema_of(rows))
    for name, kind in schema_of(outcome.kept).items():
        if kind != "json" or name not in touched:
            continue
        row_ids, texts = outcome.kept[ROW_ID].to_pylist(), outcome.kept[name].to_pylist()
        for row_id, text in zip(row_ids, texts, strict=True):
            try:
                json_value("null" if text is None else text)
            except ValueError as error:
                raise ConservationError(
                    f"{where}: operator {operator.name!r} wrote {text!r:.100} into the JSON column {name!r} "
                    f"of row {row_id}, which is not JSON; make it with `batch.json_text`. The commit was "
                    "refused"
                ) from error


def _check_unique(operator: Operator, row_ids: pa.ChunkedArray, where: str) -> None:
    if row_ids.null_count or len(pc.unique(row_ids)) < len(row_ids):
        raise ConservationError(
            f"{where}: operator {operator.name!r} gave two rows one {ROW_ID!r}, or a row none; the commit "
            "was refused"
        )


def _same_ids(found: pa.ChunkedArray, expected: pa.ChunkedArray) -> bool:
    return found.equals(expected) or found.sort().equals(expected.sort())


def _difference(expected: pa.ChunkedArray, found: pa.ChunkedArray) -> str:
    before, after = expected.to_pylist(), found.to_pylist()
    lost, new = sorted(set(before) - set(after)), sorted(set(after) - set(before))
    if lost:
        return f"lost for example {lost[0]}"
    if new:
        return f"unknown is for example {new[0]}"
    doubled = next(row_id for row_id in after if after.count(row_id) > 1)
    return f"doubled is for example {doubled}"


def _shown(schema: pa.Schema) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in schema_of(schema).items()) or "none"
