"""What a person is shown of a batch: a few of its rows as Markdown in which the data stays data."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from dataflow_assets.batch import ROW_ID, places_where
from dataflow_assets.io.preview import markdown_rows, markdown_table
from dataflow_assets.operators.operator import FAILED_COLUMNS, REJECT_REASON, Outcome
from dataflow_assets.row_ids import parents_of

PREVIEW_ROWS = 5
_EXAMPLES = 3
_EXAMPLE_COLUMNS = 6
_CHANGES = 5
# Rows further behind are not compared, so that the cost does not grow with the batch.
_COMPARED_ROWS = 1_000
_SEARCHED_ROWS = 20_000
_BEFORE_THE_CHANGE_CHARS = 30
_BLOCK_CHARS = 4_096
_SHOWN_CHARS = 400
# A page shows them as one or none, and they may be what was changed.
_SPACES = re.compile(r"  +|^ | $")
_NOT_THERE = "—"


class Samples(NamedTuple):
    """Markdown tables of a batch, empty where there is nothing to show.

    `preview` has the first kept rows, `changed` values before and after, `rejected` and `failed`
    rows that did not go on.
    """

    preview: str = ""
    changed: str = ""
    rejected: str = ""
    failed: str = ""


class Changed(NamedTuple):
    """One value that a step changed; `before` is that of the parent of a split row.

    `is_new` says that the column was not there before.
    """

    row_id: str
    column: str
    before: object
    after: object
    is_new: bool = False


def samples_of(outcome: Outcome, before: pa.Table | None = None) -> Samples:
    """The tables of a batch whose rows are at hand; `before` are the rows that came in."""
    return Samples(
        markdown_table(_first(outcome.kept, PREVIEW_ROWS)),
        "" if before is None else _changes_table(changed_values(before, outcome.kept)),
        _examples(outcome.rejected, REJECT_REASON, [REJECT_REASON, ROW_ID]),
        _examples(outcome.failed, "error_class", [*FAILED_COLUMNS, ROW_ID]),
    )


def changed_values(before: pa.Table, after: pa.Table) -> list[Changed]:
    """The first five values that differ among the first thousand rows, by row.

    A column that was not there before counts as changed where it has a value.
    """
    after = after.slice(0, _COMPARED_ROWS)
    places = _places(before, after)
    found = [
        (position, number, name)
        for number, name in enumerate(after.column_names)
        if name != ROW_ID
        for position in _positions(before, after, name, places)[:_CHANGES]
    ]
    return [_changed(before, after, places, place, name) for place, _, name in sorted(found)[:_CHANGES]]


def counts_table(counts: Mapping[str, int], rows_in: int, reason: str) -> str:
    """How many rows did not go on for which reason, the most frequent first."""
    rows = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    lines = [(name, f"{count:,}", f"{count / rows_in:.1%}" if rows_in else "") for name, count in rows]
    return markdown_rows((reason, "rows", "share"), lines)


def _first(table: pa.Table, rows: int) -> pa.Table:
    """The first rows, copied: a slice would keep all of the batch in memory."""
    return table.take(pa.array(range(min(rows, table.num_rows)), pa.int64()))


def _places(before: pa.Table, after: pa.Table) -> pa.Array | None:
    """Where each row of `after` was in `before`, null where it is not found; None where all are in place."""
    ids = after[ROW_ID]
    if before[ROW_ID].slice(0, len(ids)).equals(ids):
        return None
    known = before[ROW_ID].slice(0, _SEARCHED_ROWS).combine_chunks()
    places = pc.index_in(ids, value_set=known)
    if places.null_count:
        places = pc.coalesce(places, pc.index_in(parents_of(ids), value_set=known))
    return places.combine_chunks() if isinstance(places, pa.ChunkedArray) else places


def _positions(before: pa.Table, after: pa.Table, name: str, places: pa.Array | None) -> list[int]:
    """The rows of `after` in which the column has another value than before."""
    new = after[name]
    if before.schema.get_field_index(name) < 0:
        return places_where(new.is_valid()).to_pylist()
    old = before[name].slice(0, len(new)) if places is None else before[name].take(places)
    if old.equals(new):
        return []
    if old.type != new.type:
        return places_where(new.is_valid()).to_pylist()
    both_nan = pc.and_(old.is_null(nan_is_null=True), new.is_null(nan_is_null=True))
    differs = pc.and_not(pc.fill_null(pc.not_equal(old, new), False), both_nan)
    differs = pc.or_(differs, pc.xor(old.is_null(), new.is_null()))
    if places is not None:
        differs = pc.and_(differs, places.is_valid())
    return places_where(differs).to_pylist()


def _changed(before: pa.Table, after: pa.Table, places: pa.Array | None, position: int, name: str) -> Changed:
    row_id = str(after[ROW_ID][position].as_py())
    new = after[name][position].as_py()
    if name not in before.column_names:
        return Changed(row_id, name, None, new, is_new=True)
    place = position if places is None else places[position].as_py()
    return Changed(row_id, name, None if place is None else before[name][place].as_py(), new)


def _changes_table(changes: Sequence[Changed]) -> str:
    if not changes:
        return ""
    lines = [(each.row_id, each.column, *_shown_pair(each)) for each in changes]
    return markdown_rows((ROW_ID, "column", "before", "after"), lines)


def _shown_pair(changed: Changed) -> tuple[object, object]:
    """Both values; of long texts the part in which they begin to differ."""
    before, after = changed.before, changed.after
    if changed.is_new:
        return _NOT_THERE, after
    if not (isinstance(before, str) and isinstance(after, str)) or before == after:
        return before, after
    before, after = (_SPACES.sub(lambda found: "␣" * len(found[0]), text) for text in _parts(before, after))
    return before, after


def _parts(before: str, after: str) -> tuple[str, str]:
    start = 0
    while before[start : start + _BLOCK_CHARS] == after[start : start + _BLOCK_CHARS]:
        start += _BLOCK_CHARS
    end = min(len(before), len(after))
    start = next((place for place in range(start, end) if before[place] != after[place]), end)
    start -= _BEFORE_THE_CHANGE_CHARS
    if start <= 0:
        return before[:_SHOWN_CHARS], after[:_SHOWN_CHARS]
    return f"…{before[start : start + _SHOWN_CHARS]}", f"…{after[start : start + _SHOWN_CHARS]}"


def _examples(rows: pa.Table | None, reason: str, first_columns: Sequence[str]) -> str:
    """Three rows, of several reasons where there are several; the columns that say why come first."""
    if rows is None or not rows.num_rows:
        return ""
    names = [name for name in first_columns if name in rows.column_names]
    names += [name for name in rows.column_names if name not in names]
    reasons = rows[reason].unique().drop_null()[:_EXAMPLES]
    first_of_each = [pc.index(rows[reason], one).as_py() for one in reasons]
    places = list(dict.fromkeys([*first_of_each, *range(min(_EXAMPLES, rows.num_rows))]))
    chosen = pa.array(sorted(places[:_EXAMPLES]), pa.int64())
    return markdown_table(rows.select(names[:_EXAMPLE_COLUMNS]).take(chosen))
