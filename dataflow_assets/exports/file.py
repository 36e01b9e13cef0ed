"""A step's rows as one file, in partition order, batch by batch."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from dataflow_assets.batch import arrow_schema
from dataflow_assets.errors import ConfigError
from dataflow_assets.exports.row_groups import write_row_groups
from dataflow_assets.exports.target import check_target
from dataflow_assets.finished_step import finished_step
from dataflow_assets.io.atomic import make_folder, publish, storage_errors, sync_folder, temporary
from dataflow_assets.io.formats import EXTENSIONS, Format, encode
from dataflow_assets.io.formats.spreadsheet import without_formulas
from dataflow_assets.pipeline_work import PipelineWork

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
    format = format_of(to, for_spreadsheet)
    check_target(work, to)
    finished = finished_step(work, step, allow_partial)
    columns = finished.columns(with_row_id)
    tables, schema = finished.kept.tables(columns), arrow_schema(columns)
    if for_spreadsheet:
        tables = map(without_formulas, tables)
        schema = without_formulas(schema.empty_table()).schema
    return write_file(to, format, tables, schema)


def write_file(to: Path, format: Format, tables: Tables, schema: pa.Schema) -> int:
    """One file of all tables, there whole or not at all; gives how many rows they have.

    A link stays, and what it leads to is written. Raises StorageError, and UnwritableValue where the format
    cannot hold a value.
    """
    rows = 0

    def counted() -> Tables:
        nonlocal rows
        for table in tables:
            rows += table.num_rows
            yield table

    to = to.resolve() if to.is_symlink() else to
    make_folder(to.absolute().parent)
    with storage_errors(to):
        _WRITERS[format](counted(), schema, temporary(to))
    publish(to)
    sync_folder(to.absolute().parent)
    return rows


def format_of(path: Path, for_spreadsheet: bool = False) -> Format:
    """The format that the file's ending says. Raises ConfigError, also for a spreadsheet that is no CSV."""
    if for_spreadsheet and path.suffix != f".{EXTENSIONS['csv']}":
        raise ConfigError(
            f"{path} is no CSV file; --for-spreadsheet is for CSV alone, other files run nothing"
        )
    for format, extension in EXTENSIONS.items():
        if path.suffix == f".{extension}":
            return format
    known = ", ".join(f".{extension}" for extension in EXTENSIONS.values())
    raise ConfigError(f"{path} ends in {path.suffix!r}; expected one of {known}")


def _write_jsonl(tables: Tables, schema: pa.Schema, path: Path) -> None:
    with open(path, "wb") as file:
        for table in tables:
            file.write(encode(table, "jsonl"))


def _write_json(tables: Tables, schema: pa.Schema, path: Path) -> None:
    with open(path, "wb") as file:
        for piece in json_pieces(tables):
            file.write(piece)


def json_pieces(tables: Tables) -> Iterator[bytes]:
    r"""The bytes of one array; each table's own array is `[\n…\n]\n`, of which the middle is taken."""
    yield b"[\n"
    separator = b""
    for table in tables:
        if table.num_rows:
            yield separator + bytes(encode(table, "json"))[2:-3]
            separator = b",\n"
    yield b"\n]\n"


def _write_csv(tables: Tables, schema: pa.Schema, path: Path) -> None:
    header = bytes(encode(schema.empty_table(), "csv"))
    with open(path, "wb") as file:
        file.write(header)
        for table in tables:
            file.write(bytes(encode(table, "csv"))[len(header) :])


def _write_parquet(tables: Tables, schema: pa.Schema, path: Path) -> None:
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        write_row_groups(writer, tables)


def _write_pickle(tables: Tables, schema: pa.Schema, path: Path) -> None:
    path.write_bytes(encode(pa.concat_tables([schema.empty_table(), *tables]), "pickle"))


_WRITERS: dict[Format, Callable[[Tables, pa.Schema, Path], None]] = {
    "jsonl": _write_jsonl,
    "json": _write_json,
    "csv": _write_csv,
    "parquet": _write_parquet,
    "pickle": _write_pickle,
}
