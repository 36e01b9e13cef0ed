"""Keeps every edit with the batch that holds its row, where the source was cut into other batches."""

from collections.abc import Collection

from dataflow_assets.batch import ROW_ID
from dataflow_assets.failed_queue.edits import BatchEdits, Edit, StepEdits
from dataflow_assets.io.step_folder import StepFolder
from dataflow_assets.row_ids import origin_of


def move_edits(edits: StepEdits, source: StepFolder, keys: Collection[str]) -> None:
    """Moves edits whose rows are in another batch of the source now; `keys` are all of its batches.

    An edit whose row is nowhere stays where it is, for the row may come back. Each edit is in its new
    place before it leaves the old one. Raises CorruptFile, StorageError.
    """
    strays: dict[str, dict[str, Edit | None]] = {}
    for key in edits.keys():  # noqa: SIM118  it is no dict
        here = _rows_of_source(source, key) if key in keys else frozenset()
        values = edits.of(key).values
        strays[key] = {row_id: edit for row_id, edit in values.items() if origin_of(row_id) not in here}
    homes = _homes(strays, source, keys) if any(strays.values()) else {}
    for home in sorted(set(homes.values())):
        moved = {i: edit for some in strays.values() for i, edit in some.items() if homes.get(i) == home}
        known = edits.of(home)
        new = {row_id: edit for row_id, edit in moved.items() if row_id not in known.values}
        edits.commit(home, known.with_changes(new, applied=False))
    for key, some in strays.items():
        if gone := some.keys() & homes.keys():
            _leave(edits, key, gone)


def _rows_of_source(source: StepFolder, key: str) -> frozenset[str]:
    table = source.read(key) if source.record(key) is not None else None
    return frozenset() if table is None else frozenset(table[ROW_ID].to_pylist())


def _homes(
    strays: dict[str, dict[str, Edit | None]], source: StepFolder, keys: Collection[str]
) -> dict[str, str]:
    """The batch of each stray edit, by its row; rows that are nowhere have none."""
    wanted = {row_id for some in strays.values() for row_id in some}
    homes = {}
    for key in keys:
        here = _rows_of_source(source, key)
        homes.update({row_id: key for row_id in wanted if origin_of(row_id) in here})
    return homes


def _leave(edits: StepEdits, key: str, gone: Collection[str]) -> None:
    known = edits.of(key)
    rest = {row_id: edit for row_id, edit in known.values.items() if row_id not in gone}
    if rest:
        edits.commit(key, BatchEdits(rest, known.pending & rest.keys(), known.before))
    else:
        edits.folder.remove(key)
