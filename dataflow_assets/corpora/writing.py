"""The only way in which turns are changed: by the id of a row that is there, or not at all."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row, bindparam, literal_column, select, update

from dataflow_assets.corpora.tables import DATA_COLUMNS, TURNS
from dataflow_assets.corpora.turns import is_exact_float, storable
from dataflow_assets.errors import UnguardedWrite

Change = Mapping[str, object]
_KEYS = {"id", "revision"}
_MOST_IDS = 400


def write_back(connection: Connection, dataset_id: int, changes: Sequence[Change]) -> None:
    """Changes columns of turns, each change with the `id` of its turn; all of them or, when it raises, none.

    With a `revision` the turn must be as it was when that was read. A change never makes a row. Raises
    UnguardedWrite: for a missing, repeated or unknown id, a turn of another data set, and a turn that
    was changed since; the caller's transaction is then undone.
    """
    if not changes:
        return
    names = set(changes[0])
    _check(changes, names)
    turn = TURNS.c
    one = update(TURNS).where(turn.id == bindparam("the_id"), turn.dataset_file_id == dataset_id)
    if "revision" in names:
        one = one.where(turn.revision == bindparam("the_revision"))
    one = one.values({turn[name]: bindparam(f"new_{name}") for name in sorted(names - _KEYS)})
    one = one.values(revision=turn.revision + literal_column("1"))
    rows = [_parameters(change) for change in sorted(changes, key=_id_of)]
    done = connection.execute(one, rows).rowcount
    if done != len(rows):
        raise UnguardedWrite(_unmatched(connection, dataset_id, changes, done))


def write_back_as_read(
    connection: Connection, dataset_id: int, changes: Sequence[Change], read: Mapping[int, Change]
) -> int:
    """Changes columns of turns that are still as they were `read`, by id; how many were not so already.

    Columns that were not read are not compared. Raises UnguardedWrite as `write_back` does, and for a turn
    that is neither as it was read nor as it is to be: nothing was changed.
    """
    if not changes:
        return 0
    _check(changes, set(changes[0]))
    names = [name for name in changes[0] if name not in _KEYS]
    there = _turns_of(connection, changes)
    left: list[Change] = []
    for change in changes:
        id = _id_of(change)
        found = there.get(id)
        if found is None or found.dataset_file_id != dataset_id:
            raise UnguardedWrite(_unmatched(connection, dataset_id, changes, 0))
        now = found._mapping
        if all(now[name] == change[name] for name in names):
            continue
        before = read.get(id, {})
        if other := [name for name in names if name in before and now[name] != before[name]]:
            raise UnguardedWrite(
                f"{other[0]} of turn {id} was changed by another since the run read it; nothing of its batch "
                "was changed: run the pipeline again, then write back"
            )
        left.append({**change, "revision": found.revision})
    write_back(connection, dataset_id, left)
    return len(left)


def _turns_of(connection: Connection, changes: Sequence[Change]) -> dict[int, Row[Any]]:
    """The turns of these changes that are there, by id."""
    ids = [_id_of(change) for change in changes]
    found: dict[int, Row[Any]] = {}
    for start in range(0, len(ids), _MOST_IDS):
        some = ids[start : start + _MOST_IDS]
        found |= {row.id: row for row in connection.execute(select(TURNS).where(TURNS.c.id.in_(some)))}
    return found


def _id_of(change: Change) -> int:
    id = change["id"]
    assert isinstance(id, int)
    return id


def _parameters(change: Change) -> dict[str, object]:
    return {f"the_{name}" if name in _KEYS else f"new_{name}": value for name, value in change.items()}


def _check(changes: Sequence[Change], names: set[str]) -> None:
    """Raises UnguardedWrite before anything is written."""
    unknown = sorted(names - _KEYS - set(DATA_COLUMNS))
    if unknown or not names - _KEYS:
        raise UnguardedWrite(
            f"a write to turns names {', '.join(unknown) or 'no column'}; expected some of "
            f"{', '.join(DATA_COLUMNS)}: nothing was changed"
        )
    seen: set[object] = set()
    for change in changes:
        id = change.get("id")
        if not isinstance(id, int) or isinstance(id, bool):
            raise UnguardedWrite(
                f"a write to turns has {'no id' if id is None else f'the id {id!r}'}; expected the id of the "
                "turn that it changes, for rows are never added in this way: nothing was changed"
            )
        if id in seen:
            raise UnguardedWrite(f"a write to turns changes the turn {id} twice: nothing was changed")
        if set(change) != names:
            raise UnguardedWrite(f"a write to turns has other columns for turn {id}: nothing was changed")
        seen.add(id)
        if (reason := unfit(change)) is not None:
            raise UnguardedWrite(f"a write to turn {id}: {reason}; nothing was changed")


def unfit(change: Change) -> str | None:
    """Why a value of a change cannot be in its column on every database, or None."""
    for name in DATA_COLUMNS:
        value = change.get(name)
        if value is None:
            continue
        if name == "data_weight":
            if not is_exact_float(value):
                return f"{name} is {value!r}, expected a finite float"
        elif not storable(value):
            what = "is not text" if not isinstance(value, str) else "holds NUL or half a surrogate pair"
            return f"{name} {what}, which its column cannot hold"
    return None


def _unmatched(connection: Connection, dataset_id: int, changes: Sequence[Change], done: int) -> str:
    there = _turns_of(connection, changes)
    ids = [_id_of(change) for change in changes]
    strange = [id for id in ids if id not in there or there[id].dataset_file_id != dataset_id]
    if strange:
        return (
            f"the turn {strange[0]} is not in this data set ({len(strange)} of {len(ids)} are not); expected "
            "ids that are there, for rows are never added in this way: nothing was changed"
        )
    return (
        f"{len(ids) - done} of {len(ids)} turns were changed by another since they were read; nothing was "
        "changed: run the same command again"
    )
