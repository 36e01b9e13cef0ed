"""A few rows of a few batches, with their lives through all steps: chosen by what became of them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from dataflow_assets.batch import ROW_ID
from dataflow_assets.io.commit_record import CommitRecord
from dataflow_assets.operators.operator import REJECT_REASON
from dataflow_assets.pipeline_work import SOURCE, PipelineWork
from dataflow_assets.report.texts import as_text, cut, cut_pair
from dataflow_assets.trace.homes import Home, origin_of, places_of
from dataflow_assets.trace.life import Passage, ReadLimit, RowLife, lives_of

MAX_ROWS = 48
MAX_BATCHES = 4
MAX_READ_BYTES = 256 * 2**20
_MOST_OF_ONE_BATCH = 2**30
MAX_SAMPLE_BYTES = 2 * 2**20
PER_REASON = 3
MAX_SET_ASIDE = 32
_CUTS = (2000, 600, 200, 60)


@dataclass(frozen=True)
class Samples:
    """Rows for the page as plain JSON values; texts are cut at `max_chars` characters."""

    rows: list[dict]
    batches: list[str]
    max_chars: int


def samples_of(work: PipelineWork) -> Samples:
    """Rows that were kept, rejected, failed or unreadable, in every step, from at most a few batches.

    Raises CorruptFile, StorageError.
    """
    manifest = work.manifest()
    if manifest is None:
        return Samples([], [], _CUTS[0])
    batches = _batches(work, manifest.batches)
    homes = _homes(work, batches)
    lives = lives_of(work, homes, ReadLimit(_MOST_OF_ONE_BATCH))
    return _fitting(sorted(lives, key=_order), batches)


def _fitting(lives: Sequence[RowLife], batches: list[str]) -> Samples:
    """The rows with texts as long as the page has room for; in the end, fewer rows."""
    for max_chars in _CUTS:
        rows = [_as_json(life, max_chars) for life in lives]
        if len(orjson.dumps(rows)) <= MAX_SAMPLE_BYTES:
            return Samples(rows, batches, max_chars)
    return _fitting(lives[1::2], batches)


def _batches(work: PipelineWork, keys: Sequence[str]) -> list[str]:
    """The batches that rows are taken from: those that show most reasons and error classes, and the ends."""
    shows: dict[str, set[tuple[str, str]]] = {key: set() for key in keys}
    for name in (SOURCE, *(step.name for step in work.pipeline.ordered_steps)):
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


def _affordable(work: PipelineWork, wanted: Sequence[str]) -> list[str]:
    """As many of the batches as are small enough together in all steps; one at least."""
    left, taken = MAX_READ_BYTES, []
    for key in wanted:
        folders = (work.layout.step(number) for number in range(len(work.pipeline.steps) + 1))
        records = (folder.record(key) for folder in folders)
        left -= sum(_size(record) for record in records if record is not None)
        if taken and left < 0:
            break
        taken.append(key)
    return taken


def _homes(work: PipelineWork, batches: Sequence[str]) -> dict[str, Home]:
    """The ids of the sampled rows, and where each began."""
    set_aside: dict[str, Home] = {}
    kept: dict[str, Home] = {}
    begins = {row_id: key for key in batches for row_id in _ids(work, SOURCE, key)}
    for key in batches:
        for name in (SOURCE, *(step.name for step in work.pipeline.ordered_steps)):
            for row_id in _examples(work, name, key):
                begin = begins.get(origin_of(row_id))
                if begin is not None and len(set_aside) < MAX_SET_ASIDE:
                    set_aside.setdefault(row_id, Home(SOURCE, begin))
    for key in batches:
        share = max(1, (MAX_ROWS - len(set_aside)) // max(1, len(batches)))
        kept |= _that_came_through(work, key, begins, share)
    homes = {**set_aside, **kept}
    places = places_of(work, [row_id for row_id, home in homes.items() if home.step == SOURCE])
    return {row_id: home._replace(place=places.get(row_id, "")) for row_id, home in homes.items()}


def _ids(work: PipelineWork, name: str, key: str) -> set[str]:
    folder = work.folder_of(name)
    record = folder.record(key)
    if record is None or not _is_readable(record):
        return set()
    tables = (folder.read(key, part, record) for part in ("kept", "rejected"))
    return {row_id for table in tables if table is not None for row_id in table[ROW_ID].to_pylist()}


def _is_readable(record: CommitRecord) -> bool:
    return _size(record) <= MAX_READ_BYTES


def _size(record: CommitRecord) -> int:
    return sum(stored.size for stored in record.files.values())


def _examples(work: PipelineWork, name: str, key: str) -> Iterator[str]:
    """Some rejected and failed rows of a batch for each reason and error class."""
    folder = work.folder_of(name)
    record = folder.record(key)
    if record is None or not _is_readable(record):
        return
    for part, column in (("failed", "error_class"), ("rejected", REJECT_REASON)):
        table = folder.read(key, part, record)
        for reason in (record.failed if part == "failed" else record.rejected) if table is not None else ():
            assert table is not None
            yield from table.filter(pc.equal(table[column], reason))[ROW_ID][:PER_REASON].to_pylist()


def _that_came_through(
    work: PipelineWork, key: str, begins: Mapping[str, str], wanted: int
) -> dict[str, Home]:
    """Rows of the batch in the last step that has some, far from each other."""
    made_by = SOURCE
    for step in work.pipeline.ordered_steps:
        made_by = step.name if work.pipeline.operator(step).regroups else made_by
    for name in [step.name for step in reversed(work.pipeline.ordered_steps)] + [SOURCE]:
        folder = work.folder_of(name)
        record = folder.record(key)
        if record is None or not record.rows_out or not _is_readable(record):
            continue
        table = folder.read(key, record=record)
        assert table is not None
        ids = _spread(table[ROW_ID], wanted)
        return {
            row_id: Home(SOURCE, begin) if (begin := begins.get(origin_of(row_id))) else Home(made_by, key)
            for row_id in ids
            if origin_of(row_id) in begins or (made_by != SOURCE and origin_of(row_id) == row_id)
        }
    return {}


def _spread(ids: pa.ChunkedArray, wanted: int) -> list[str]:
    count = len(ids)
    places = sorted({place * count // wanted for place in range(wanted)}) if count else []
    return ids.take(pa.array(places, pa.int64())).to_pylist()


_ENDINGS = ("failed", "unreadable", "rejected", "split", "gone", "not_made", "not_read", "kept")


def _order(life: RowLife) -> int:
    return _ENDINGS.index(_ending(life))


def _ending(life: RowLife) -> str:
    if life.unreadable is not None:
        return "unreadable"
    endings = {passage.outcome for passage in life.passages} or {"kept"}
    return next(each for each in _ENDINGS if each in endings)


def _as_json(life: RowLife, max_chars: int) -> dict:
    last = next((each for each in life.passages if each.outcome == _ending(life)), None)
    why = last.reason or last.error_class if last is not None else None
    return {
        "id": life.row_id,
        "batch": life.batch,
        "place": life.place,
        "began": life.began,
        "ending": _ending(life),
        "at": last.name if last is not None and _ending(life) != "kept" else None,
        "why": cut(why or life.unreadable, 300),
        "row": _cells(life.row, max_chars),
        "passages": [_passage(passage, max_chars) for passage in life.passages],
    }


def _passage(passage: Passage, max_chars: int) -> dict:
    return {
        "step": passage.name,
        "id": passage.row_id,
        "outcome": passage.outcome,
        "batch": passage.batch,
        "reason": cut(passage.reason, 300),
        "details": _cells(passage.details, max_chars),
        "error": cut(passage.error_class, 300),
        "message": cut(passage.error_message, max_chars),
        "attempts": passage.attempts,
        "edits": _cells(passage.edits, max_chars),
        "children": passage.children[:20],
        "more_children": max(0, len(passage.children) - 20),
        "changes": [
            [cut(change.column, 100), *cut_pair(as_text(change.before), as_text(change.after), max_chars)]
            for change in passage.changes
        ],
    }


def _cells(row: Mapping[str, object], max_chars: int) -> list[list[str | None]]:
    return [[cut(name, 100), cut(as_text(value), max_chars)] for name, value in row.items() if name != ROW_ID]
