"""Values of rows that a person put right, beside the step that reads them instead of its parents' values."""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa
import xxhash

from dataflow_assets.batch import (
    ROW_ID,
    ColumnType,
    Schema,
    column_of,
    json_text,
    rows_of,
    schema_of,
    table_of,
    values_of,
)
from dataflow_assets.errors import CorruptFile, RunError
from dataflow_assets.io.objects.places import place_of
from dataflow_assets.io.replacement import ReplacedFolder
from dataflow_assets.io.step_folder import Origin, StepFolder, read_record
from dataflow_assets.operators.operator import Outcome

EDITS = "_edits"
NO_EDITS = ""
_BEFORE = "before"
_ORIGIN = "origin"
_SCHEMA: Schema = {ROW_ID: "string", "edit": "json", "pending": "bool", _ORIGIN: "string"}
_PYTHON: dict[ColumnType, type] = {"string": str, "int64": int, "float64": float, "bool": bool}

Edit = Mapping[str, object]


@dataclass(frozen=True)
class BatchEdits:
    """The edits of one batch: for each `row_id` the new values by column.

    No values: the row was put back as it was. None: its edit was dropped. The batch was made last
    with edits of the hash `before`; those of the rows in `pending` came, or went, since. `origins` has
    the hash of the row of the source that each edit was made for; older versions kept none.
    """

    values: Mapping[str, Edit | None] = field(default_factory=dict)
    pending: frozenset[str] = frozenset()
    before: str = NO_EDITS
    origins: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def hash(self) -> str:
        """The hash of what the step reads otherwise than its parents have it; empty for nothing."""
        in_force = {row_id: dict(sorted(edit.items())) for row_id, edit in self.values.items() if edit}
        if not in_force:
            return NO_EDITS
        return xxhash.xxh3_128_hexdigest(json_text(dict(sorted(in_force.items()))).encode())

    def with_changes(
        self, changes: Mapping[str, Edit | None], applied: bool, origins: Mapping[str, str]
    ) -> "BatchEdits":
        """These edits and more, with their origins; `applied` says that the batch was made with these."""
        pending = frozenset() if applied else self.pending
        values = {row_id: edit for row_id, edit in self.values.items() if not applied or edit is not None}
        changed = {row_id for row_id, edit in changes.items() if edit != {}}
        for row_id, edit in changes.items():
            values[row_id] = None if edit is None else {**(values.get(row_id) or {}), **edit}
        before = self.hash if applied else self.before
        return BatchEdits(values, pending | changed, before, {**self.origins, **origins})


@dataclass(frozen=True)
class StepEdits:
    """The edits of one step, as committed files: one for each batch that has some."""

    folder: StepFolder

    @classmethod
    def beside(cls, step: StepFolder) -> "StepEdits":
        """Those of the step whose files are in this folder."""
        return cls(ReplacedFolder(step.path / EDITS))

    @cached_property
    def _place(self) -> str:
        return str(self.folder.path)

    def keys(self) -> list[str]:
        """The batches that have edits."""
        records = map(read_record, map(str, sorted(self.folder.commits.glob("[!.]*.json"))))
        return [record.batch for record in records if record is not None]

    def hash(self, key: str) -> str:
        """The hash of the batch's edits, empty where there are none. Raises CorruptFile."""
        if not os.path.isdir(self._place):
            return NO_EDITS
        record = self.folder.record(key)
        if record is None and self.folder.record_file(key).exists():
            raise CorruptFile(
                f"{place_of(self.folder.file_of(key))} is not what was committed: the edits of batch {key!r} "
                f"are lost; put the file back, or delete {place_of(self.folder.record_file(key))} to go on "
                "without them"
            )
        return NO_EDITS if record is None else record.fingerprint

    def of(self, key: str) -> BatchEdits:
        """The batch's edits. Raises CorruptFile."""
        self.hash(key)
        record = self.folder.record(key)
        if record is None:
            return BatchEdits()
        table = self.folder.read(key, record=record)
        assert table is not None
        rows = rows_of(table)
        values: dict[str, Edit | None] = {str(row[ROW_ID]): row["edit"] for row in rows}  # pyright: ignore[reportAssignmentType]
        pending = frozenset(str(row[ROW_ID]) for row in rows if row["pending"])
        origins = {str(row[ROW_ID]): str(hash) for row in rows if (hash := row.get(_ORIGIN)) is not None}
        return BatchEdits(values, pending, record.inputs[_BEFORE], origins)

    def commit(self, key: str, edits: BatchEdits) -> None:
        """Makes these the batch's edits, durably. Raises StorageError."""
        columns = {
            ROW_ID: list(edits.values),
            "edit": list(edits.values.values()),
            "pending": [row_id in edits.pending for row_id in edits.values],
            _ORIGIN: [edits.origins.get(row_id) for row_id in edits.values],
        }
        table = table_of(columns, _SCHEMA)
        inputs = {_BEFORE: edits.before}
        origin = Origin("put_back", "1", "", edits.hash, table.num_rows, inputs, time.time())
        self.folder.commit(self.folder.prepare(key, Outcome(table), origin))

    def applied(self, key: str, table: pa.Table) -> pa.Table:
        """The batch's rows with the edited values. Raises RunError where an edit does not fit any more."""
        if self.hash(key) == NO_EDITS:
            return table
        places = {row_id: place for place, row_id in enumerate(table[ROW_ID].to_pylist())}
        changes: dict[str, dict[int, object]] = {}
        for row_id, edit in self.of(key).values.items():
            for name, value in (edit or {}).items():
                if row_id in places:
                    changes.setdefault(name, {})[places[row_id]] = value
        for name, values in changes.items():
            table = self._with_values(key, table, name, values)
        return table

    def _with_values(self, key: str, table: pa.Table, name: str, new: Mapping[int, object]) -> pa.Table:
        schema = schema_of(table)
        try:
            values = values_of(table, name)
            for place, value in new.items():
                values[place] = fitting(value, schema[name])
        except (KeyError, ValueError) as error:
            found = error if name in schema else f"the step reads no such column, only {', '.join(schema)}"
            row_id = table[ROW_ID][next(iter(new))].as_py()
            raise RunError(
                f"{place_of(self.folder.path)}, batch {key!r}: the edit of column {name!r} of row {row_id} "
                f"does not fit what the step reads now: {found}; take it back with `put-back --drop`, "
                "then edit again"
            ) from error
        column = column_of(values, schema[name])
        return table.set_column(table.column_names.index(name), table.schema.field(name), column)


def fitting(value: object, kind: ColumnType) -> object:
    """The value as a column of this type holds it. Raises ValueError that says what was found."""
    if value is None or kind == "json":
        return value
    try:
        if kind == "float64" and type(value) is int and float(value) == value:
            return float(value)
        if type(value) is not _PYTHON[kind]:
            raise ValueError(f"found {type(value).__name__}, expected {_PYTHON[kind].__name__}")
        column_of([value], kind)
    except (pa.ArrowException, OverflowError, UnicodeEncodeError) as error:
        found = type(value).__name__
        raise ValueError(f"found a {found} that a column of type {kind} cannot hold: {error}") from error
    return value
