"""The lives of a few rows as plain values for the page, with texts as long as there is room for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import orjson

from dataflow_assets.batch import ROW_ID
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets.report.choosing import chosen_batches, chosen_homes
from dataflow_assets.report.texts import as_text, cut, cut_pair, legible
from dataflow_assets.trace.life import Passage, ReadLimit, RowLife, lives_of

MAX_SAMPLE_BYTES = 2 * 2**20
_MAX_READ_BYTES = 2**30
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
    batches = chosen_batches(work, manifest.batches)
    lives = lives_of(work, chosen_homes(work, batches), ReadLimit(_MAX_READ_BYTES))
    return _fitting(sorted(lives, key=_order), batches)


def _fitting(lives: Sequence[RowLife], batches: list[str]) -> Samples:
    """The rows with texts as long as the page has room for; in the end, fewer rows."""
    for max_chars in _CUTS:
        rows = [_as_json(life, max_chars) for life in lives]
        if len(orjson.dumps(rows)) <= MAX_SAMPLE_BYTES:
            return Samples(rows, batches, max_chars)
    return _fitting(lives[1::2], batches)


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
        "place": legible(life.place),
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
