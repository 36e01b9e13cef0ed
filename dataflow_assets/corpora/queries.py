"""Which turns of a data set are meant: by number, id, text, weight, or whether they are deleted."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from sqlalchemy import ColumnElement, or_

from dataflow_assets.corpora.tables import TEXT_COLUMNS, TURNS
from dataflow_assets.errors import ConfigError


class TurnQuery(NamedTuple):
    """Conditions that a turn fits, all of them; None or empty ones say nothing.

    `rows` are numbers of conversations, `first` and `last` a range of them, `turn_ids` ids of turns.
    `text` is found as it stands in one of `columns` (case-sensitive unless `ignore_case`). `missing` and
    `present` are columns that are null or not.
    """

    rows: Sequence[int] = ()
    first: int | None = None
    last: int | None = None
    turn_ids: Sequence[int] = ()
    text: str | None = None
    columns: Sequence[str] = TEXT_COLUMNS
    ignore_case: bool = False
    missing: Sequence[str] = ()
    present: Sequence[str] = ()
    min_weight: float | None = None
    max_weight: float | None = None
    deleted: Literal["no", "only", "too"] = "no"


def conditions(dataset_id: int, query: TurnQuery) -> list[ColumnElement[bool]]:
    """The conditions of a WHERE for the turns of a data set. Raises ConfigError for an unknown column."""
    turn = TURNS.c
    found: list[ColumnElement[bool]] = [turn.dataset_file_id == dataset_id]
    if query.rows:
        found.append(turn.row_identifier.in_(query.rows))
    if query.first is not None:
        found.append(turn.row_identifier >= query.first)
    if query.last is not None:
        found.append(turn.row_identifier <= query.last)
    if query.turn_ids:
        found.append(turn.id.in_(query.turn_ids))
    if query.text:
        found.append(or_(*(_holds(_column(name), query.text, query.ignore_case) for name in query.columns)))
    found += [_column(name).is_(None) for name in query.missing]
    found += [_column(name).is_not(None) for name in query.present]
    if query.min_weight is not None:
        found.append(turn.data_weight >= query.min_weight)
    if query.max_weight is not None:
        found.append(turn.data_weight <= query.max_weight)
    if query.deleted != "too":
        found.append(turn.is_deleted.is_(query.deleted == "only"))
    return found


def _holds(column: ColumnElement[str], text: str, ignore_case: bool) -> ColumnElement[bool]:
    if ignore_case:
        return column.icontains(text, autoescape=True)
    return column.contains(text, autoescape=True)


def _column(name: str) -> ColumnElement:
    known = [*TEXT_COLUMNS, "data_weight", "data_tools"]
    if name not in known:
        raise ConfigError(f"there is no column {name!r} of turns; expected one of {', '.join(known)}")
    return TURNS.c[name]
