"""The JSONL file in which a person gets failed rows, edits them, and gives them back."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from dataflow_assets.batch import ROW_ID, Schema, conform, schema_of, widen_schema
from dataflow_assets.errors import ConfigError
from dataflow_assets.exports.target import check_not_read
from dataflow_assets.failed_queue.selection import FailedRows, Which, failed_rows
from dataflow_assets.io.atomic import make_folder, write_atomically
from dataflow_assets.io.formats import encode
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets.sources.json_line import NotJson, exact_value_of_bytes, not_a_row

_SUFFIX = ".jsonl"


def export_failed(work: PipelineWork, which: Which, to: Path) -> int:
    """Writes the failed rows that are meant, with all columns, to `to`; returns how many.

    The file is there whole or not at all. Raises ConfigError for another ending, over what the pipeline
    reads, and where rows of several steps are meant, UnwritableValue for NaN and infinity, StorageError.
    """
    if to.suffix != _SUFFIX:
        raise ConfigError(f"{to} ends in {to.suffix!r}; failed rows are written as {_SUFFIX}: rename it")
    check_not_read(work, to)
    found = list(failed_rows(work, which))
    steps = list(dict.fromkeys(rows.step for rows in found))
    if len(steps) > 1:
        raise ConfigError(
            f"rows failed in the steps {', '.join(steps)}, which have columns of their own; choose one "
            "with --step"
        )
    table = _together(found)
    make_folder(to.absolute().parent)
    write_atomically(to, b"" if table is None else bytes(encode(table, "jsonl")))
    return 0 if table is None else table.num_rows


def _together(found: Sequence[FailedRows]) -> pa.Table | None:
    if not found:
        return None
    widened = widen_schema(schema_of(rows.table) for rows in found)
    schema: Schema = {name: kind or "string" for name, kind in widened.items()}
    return pa.concat_tables([conform(rows.table, schema) for rows in found])


def read_rows(file: Path) -> dict[str, Mapping[str, object]]:
    """The rows of the file by `row_id`. Raises ConfigError with every line that is no such row."""
    try:
        lines = file.read_bytes().removeprefix(b"\xef\xbb\xbf").split(b"\n")
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}") from error
    rows: dict[str, Mapping[str, object]] = {}
    problems = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            problem = _add_row(rows, line)
            problems += [f"{file}, line {number}: {problem}"] if problem else []
    if not rows and not problems:
        problems.append(f"{file} holds no rows; `dataflow-assets failed PIPELINE --to FILE` writes some")
    if problems:
        raise ConfigError(problems)
    return rows


def _add_row(rows: dict[str, Mapping[str, object]], line: bytes) -> str | None:
    """Adds the row of a line; what is wrong with it, else None."""
    try:
        row = exact_value_of_bytes(line)
    except NotJson as error:
        return str(error)
    if (problem := not_a_row(row)) is not None:
        return problem
    assert isinstance(row, dict)
    row_id = row.get(ROW_ID)
    if not isinstance(row_id, str):
        return f"{ROW_ID} is {row_id!r:.100}; expected the one that the row was exported with"
    if row_id in rows:
        return f"row {row_id} is there twice"
    rows[row_id] = row
    return None


def as_json(value: object) -> str:
    """The value as ASCII JSON, so that no character of the data reaches a terminal; NaN becomes text."""
    return json.dumps(_plain(value), indent=2)


def _plain(value: object) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    return list(map(_plain, value)) if isinstance(value, list | tuple) else value
