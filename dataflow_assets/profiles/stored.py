"""The file of a profile, beside the batch: what was made from rows is read instead of the rows.

It is made of committed rows and can be made again from them, so it is written in place and without
waiting for the disk, and a file that is damaged, or of other rows or settings, counts as none.
"""

import contextlib
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import numpy as np
import orjson
import xxhash

from dataflow_assets.errors import StorageError
from dataflow_assets.io.storage import storage_of
from dataflow_assets.profiles.numbers import Sums
from dataflow_assets.profiles.profile import Chosen, ColumnProfile, Profile, Sample, Sampled
from dataflow_assets.profiles.sampling import Contents, Labelled, Rates, below

_VERSION = 5
_NO_TEXT = -1
_Place = tuple[str, int, int]


def write_profile(path: Path, profile: Profile, settings: str) -> None:
    """Writes the profile of a batch, in place of what is there; nothing where it cannot."""
    data = to_bytes(profile, settings)
    with contextlib.suppress(OSError, StorageError):
        if not path.parent.is_dir():
            path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        storage_of(path).keep(path, path)


def read_profile(path: Path, batch: str, content_hash: str | None, settings: str) -> Profile | None:
    """The profile of the rows with this hash, None where there is none that is whole and made alike.

    Without a hash that of whichever rows.
    """
    try:
        storage_of(path).bring(str(path))
        return from_bytes(path.read_bytes(), batch, content_hash, settings)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError):
        return None


def to_bytes(profile: Profile, settings: str) -> bytes:
    """The profile of one batch: a checksum, the length of a JSON text, that text, and the arrays it names."""
    arrays = _Written()
    head = {
        "version": _VERSION,
        "content_hash": profile.content_hash,
        "settings": settings,
        "rows": profile.rows,
        "chosen": profile.chosen and _chosen_head(profile.chosen, arrays),
        "rates": list(profile.rates),
        "sample": arrays.add(profile.sample.cheap),
        "row_ids": profile.sample.row_ids,
        "columns": [[name, _column_head(column, arrays)] for name, column in profile.columns.items()],
        "pairs": {name: _packed_labels(pair, arrays) for name, pair in profile.pairs.items()},
    }
    text = orjson.dumps(head)
    body = b"".join([len(text).to_bytes(8, "little"), text, b" " * (-len(text) % 8), *arrays.parts])
    return xxhash.xxh3_64_digest(body) + body


def from_bytes(data: bytes, batch: str, content_hash: str | None, settings: str) -> Profile | None:
    """The profile that was written; None where it is damaged, or of other rows or settings.

    Raises ValueError, KeyError and the like for bytes that something else wrote.
    """
    body = memoryview(data)[8:]
    if xxhash.xxh3_64_digest(body) != data[:8]:
        return None
    size = int.from_bytes(body[:8], "little")
    head = orjson.loads(body[8 : 8 + size])
    if [head["version"], head["settings"]] != [_VERSION, settings]:
        return None
    if content_hash not in {None, head["content_hash"]}:
        return None
    arrays = body[8 + size + -size % 8 :]
    hashes, rates = _array(arrays, head["sample"]), Rates(*head["rates"])
    ids = head["row_ids"]
    return Profile(
        head["rows"],
        rates,
        Sample(hashes, hashes[below(hashes, rates.deep)], ids, [batch] * len(ids)),
        {name: _column_of(found, arrays) for name, found in head["columns"]},
        {name: _unpacked_labels(pair, arrays) for name, pair in head["pairs"].items()},
        head["chosen"] and _chosen_of(head["chosen"], arrays),
        head["content_hash"],
    )


