"""Keeps every edit with its row, where the source was cut into other batches or its rows have moved."""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

import pyarrow as pa
import xxhash

from dataflow_assets.batch import ROW_ID, rows_of
from dataflow_assets.errors import RunError
from dataflow_assets.failed_queue.edits import BatchEdits, Edit, StepEdits
from dataflow_assets.io.objects.places import place_of
from dataflow_assets.io.step_folder import StepFolder
from dataflow_assets.row_ids import origin_of


class _Place(NamedTuple):
    """A row of a batch."""

    key: str
    row_id: str


class _Kept(NamedTuple):
    """An edit, and the hash of the source's row that it was made for, where that is known and matters."""

    edit: Edit | None
    origin: str | None


def origins_of(source: StepFolder, key: str, row_ids: Iterable[str]) -> dict[str, str]:
    """The hash of the source's row that each row of a batch came from; none for rows of other batches."""
    row_ids = list(row_ids)
    hashes = _hashes(source, key, {origin_of(row_id) for row_id in row_ids})
    return {row_id: hashes[origin_of(row_id)] for row_id in row_ids if origin_of(row_id) in hashes}


def move_edits(edits: StepEdits, source: StepFolder, keys: Collection[str]) -> None:
    """Moves edits whose rows are elsewhere in the source now; `keys` are all of its batches.

    An edit whose row is nowhere stays where it is, for the row may come back. Each edit is in its new
    place before it leaves the old one. Raises CorruptFile, StorageError, and RunError where an edit's row
    has become another one and is not exactly once elsewhere.
    """
    known = {key: edits.of(key) for key in edits.keys()}  # noqa: SIM118  it is no dict
    kept = {
        _Place(key, row_id): _Kept(edit, batch.origins.get(row_id) if edit else None)
        for key, batch in known.items()
        for row_id, edit in batch.values.items()
    }
    strays = {
        place: kept[place]
        for key in known
        for place in _strays_of(source, key, {p: k for p, k in kept.items() if p.key == key}, keys)
    }
    homes = _homes(edits, strays, source, keys) if strays else {}
    order = {key: number for number, key in enumerate(keys)}
    later = any(order[home.key] > order.get(place.key, -1) for place, home in homes.items())
    for key in sorted({home.key for home in homes.values()}, key=order.__getitem__, reverse=later):
        _arrive(edits, key, homes, known)
    for key in {place.key for place in homes} - {home.key for home in homes.values()}:
        _leave(edits, key, {place.row_id for place in homes if place.key == key})


def _strays_of(
    source: StepFolder, key: str, kept: Mapping[_Place, _Kept], keys: Collection[str]
) -> list[_Place]:
    """The edits of one batch whose row is not there, or is another one."""
    wanted = {origin_of(place.row_id) for place in kept}
    here = _hashes(source, key, wanted) if key in keys else {}
    return [
        place
        for place, (_, origin) in kept.items()
        if (found := here.get(origin_of(place.row_id))) is None or (origin is not None and found != origin)
    ]


def _homes(
    edits: StepEdits, strays: Mapping[_Place, _Kept], source: StepFolder, keys: Collection[str]
) -> dict[_Place, _Place]:
    """Where each stray edit belongs; those whose rows are nowhere are left out. Raises RunError."""
    ids = {origin_of(place.row_id) for place in strays}
    wanted = {kept.origin for kept in strays.values() if kept.origin is not None}
    by_id: dict[str, tuple[str, str]] = {}
    by_hash: dict[str, list[_Place]] = {}
    for key in keys:
        for row_id, found in _hashes(source, key, None if wanted else ids).items():
            if row_id in ids:
                by_id[row_id] = key, found
            if found in wanted:
                by_hash.setdefault(found, []).append(_Place(key, row_id))
    homes = {}
    for place, (_, origin) in strays.items():
        source_id = origin_of(place.row_id)
        key, found = by_id.get(source_id, (None, None))
        same = by_hash.get(origin, []) if origin is not None else []
        if key is not None and origin in (None, found):
            homes[place] = _Place(key, place.row_id)
        elif len(same) == 1:
            homes[place] = _Place(same[0].key, same[0].row_id + place.row_id.removeprefix(source_id))
        elif key is not None:
            raise RunError(
                f"{place_of(edits.folder.path)}, batch {place.key!r}: the edit of row {place.row_id} does "
                "not fit what the source has under that id now: it is another row, and "
                f"{len(same) or 'no'} rows of the source are as the edited one was; take it back with "
                "`put-back --drop`, then edit again"
            )
    return homes


def _arrive(
    edits: StepEdits, key: str, homes: Mapping[_Place, _Place], known: Mapping[str, BatchEdits]
) -> None:
    """Adds edits to a batch, in the same commit that lets those go which left it."""
    coming = {home: place for place, home in homes.items() if home.key == key}
    rest = _without(known.get(key, BatchEdits()), {place.row_id for place in homes if place.key == key})
    new = {home.row_id: known[place.key].values[place.row_id] for home, place in coming.items()}
    new = {row_id: edit for row_id, edit in new.items() if row_id not in rest.values}
    origins = {
        home.row_id: origin
        for home, place in coming.items()
        if home.row_id in new and (origin := known[place.key].origins.get(place.row_id)) is not None
    }
    edits.commit(key, rest.with_changes(new, applied=False, origins=origins))


def _leave(edits: StepEdits, key: str, gone: Collection[str]) -> None:
    rest = _without(edits.of(key), gone)
    if rest.values:
        edits.commit(key, rest)
    else:
        edits.folder.remove(key)


def _without(batch: BatchEdits, gone: Collection[str]) -> BatchEdits:
    rest = {row_id: edit for row_id, edit in batch.values.items() if row_id not in gone}
    return BatchEdits(rest, batch.pending & rest.keys(), batch.before, batch.origins)


def _hashes(source: StepFolder, key: str, wanted: Collection[str] | None) -> dict[str, str]:
    """The hash of each of these rows of a batch of the source, or of all."""
    table = source.read(key) if source.record(key) is not None else None
    if table is None:
        return {}
    if wanted is not None:
        places = [place for place, row_id in enumerate(table[ROW_ID].to_pylist()) if row_id in wanted]
        table = table.take(pa.array(places, pa.int64()))
    return {str(row[ROW_ID]): _hash_of(row) for row in rows_of(table)}


def _hash_of(row: Mapping[str, object]) -> str:
    """The hash of a row's values; a column of nulls that came since, or a wider type, does not matter."""
    values = {name: value for name, value in sorted(row.items()) if name != ROW_ID and value is not None}
    plain = [
        (name, int(value) if isinstance(value, float) and value.is_integer() else value)
        for name, value in values.items()
    ]
    return xxhash.xxh3_128_hexdigest(repr(plain).encode("utf-8", "surrogatepass"))
