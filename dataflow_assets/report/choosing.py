"""Which rows a report shows: of a few batches, those that show most of what can become of a row."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from dataflow_assets.batch import ROW_ID
from dataflow_assets.io.commit_record import CommitRecord
from dataflow_assets.operators.operator import REJECT_REASON
from dataflow_assets.pipeline_work import SOURCE, PipelineWork
from dataflow_assets.row_ids import origin_of, origins_of
from dataflow_assets.trace.homes import Home, places_of

MAX_ROWS = 48
MAX_SET_ASIDE = 32
MAX_BATCHES = 4
MAX_READ_BYTES = 256 * 2**20
PER_REASON = 3
_PARTS = (("failed", "error_class"), ("rejected", REJECT_REASON))


def chosen_batches(work: PipelineWork, keys: Sequence[str]) -> list[str]:
    """The batches that show most reasons and error classes, else the first and the last.

    Of large batches fewer are taken, so that no more than 256 MiB are read; one at least.
    """
    shows: dict[str, set[tuple[str, str]]] = {key: set() for key in keys}
    for name in _step_names(work):
        folder = work.folder_of(name)
        for key in keys:
            record = folder.record(key)
            if record is not None:
                shows[key] |= {(name, reason) for reason in (*record.rejected, *record.failed)}
    chosen: list[str] = []
    left = set().union(*shows.values()) if shows else set()
    while left and len(chosen) < MAX_BATCHES:
        best = max(keys, key=lambda key: len(shows[key] & left))
        chosen.append(best)
        left -= shows[best]
    ends = [key for key in dict.fromkeys([*keys[:1], *keys[-1:]]) if key not in chosen]
    wanted = [*chosen, *ends][: max(2, len(chosen))]
    return sorted(_affordable(work, wanted), key=keys.index)


def _step_names(work: PipelineWork) -> list[str]:
    return [SOURCE, *(step.name for step in work.pipeline.ordered_steps)]


def _affordable(work: PipelineWork, wanted: Sequence[str]) -> list[str]:
    left, taken = MAX_READ_BYTES, []
    for key in wanted:
        records = (work.folder_of(name).record(key) for name in _step_names(work))
        left -= sum(_size(record) for record in records if record is not None)
        if taken and left < 0:
            break
        taken.append(key)
    return taken


def chosen_homes(work: PipelineWork, batches: Sequence[str]) -> dict[str, Home]:
    """The ids of the rows, and where each began: some for each reason and error class, some that were kept.

    Behind a step that moves rows those are preferred that began in the batches too; of others the life
    begins there.
    """
    begins = _Begins({row_id: key for key in batches for row_id in _source_ids(work, key)})
    moved_by = _moved_by(work)
    homes: dict[str, Home] = {}
    for name in _step_names(work):
        for key in batches:
            for row_id, home in _set_aside(work, name, key, begins, moved_by[name]):
                if len(homes) < MAX_SET_ASIDE:
                    homes.setdefault(row_id, home)
    share = max(1, (MAX_ROWS - len(homes)) // max(1, len(batches)))
    for key in batches:
        homes |= _kept(work, key, begins, moved_by, share)
    places = places_of(work, [row_id for row_id, home in homes.items() if home.step == SOURCE])
    return {row_id: home._replace(place=places.get(row_id, "")) for row_id, home in homes.items()}


def _moved_by(work: PipelineWork) -> dict[str, str | None]:
    """For the rows that come into each step: the last step above it that gave batches other rows."""
    moved_by: dict[str, str | None] = {SOURCE: None}
    for step in work.pipeline.ordered_steps:
        above = (_mover(work, parent, moved_by) for parent in work.pipeline.parents(step))
        moved_by[step.name] = next(filter(None, above), None)
    return moved_by


def _mover(work: PipelineWork, name: str, moved_by: Mapping[str, str | None]) -> str | None:
    """The same for the rows that go out of a step."""
    return name if name != SOURCE and work.pipeline.operator(name).regroups else moved_by[name]


@dataclass(frozen=True)
class _Begins:
    """The rows of the source in the sampled batches, with the batch of each."""

    batches: Mapping[str, str]

    def best(self, ids: pa.ChunkedArray, moved_by: str | None, key: str, most: int) -> dict[str, Home]:
        """Some of these ids, far from each other, with their homes."""
        known = pc.is_in(origins_of(ids), pa.array(list(self.batches), pa.large_string()))
        from_here = _spread(ids.filter(known), most)
        if from_here or moved_by is None:
            return {row_id: Home(SOURCE, self.batches[origin_of(row_id)]) for row_id in from_here}
        return {row_id: Home(moved_by, key) for row_id in _spread(ids, most) if origin_of(row_id) == row_id}


def _source_ids(work: PipelineWork, key: str) -> Iterator[str]:
    for part in ("kept", "rejected"):
        table = _rows(work, SOURCE, key, part)
        if table is not None:
            yield from table[ROW_ID].to_pylist()


def _rows(work: PipelineWork, name: str, key: str, part: str) -> pa.Table | None:
    """A part of a batch; None where it is not committed or too large to be read for a few rows."""
    folder = work.folder_of(name)
    record = folder.record(key)
    if record is None or _size(record) > MAX_READ_BYTES:
        return None
    return folder.read(key, part, record)


def _size(record: CommitRecord) -> int:
    return sum(stored.size for stored in record.files.values())


def _set_aside(
    work: PipelineWork, name: str, key: str, begins: _Begins, moved_by: str | None
) -> Iterator[tuple[str, Home]]:
    """Some rejected and failed rows of a batch for each reason and error class."""
    for part, column in _PARTS:
        table = _rows(work, name, key, part)
        if table is None:
            continue
        for reason in table[column].unique().to_pylist():
            ids = table.filter(pc.equal(table[column], reason))[ROW_ID]
            yield from begins.best(ids, moved_by, key, PER_REASON).items()


def _kept(
    work: PipelineWork, key: str, begins: _Begins, moved_by: Mapping[str, str | None], most: int
) -> dict[str, Home]:
    """Rows of the batch in the last step that has some."""
    for name in reversed(_step_names(work)):
        table = _rows(work, name, key, "kept")
        if table is not None and table.num_rows:
            return begins.best(table[ROW_ID], _mover(work, name, moved_by), key, most)
    return {}


def _spread(ids: pa.ChunkedArray, most: int) -> list[str]:
    count = len(ids)
    places = sorted({place * count // most for place in range(most)}) if count else []
    return ids.take(pa.array(places, pa.int64())).to_pylist()
