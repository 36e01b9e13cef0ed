"""A step's rows at the end of one file that grows: each batch once, over runs and kills."""

from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from dataflow_assets.batch import Schema, arrow_schema, conform
from dataflow_assets.errors import ConfigError, RunError, UnwritableValue
from dataflow_assets.exports.file import format_of
from dataflow_assets.exports.growing_file import JOURNAL_SUFFIX, Appended, GrowingFile, growing_file
from dataflow_assets.exports.target import check_target
from dataflow_assets.finished_step import finished_step
from dataflow_assets.io.formats import Format, encode
from dataflow_assets.io.formats.spreadsheet import without_formulas
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets.step_rows import StepRows

_GROWING = ("jsonl", "csv")
_TOLD = 3


class Grown(NamedTuple):
    """What an export did: rows and batches appended, and rows that are in the file now."""

    rows: int
    batches: int
    rows_in_file: int


def append_step(
    work: PipelineWork,
    step: str | None,
    to: Path,
    with_row_id: bool = False,
    allow_partial: bool = False,
    for_spreadsheet: bool = False,
) -> Grown:
    """Appends the batches of a step (default: the last) that are not in the file yet, in partition order.

    A batch is durable in the file before the next one begins; killed at any moment, the next export goes
    on there. Raises ConfigError for a format that cannot grow or a file of other rows, RunError where a
    batch that is in the file has changed since, CorruptFile where somebody else changed the file, and
    what `export_step` raises.
    """
    format = format_of(to, for_spreadsheet)
    if format not in _GROWING:
        raise ConfigError(
            f"a {format} file cannot grow: {to}; append to .jsonl or .csv, or export it without --append"
        )
    check_target(work, to)
    finished = finished_step(work, step, allow_partial)
    head = {
        "journal": 1,
        "pipeline": work.pipeline.name,
        "step": finished.name,
        "row_id": with_row_id,
        "for_spreadsheet": for_spreadsheet,
    }
    columns = finished.columns(with_row_id)
    with growing_file(to) as file:
        file.load(head)
        return _Appending(file, finished.kept, columns, format, for_spreadsheet).run()


class _Appending:
    """One export into a file that was checked."""

    def __init__(
        self, file: GrowingFile, rows: StepRows, columns: Schema, format: Format, for_spreadsheet: bool
    ) -> None:
        self._file = file
        self._rows = rows
        self._format: Format = format
        self._for_spreadsheet = for_spreadsheet
        self._columns = columns

    def run(self) -> Grown:
        """Appends what is missing."""
        self._refuse_changed()
        if self._file.torn is not None:
            self._file.cut_torn(self._as_it_was_to_be(self._file.torn))
        there = {appended.batch for appended in self._file.batches}
        rows = batches = 0
        for key, record in self._rows.records.items():
            if key in there:
                continue
            columns = self._file.batches[0].columns if self._is_fixed else self._columns
            data = self._encoded(self._table(key, columns), first=not self._file.end)
            if data:
                self._file.append(key, record.content_hash, record.rows_out, columns, data)
                rows, batches = rows + record.rows_out, batches + 1
        self._file.close()
        return Grown(rows, batches, sum(appended.rows for appended in self._file.batches))

    @property
    def _is_fixed(self) -> bool:
        """Whether the columns are those of the file's first line."""
        return self._format == "csv" and bool(self._file.batches)

    def _refuse_changed(self) -> None:
        """Raises RunError where a batch of the file has other rows in the step now, or is not there.

        A batch that only got a column without a value, or other row ids that the file does not have, is
        the same; the journal then has its new hash, so that it is not looked at again.
        """
        changed = []
        for appended in list(self._file.batches):
            record = self._rows.records.get(appended.batch)
            if record is None:
                changed.append(f"{appended.batch} (not in the step)")
            elif record.content_hash != appended.content_hash:
                if self._as_now(appended) == self._file.bytes_of(appended):
                    self._file.renew(appended, record.content_hash)
                else:
                    changed.append(f"{appended.batch} (changed)")
        if changed:
            more = f" and {len(changed) - _TOLD} more" if len(changed) > _TOLD else ""
            raise RunError(
                f"batches that are in {self._file.path} are no longer as they were exported: "
                f"{', '.join(changed[:_TOLD])}{more}; what was appended is not taken back: move it and its "
                f"{JOURNAL_SUFFIX} away and export all again, or export without --append"
            )

    def _table(self, key: str, columns: Schema) -> pa.Table:
        """The rows of a batch in these columns. Raises RunError where they have a value for another one."""
        table = self._read(key)
        wanted = arrow_schema(columns)
        for field in table.schema if self._is_fixed else ():
            if table[field.name].null_count == table.num_rows:
                continue
            if field.name not in columns:
                what = f"a column {field.name!r}, which the first line of {self._file.path} has not"
            elif not field.equals(wanted.field(field.name), check_metadata=True):
                what = f"another type in {field.name!r} than the {columns[field.name]} of {self._file.path}"
            else:
                continue
            raise RunError(
                f"batch {key} has {what}, and a CSV file has one kind of line: append to a .jsonl file, or "
                "export all again to another"
            )
        return conform(table, columns)

    def _read(self, key: str) -> pa.Table:
        table = self._rows.folder.read(key, self._rows.part, self._rows.records[key])
        assert table is not None
        return table.select([name for name in table.column_names if name in self._columns])

    def _encoded(self, table: pa.Table, first: bool) -> bytes:
        if self._for_spreadsheet:
            table = without_formulas(table)
        data = bytes(encode(table, self._format))
        if self._format == "csv" and not first:
            return data[len(bytes(encode(table.slice(0, 0), "csv"))) :]
        return data

    def _as_now(self, appended: Appended) -> bytes | None:
        """The rows of a batch now, as they would stand in its place; None where they cannot."""
        table = self._read(appended.batch)
        more = [name for name in table.column_names if name not in appended.columns]
        if any(table[name].null_count < table.num_rows for name in more):
            return None
        try:
            return self._encoded(conform(table, appended.columns), first=not appended.begin)
        except (pa.ArrowException, UnwritableValue):
            return None

    def _as_it_was_to_be(self, torn: Appended) -> bytes | None:
        """The bytes that an export was writing when it ended; None where the batch is another one now."""
        record = self._rows.records.get(torn.batch)
        return self._as_now(torn) if record and record.content_hash == torn.content_hash else None
