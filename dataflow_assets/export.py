"""A step's rows as one file, in partition order, batch by batch."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from dataflow_assets.batch import ROW_ID, Schema, arrow_schema, conform, widen_schema
from dataflow_assets.errors import ConfigError, RunError
from dataflow_assets.io.atomic import make_folder, publish, storage_errors, sync_folder, temporary
from dataflow_assets.io.formats import EXTENSIONS, Format, encode
from dataflow_assets.io.formats.spreadsheet import without_formulas
from dataflow_assets.io.objects.places import place_of
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets.status import StepStatus, step_statuses

Tables = Iterator[pa.Table]


def export_step(
    work: PipelineWork,
    step: str | None,
    to: Path,
    with_row_id: bool = False,
    allow_partial: bool = False,
    for_spreadsheet: bool = False,
) -> int:
    """Writes the kept rows of a step (default: the last) to `to`; returns how many.

    The values are exactly those of the rows, unless a CSV file is `for_spreadsheet`: texts that begin
    as a formula does then get an apostrophe. The file is there whole or not at all. Raises ConfigError
    for an unknown ending, RunError where rows of this step or one before failed, or batches are missing
    or stale, unless partial is allowed.
    """
    format = _format_of(to)
    if for_spreadsheet and format != "csv":
        raise ConfigError(f"{to} is no CSV file; --for-spreadsheet is for CSV alone, other files run nothing")
    manifest = work.manifest()
    steps = step_statuses(work, manifest.batches if manifest else [])
    name = work.pipeline.step(step).name if step else steps[-1].name
    if not allow_partial:
        _refuse_partial(work, name, steps)
    folder = work.folder_of(name)
    keys = [key for key in work.known_manifest().batches if folder.record(key) is not None]
    records = [folder.record(key) for key in keys]
    widened = widen_schema(record.schema for record in records if record is not None)
    columns: Schema = {
        column: kind or "string" for column, kind in widened.items() if with_row_id or column != ROW_ID
    }

    def tables() -> Tables:
        for table in folder.read_each(keys):
            conformed = conform(table, columns)
            yield without_formulas(conformed) if for_spreadsheet else conformed

    schema = arrow_schema(columns)
    if for_spreadsheet:
        schema = without_formulas(schema.empty_table()).schema
    make_folder(to.absolute().parent)
    with storage_errors(to):
        _WRITERS[format](tables(), schema, temporary(to))
    publish(to)
    sync_folder(to.absolute().parent)
    return sum(record.rows_out for record in records if record is not None)


def _format_of(path: Path) -> Format:
    for format, extension in EXTENSIONS.items():
        if path.suffix == f".{extension}":
            return format
    known = ", ".join(f".{extension}" for extension in EXTENSIONS.values())
    raise ConfigError(f"{path} ends in {path.suffix!r}; expected one of {known}")


def _refuse_partial(work: PipelineWork, name: str, steps: list[StepStatus]) -> None:
    on_the_way = _ancestors(work, name) | {name}
    for status in steps:
        if status.name not in on_the_way:
            continue
        missing = status.batches_total - status.batches_done
        if missing or not status.batches_total:
            raise RunError(
                f"step {status.name!r} has {status.batches_done} of {status.batches_total} batches up to "
                f"date; run `dataflow-assets run {work.pipeline.name}` first, or export with --allow-partial"
            )
        if status.failed:
            raise RunError(
                f"{status.failed} rows failed in step {status.name!r} and are not in the export; see "
                f"{place_of(work.folder_of(status.name).path / '_failed')}, or export with --allow-partial"
            )


def _ancestors(work: PipelineWork, name: str) -> set[str]:
    names = {parent for parent in work.pipeline.parents(name) if parent != "source"}
    return names.union(*(_ancestors(work, parent) for parent in names))


def _write_jsonl(tables: Tables, schema: pa.Schema, path: Path) -> None:
    with open(path, "wb") as file:
        for table in tables:
            file.write(encode(table, "jsonl"))


def _write_json(tables: Tables, schema: pa.Schema, path: Path) -> None:
    r"""One array; each batch's own array is `[\n…\n]\n`, of which the middle is taken."""
    with open(path, "wb") as file:
        file.write(b"[\n")
        separator = b""
        for table in tables:
            if table.num_rows:
                file.write(separator + bytes(encode(table, "json"))[2:-3])
                separator = b",\n"
        file.write(b"\n]\n")


def _write_csv(tables: Tables, schema: pa.Schema, path: Path) -> None:
    header = bytes(encode(schema.empty_table(), "csv"))
    with open(path, "wb") as file:
        file.write(header)
        for table in tables:
            file.write(bytes(encode(table, "csv"))[len(header) :])


def _write_parquet(tables: Tables, schema: pa.Schema, path: Path) -> None:
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for table in tables:
            writer.write_table(table)


def _write_pickle(tables: Tables, schema: pa.Schema, path: Path) -> None:
    path.write_bytes(encode(pa.concat_tables([schema.empty_table(), *tables]), "pickle"))


_WRITERS: dict[Format, Callable[[Tables, pa.Schema, Path], None]] = {
    "jsonl": _write_jsonl,
    "json": _write_json,
    "csv": _write_csv,
    "parquet": _write_parquet,
    "pickle": _write_pickle,
}