class _Written:
    """Arrays one after the other, each at a multiple of 8 bytes."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self._size = 0

    def add(self, array: np.ndarray) -> _Place:
        """Where it is: its type, how many values, and the first byte."""
        data = array.tobytes()
        place = (array.dtype.str, len(array), self._size)
        data += bytes(-len(data) % 8)
        self.parts.append(data)
        self._size += len(data)
        return place


def _array(arrays: memoryview, place: _Place) -> np.ndarray:
    kind, count, start = place
    return np.frombuffer(arrays, kind, count, start)


def _column_head(column: ColumnProfile, arrays: _Written) -> dict:
    sampled = column.sampled
    pieces = None
    if sampled.pieces is not None:
        lengths = np.array([_NO_TEXT if each is None else len(each) for each in sampled.pieces], np.int32)
        flat = np.array([piece for each in sampled.pieces for piece in each or ()], np.uint64)
        pieces = [arrays.add(lengths), arrays.add(flat)]
    return {
        "kind": column.kind,
        "nulls": column.nulls,
        "text_bytes": column.text_bytes,
        "sums": column.sums and list(column.sums),
        "contents": column.contents and _packed(column.contents, arrays),
        "near": column.near and _packed(column.near, arrays),
        "top": list(column.top.items()),
        "top_is_all": column.top_is_all,
        "cheap": {name: arrays.add(values) for name, values in sampled.cheap.items()},
        "deep": {name: arrays.add(values) for name, values in sampled.deep.items()},
        "labels": sampled.labels,
        "pieces": pieces,
        "hash": column.hash,
    }


def _column_of(head: Mapping, arrays: memoryview) -> ColumnProfile:
    pieces = None
    if head["pieces"] is not None:
        lengths, flat = (_array(arrays, place) for place in head["pieces"])
        listed, ends = flat.tolist(), [0, *np.cumsum(np.maximum(lengths, 0)).tolist()]
        is_there = (lengths != _NO_TEXT).tolist()
        pieces = [
            listed[start:end] if text else None
            for (start, end), text in zip(pairwise(ends), is_there, strict=True)
        ]
    return ColumnProfile(
        head["kind"],
        head["nulls"],
        head["sums"] and Sums(*head["sums"]),
        head["contents"] and _unpacked(head["contents"], arrays),
        head["near"] and _unpacked(head["near"], arrays),
        dict(head["top"]),
        head["top_is_all"],
        Sampled(
            {name: _array(arrays, place) for name, place in head["cheap"].items()},
            {name: _array(arrays, place) for name, place in head["deep"].items()},
            head["labels"],
            pieces,
        ),
        head["text_bytes"],
        head["hash"],
    )


def _chosen_head(chosen: Chosen, arrays: _Written) -> list:
    places = [None if rows is None else arrays.add(rows) for rows in (chosen.cheap, chosen.deep)]
    return [chosen.ids, list(chosen.wanted), *places]


def _chosen_of(head: list, arrays: memoryview) -> Chosen:
    cheap, deep = (place and _array(arrays, place) for place in head[2:])
    return Chosen(head[0], Rates(*head[1]), cheap, deep)


def _packed(contents: Contents, arrays: _Written) -> list:
    counts = contents.counts.astype(np.uint32)
    repeated = None if (counts == 1).all() else arrays.add(counts)
    return [contents.rate, arrays.add(contents.hashes), repeated]


def _unpacked(packed: list, arrays: memoryview) -> Contents:
    rate, place, repeated = packed
    hashes = _array(arrays, place)
    counts = np.ones(len(hashes), np.int64) if repeated is None else _array(arrays, repeated).astype(np.int64)
    return Contents(hashes, counts, rate)


def _packed_labels(pair: Labelled, arrays: _Written) -> list:
    highest = arrays.add(pair.highest) if pair.conflicting.any() else None
    return [_packed(pair.inputs, arrays), arrays.add(pair.lowest), highest]


def _unpacked_labels(packed: list, arrays: memoryview) -> Labelled:
    inputs, lowest, highest = packed
    found = _array(arrays, lowest)
    return Labelled(_unpacked(inputs, arrays), found, _array(arrays, highest) if highest else found)
