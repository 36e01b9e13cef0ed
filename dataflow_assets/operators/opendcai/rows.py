"""`opendcai`: an operator of open-dataflow on the rows of a batch."""

import threading
from collections.abc import Mapping
from typing import Any

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
from dataflow_assets.errors import ConfigError, DataflowError, RunError, WrongType, said_by
from dataflow_assets.operators.opendcai.declared import Declared
from dataflow_assets.operators.opendcai.frames import Given, Returned, returned_rows
from dataflow_assets.operators.opendcai.operator import OpenDCAIOperator, OpenDCAIParams
from dataflow_assets.operators.opendcai.storage import MemoryStorage
from dataflow_assets.operators.operator import REJECT_REASON, Outcome, RowErrors, RowOperator
from dataflow_assets.operators.registry import register
from dataflow_assets.operators.table_rows import by_halves


class _Done:
    """What became of some rows of a batch."""

    def __init__(self, kept: pa.Table, dropped: pa.Table, errors: RowErrors, rows: pa.Table) -> None:
        self.kept, self.dropped, self.failed = kept, dropped, errors.failed_rows(rows)


@register
class OpenDCAI(OpenDCAIOperator, RowOperator):
    """Runs an operator of the open-dataflow package (OpenDCAI's DataFlow) inside a batch.

    Grain: one row in, at most one out, or with `splits` some children `<row_id>/<n>`; order unchanged.
    The operator reads and writes a DataFrame in memory; rows are followed by their `row_id`, which is a
    column of it. A row that it leaves out is rejected with its class as the reason. Only values that it
    changed are taken over, so that pandas alters nothing else, and a column that it leaves out stays.
    Where it raises, it is called with the halves, until the rows that fail are found; they fail alone.
    An operator whose rows lose their `row_id` is run `one_by_one`, or refused; one that looks at all
    rows (deduplication) needs `batch_rows: null`. `opendcai_llm` is for those that ask a model.

    Reads what arguments `input_…` of `run` name, writes what `output_…` name (JSON, or as in
    `columns`). The step is redone when the package's version changes. Needs open-dataflow and what the
    class's module imports; `DF_LOGGING_LEVEL=INFO` shows its log.

    Example:
        - {name: lower, type: opendcai, params: {operator: LowercaseRefiner, run: {input_key: text}}}
    """

    name = "opendcai"
    Params = OpenDCAIParams
    params: OpenDCAIParams

    def __init__(self, params: OpenDCAIParams) -> None:
        super().__init__(params)
        self._lock = threading.Lock()
        self._instance: Any = None
        found = self.declared
        self.needs_all_rows = self.row_scope == "dataset"
        self.heavy = self.row_scope != "row" or (found is not None and found.is_heavy)

    def given_servings(self, found: Declared) -> list[str]:
        """None: it asks no model."""
        if asked := [name for name in found.servings if name not in self.params.init]:
            raise ConfigError(
                f"{found.place.name} asks a model by its argument {asked[0]!r}; use the type `opendcai_llm`, "
                "which gives it a serving of the pipeline"
            )
        return []

    def warm_up(self) -> None:
        """Makes the instance, which loads its model."""
        with self._lock:
            self._made()

    def _made(self) -> Any:
        if self._instance is None:
            self.check_ready()
            self._instance = self.made({})
        return self._instance

    def close(self) -> None:
        """Gives the instance up."""
        with self._lock:
            self._instance = None

    def apply(self, table: pa.Table) -> Outcome:
        """The rows as the operator left them. Raises RunError where they cannot be followed."""
        schema = self.output_schema(schema_of(table))
        with self._lock:
            self._made()
            pieces = self._pieces(table, schema)
        for piece in pieces.results:
            if isinstance(piece, DataflowError):
                raise piece
        done: list[_Done] = pieces.results
        empty = arrow_schema(schema).empty_table()
        kept = pa.concat_tables([empty, *(piece.kept for piece in done)])
        dropped = pa.concat_tables([table.schema.empty_table(), *(piece.dropped for piece in done)])
        failed = [piece.failed for piece in done if piece.failed is not None]
        raised = pieces.errors.in_order().failed_rows(table)
        failed += [raised] if raised is not None else []
        return Outcome(kept, self._rejected(dropped), pa.concat_tables(failed) if failed else None)

    def _pieces(self, table: pa.Table, schema: Schema):
        """What became of the rows, of all at once or of one at a time; a row on which it raises fails."""
        if self.row_scope != "row":
            return by_halves(table, lambda rows: self._whole(rows, schema))
        if not self.params.one_by_one:
            return by_halves(table, lambda rows: self._tried(rows, schema))
        pieces = by_halves(table.slice(0, 0), lambda rows: None)
        for position in range(table.num_rows):
            one = by_halves(table.slice(position, 1), lambda rows: self._tried(rows, schema))
            pieces.results.extend(one.results)
            for error in one.errors.errors:
                pieces.errors.add(position, error)
        return pieces

    def _tried(self, rows: pa.Table, schema: Schema) -> _Done | DataflowError:
        """What became of the rows; an error that no smaller piece would cure is given, not raised."""
        try:
            return self._done(rows, schema)
        except (RunError, ConfigError) as error:
            return error

    def _whole(self, rows: pa.Table, schema: Schema) -> _Done | DataflowError:
        """The same for rows that may not be parted: whatever it raises is everybody's."""
        try:
            return self._done(rows, schema)
        except DataflowError as error:
            return error
        except (Exception, SystemExit) as error:  # noqa: BLE001  an operator may raise anything; `apply` raises this one
            return RunError(
                f"{self.label} raised {type(error).__name__}: {said_by(error)}; it looks at "
                f"{rows.num_rows} rows at once (scope {self.row_scope!r}), so no row can be set aside: "
                "take out before what it cannot read"
            )

    def _done(self, rows: pa.Table, schema: Schema) -> _Done:
        kinds = schema_of(rows)
        given = Given({name: values_of(rows, name) for name in kinds}, kinds)
        storage = MemoryStorage(given)
        self._instance.run(storage, **self.params.run)
        if storage.written is None:
            raise RunError(f"{self.label} wrote nothing; an operator that writes no rows cannot be a step")
        frame = storage.written
        if self.params.one_by_one:
            frame = frame.assign(**{ROW_ID: [given.row_ids[0]] * len(frame)})
        found = returned_rows(frame, given, self.label)
        self._check_names(found, schema)
        return self._parted(rows, found, schema)

    def _check_names(self, found: Returned, schema: Schema) -> None:
        if unknown := [name for name in found.changed if name not in schema]:
            raise RunError(
                f"{self.label} wrote the column {unknown[0]!r}, which is not declared; add it to the step's "
                f"params, e.g. `columns: {{{unknown[0]}: string}}`"
            )
        if not self.splits and len(set(found.places)) < len(found.places):
            raise RunError(
                f"{self.label} wrote several rows for one; say `splits: true`, their ids are then "
                "<row_id>/<n>"
            )

    def _parted(self, rows: pa.Table, found: Returned, schema: Schema) -> _Done:
        """The rows that stay with their new values, those that are gone, those with a value that fits not."""
        errors: dict[int, Exception] = {}
        arrays: dict[str, pa.Array | None] = {}
        for name, values in found.changed.items():
            arrays[name] = _column(values, schema[name])
            if arrays[name] is None:
                errors |= _misfits(name, values, schema[name], found.places)
        good = [place for place, parent in enumerate(found.places) if parent not in errors]
        places = [found.places[place] for place in good]
        kept = rows.take(pa.array(places, pa.int64()))
        columns = []
        for name, kind in schema.items():
            if name == ROW_ID:
                columns.append(self._ids(kept, places))
            elif name in found.changed:
                values = found.changed[name]
                columns.append(column_of([values[place] for place in good], kind))
            elif name in rows.column_names:
                columns.append(_as_declared(kept, name, kind))
            else:
                columns.append(column_of([None] * len(good), kind))
        gone = sorted(set(range(rows.num_rows)) - set(found.places))
        failed = RowErrors(list(errors), list(errors.values())).in_order()
        table = pa.Table.from_arrays(columns, schema=arrow_schema(schema))
        return _Done(table, rows.take(pa.array(gone, pa.int64())), failed, rows)

    def _ids(self, kept: pa.Table, places: list[int]) -> pa.Array | pa.ChunkedArray:
        """The ids of the rows, of children where it splits."""
        if not self.splits:
            return kept[ROW_ID]
        counts: dict[int, int] = {}
        ids = []
        for place, row_id in zip(places, kept[ROW_ID].to_pylist(), strict=True):
            ids.append(f"{row_id}/{counts.get(place, 0)}")
            counts[place] = counts.get(place, 0) + 1
        return column_of(ids, "string")

    def _rejected(self, rows: pa.Table) -> pa.Table | None:
        if not rows.num_rows:
            return None
        reasons = pa.array([self.label] * rows.num_rows, pa.large_string())
        return rows.append_column(arrow_field(REJECT_REASON, "string"), reasons)


def _column(values: list[object], kind: ColumnType) -> pa.Array | None:
    """The values as a column, None where one of them does not fit."""
    try:
        return column_of(values, kind)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        return None


def _misfits(name: str, values: list[object], kind: ColumnType, places: list[int]) -> dict[int, Exception]:
    """The rows whose value does not fit its column."""
    errors: dict[int, Exception] = {}
    for place, value in zip(places, values, strict=True):
        if _column([value], kind) is None:
            errors[place] = WrongType(
                f"wrong type: column {name!r} is {kind}, and the operator wrote {type(value).__name__} "
                f"{value!r:.60}; declare another type in `columns`"
            )
    return errors


def _as_declared(rows: pa.Table, name: str, kind: ColumnType) -> pa.Array | pa.ChunkedArray:
    """A column that was not changed, in its declared type."""
    if column_type(rows.schema.field(name)) == kind:
        return rows[name]
    values: Mapping[str, Any] = {name: values_of(rows, name)}
    try:
        return column_of(values[name], kind)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        raise RunError(f"column {name!r} is declared {kind}, and its values are none: {error}") from error
