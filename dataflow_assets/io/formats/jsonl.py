"""JSON lines: one object a line, no spaces, explicit nulls, JSON columns embedded as values.

Whole columns are written by polars and read by pyarrow. The text of a JSON column is spliced into
its line and cut out again, never parsed, so that it stays as it is. Lines in which a cut would not
be certain are parsed one by one.
"""

import io
import json
import re
from collections.abc import Mapping
from itertools import groupby

import numpy as np
import orjson
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from dataflow_assets.batch import ColumnType, arrow_schema, schema_of
from dataflow_assets.errors import CorruptFile
from dataflow_assets.io.formats.columns import in_polars, table_of_rows
from dataflow_assets.io.formats.lines import (
    Cuts,
    Lines,
    Positions,
    cut,
    is_findable,
    key_of,
    spans,
    texts_between,
)

_BLOCK_BYTES = 1 << 22
_MAX_BLOCK_BYTES = 2**31 - 1
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MAYBE_BEYOND_64_BITS = re.compile(rb"[0-9]{19}")


def encode(table: pa.Table) -> pa.Buffer:
    """The lines of a table that `check_encodable` let pass."""
    return objects(table, end="\n")


def objects(table: pa.Table, end: str) -> pa.Buffer:
    """One object for each row, with `end` behind each."""
    schema = schema_of(table)
    if not table.num_rows:
        return pa.py_buffer(b"")
    if end == "\n" and "json" not in schema.values() and all(map(_PLAIN_NAME.fullmatch, schema)):
        lines = io.BytesIO()
        in_polars(table).rename(dict(zip(map(str, range(len(schema))), schema, strict=True))).write_ndjson(
            lines
        )
        return pa.py_buffer(lines.getvalue())
    columns = [column.alias(name) for column, name in zip(in_polars(table), schema, strict=True)]
    parts = [pl.lit("{")]
    for is_json, run in groupby(columns, lambda column: schema[column.name] == "json"):
        members = _json_members if is_json else _plain_members
        parts += members(list(run))
        parts.append(pl.lit(","))
    parts[-1] = pl.lit("}" + end)
    text = pl.select(pl.concat_str(*parts)).to_series().rechunk()
    return text.to_arrow(compat_level=pl.CompatLevel.oldest()).buffers()[2]


def _plain_members(columns: list[pl.Series]) -> list[pl.Expr]:
    objects = pl.struct(columns).struct.json_encode()  # the bytes of `write_ndjson`
    return [objects.str.strip_prefix("{").str.strip_suffix("}")]


def _json_members(columns: list[pl.Series]) -> list[pl.Expr]:
    parts = []
    for column in columns:
        comma = "," if parts else ""
        parts += [pl.lit(comma + key_of(column.name)), pl.lit(column.fill_null("null"))]
    return parts


def decode(data: pa.Buffer, schema: Mapping[str, ColumnType]) -> pa.Table:
    """The table of these lines; raises CorruptFile."""
    if not data.size:
        return arrow_schema(schema).empty_table()
    if bytes(data[-1:]) != b"\n":
        raise CorruptFile(f"the last line does not end: {bytes(data[-100:])!r}")
    _check_utf8(data)
    if "json" not in schema.values():
        return _read_plain(data, schema)
    return _read_with_json(Lines.of(data), schema)


def _check_utf8(data: pa.Buffer) -> None:
    whole = texts_between(np.array([0, data.size]), data)
    try:
        if data.size < 2**31:  # polars is twice as fast, but one of its texts has at most 4 GiB
            pl.Series(whole.view(pa.large_binary())).cast(pl.String)
        else:
            whole.validate(full=True)
    except (pl.exceptions.PolarsError, pa.ArrowInvalid) as error:
        raise CorruptFile("the bytes are not UTF-8") from error


def _read_plain(data: pa.Buffer, schema: Mapping[str, ColumnType], other_keys: str = "error") -> pa.Table:
    """The plain columns of these lines; `other_keys` are an error or ignored."""
    parse = pyarrow.json.ParseOptions(
        explicit_schema=arrow_schema(schema), unexpected_field_behavior=other_keys
    )
    for block_bytes in (_BLOCK_BYTES, min(data.size + 1, _MAX_BLOCK_BYTES)):
        read = pyarrow.json.ReadOptions(use_threads=False, block_size=block_bytes)
        try:
            return pyarrow.json.read_json(pa.BufferReader(data), read_options=read, parse_options=parse)
        except pa.ArrowInvalid as error:
            if "straddling" not in str(error) or block_bytes > data.size:
                raise CorruptFile(str(error)) from error
    raise CorruptFile("one line has more than 2 GiB")


def _read_with_json(lines: Lines, schema: Mapping[str, ColumnType]) -> pa.Table:
    if not all(map(is_findable, schema)):
        return _parse_each(lines, np.arange(len(lines.starts)), schema)
    cuts, certain = cut(lines, schema)
    if certain.all():
        return _read_cut(lines.data, lines, cuts, schema)
    easy, hard = np.flatnonzero(certain), np.flatnonzero(~certain)
    parsed = _parse_each(lines, hard, schema)
    if not easy.size:
        return parsed
    whole = spans(lines.starts[easy], np.append(lines.starts[1:], lines.data.size)[easy], lines.data)
    cuts = {name: (begins[easy], ends[easy]) for name, (begins, ends) in cuts.items()}
    read = _read_cut(whole.buffers()[2], lines, cuts, schema)
    return pa.concat_tables([read, parsed]).take(pa.array(np.argsort(np.append(easy, hard))))


def _read_cut(plain_data: pa.Buffer, lines: Lines, cuts: Cuts, schema: Mapping[str, ColumnType]) -> pa.Table:
    """The plain columns of `plain_data`, and the JSON texts that stand in `lines` at `cuts`."""
    table = _read_plain(
        plain_data, {name: kind for name, kind in schema.items() if kind != "json"}, other_keys="ignore"
    )
    columns = []
    for name, kind in schema.items():
        if kind != "json":
            columns.append(table[name])
            continue
        begins, ends = cuts[name]
        if len(begins) != table.num_rows:
            raise CorruptFile(f"{len(begins)} lines hold {table.num_rows} objects")
        texts = spans(begins, ends, lines.data)
        columns.append(pc.if_else(pc.equal(texts, "null"), None, texts))
    return pa.Table.from_arrays(columns, schema=arrow_schema(schema))


def _parse_each(lines: Lines, numbers: Positions, schema: Mapping[str, ColumnType]) -> pa.Table:
    """The table of the lines with these numbers, each parsed on its own."""
    view = memoryview(lines.data)
    rows: dict[int, object] = {}
    for number in numbers.tolist():
        line = bytes(view[lines.starts[number] : lines.ends[number]])
        try:
            rows[number + 1] = parsed_line(line)
        except (ValueError, RecursionError) as error:
            raise CorruptFile(f"line {number + 1} is no JSON: {error}: {line[:100]!r}") from error
    return table_of_rows(rows, schema)


def parsed_line(line: bytes) -> object:
    """The value of one line, integers of any size exact. Raises ValueError, RecursionError."""
    if _MAYBE_BEYOND_64_BITS.search(line):
        return json.loads(line)
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        return json.loads(line)
