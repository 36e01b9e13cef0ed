"""The file of a profile, beside the batch: what was made from rows is read instead of the rows.

It is made of committed rows and can be made again from them, so it is written without waiting for the
disk, and a file that is damaged, or of other rows or settings, counts as none.
"""

import contextlib
import io
import os
import threading
from base64 import b64decode, b64encode
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import orjson
import pyarrow as pa

from dataflow_assets.profiles.numbers import Sums
from dataflow_assets.profiles.profile import ColumnProfile, Profile, Sample, Sampled
from dataflow_assets.profiles.sampling import Contents, Rates, below

_VERSION = 2
_HEAD = b"profile"
_CHEAP, _DEEP, _LABEL, _PIECES = "cheap", "deep", "label", "pieces"


def write_profile(path: Path, profile: Profile, content_hash: str, settings: str) -> None:
    """Writes the profile of the rows with this hash, in place of what is there; nothing where it cannot."""
    data = to_bytes(profile, content_hash, settings)
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.tmp")
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(data)
        os.replace(temporary, path)


def read_profile(path: Path, batch: str, content_hash: str, settings: str) -> Profile | None:
    """The profile of the rows with this hash, None where there is none that is whole and made alike."""
    try:
        return from_bytes(path.read_bytes(), batch, content_hash, settings)
    except (OSError, pa.ArrowException, ValueError, KeyError, TypeError, AttributeError):
        return None


def to_bytes(profile: Profile, content_hash: str, settings: str) -> bytes:
    """The profile of one batch as an Arrow file: the sample as rows, what is of all rows in its metadata."""
    arrays: list[pa.Array] = [pa.array(profile.sample.cheap)]
    places: list[list[str]] = []
    deep = np.flatnonzero(below(profile.sample.cheap, profile.rates.deep))
    size = len(profile.sample.cheap)

    def add(column: str, kind: str, name: str, array: pa.Array) -> None:
        arrays.append(array if kind == _CHEAP else _scattered(array, deep, size))
        places.append([column, kind, name])

    add("", _LABEL, "row_id", pa.array(profile.sample.row_ids, pa.large_string()))
    for name, column in profile.columns.items():
        sampled = column.sampled
        for measure, values in sampled.cheap.items():
            add(name, _CHEAP, measure, pa.array(values.astype(np.float32)))
        for measure, values in sampled.deep.items():
            add(name, _DEEP, measure, pa.array(values.astype(np.float32)))
        for label, texts in sampled.labels.items():
            add(name, _LABEL, label, pa.array(texts, pa.large_string()))
        if sampled.pieces is not None:
            add(name, _PIECES, "", pa.array(sampled.pieces, pa.large_list(pa.uint64())))
    head = {
        "version": _VERSION,
        "content_hash": content_hash,
        "settings": settings,
        "rows": profile.rows,
        "rates": list(profile.rates),
        "places": places,
        "columns": [[name, _column_head(column)] for name, column in profile.columns.items()],
        "pairs": {name: _packed(contents) for name, contents in profile.pairs.items()},
    }
    schema = pa.schema(
        [pa.field(str(number), array.type) for number, array in enumerate(arrays)],
        metadata={_HEAD: orjson.dumps(head)},
    )
    sink = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(sink, schema, options=options) as writer:
        writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
    return sink.getvalue()


def from_bytes(data: bytes, batch: str, content_hash: str, settings: str) -> Profile | None:
    """The profile that was written. Raises ArrowException, ValueError and the like for damaged bytes."""
    table = pa.ipc.open_file(pa.BufferReader(data)).read_all()
    head = orjson.loads((table.schema.metadata or {})[_HEAD])
    if [head["version"], head["content_hash"], head["settings"]] != [_VERSION, content_hash, settings]:
        return None
    hashes = table.column(0).to_numpy()
    row_ids = table.column(1)
    is_deep = row_ids.is_valid()
    columns = {name: _column_of(found) for name, found in head["columns"]}
    for number, (name, kind, measure) in enumerate(head["places"][1:], start=2):
        column = table.column(number)
        sampled = columns[name].sampled
        if kind == _CHEAP:
            sampled.cheap[measure] = column.to_numpy()
        elif kind == _DEEP:
            sampled.deep[measure] = column.filter(is_deep).to_numpy()
        elif kind == _LABEL:
            sampled.labels[measure] = column.filter(is_deep).to_pylist()
        else:
            sampled.pieces = column.filter(is_deep).to_pylist()
    ids = row_ids.filter(is_deep).to_pylist()
    sample = Sample(hashes, hashes[is_deep.to_numpy()], ids, [batch] * len(ids))
    pairs = {name: _unpacked(contents) for name, contents in head["pairs"].items()}
    return Profile(head["rows"], Rates(*head["rates"]), sample, columns, pairs)


def _scattered(array: pa.Array, places: np.ndarray, size: int) -> pa.Array:
    if len(array) == size:
        return array
    indices = np.full(size, -1, np.int64)
    indices[places] = np.arange(len(array))
    return array.take(pa.array(indices, mask=indices < 0))


def _column_head(column: ColumnProfile) -> dict:
    return {
        "kind": column.kind,
        "nulls": column.nulls,
        "sums": column.sums and list(column.sums),
        "contents": column.contents and _packed(column.contents),
        "near": column.near and _packed(column.near),
        "top": list(column.top.items()),
        "top_is_all": column.top_is_all,
    }


def _column_of(head: Mapping) -> ColumnProfile:
    return ColumnProfile(
        head["kind"],
        head["nulls"],
        head["sums"] and Sums(*head["sums"]),
        head["contents"] and _unpacked(head["contents"]),
        head["near"] and _unpacked(head["near"]),
        dict(head["top"]),
        head["top_is_all"],
        Sampled(),
    )


def _packed(contents: Contents) -> list:
    counts = contents.counts.astype(np.uint32)
    repeated = "" if (counts == 1).all() else b64encode(counts.tobytes()).decode()
    return [contents.rate, b64encode(contents.hashes.tobytes()).decode(), repeated]


def _unpacked(packed: list) -> Contents:
    rate, hashes, repeated = packed
    found = np.frombuffer(b64decode(hashes), np.uint64)
    counts = np.frombuffer(b64decode(repeated), np.uint32) if repeated else np.ones(len(found), np.uint32)
    return Contents(found, counts.astype(np.int64), rate)
