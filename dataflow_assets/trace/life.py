"""What each step made of a row: its values before and after, or why it went no further."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from dataflow_assets.batch import ROW_ID, rows_of
from dataflow_assets.errors import ConfigError
from dataflow_assets.io.commit_record import CommitRecord
from dataflow_assets.io.step_folder import PARTS
from dataflow_assets.operators.operator import FAILED_COLUMNS, REJECT_REASON
from dataflow_assets.pipeline import Step
from dataflow_assets.pipeline.problems import shown
from dataflow_assets.pipeline_work import SOURCE, PipelineWork
from dataflow_assets.row_ids import origin_of, origins_of
from dataflow_assets.trace.homes import Home, home_of, moved_to, nearest

Row = dict[str, object]
Part = Literal["kept", "rejected", "failed"]
Outcome = Literal["kept", "rejected", "failed", "split", "gone", "not_made", "not_read"]


@dataclass(frozen=True)
class Change:
    """A column whose value a step changed, brought (`before` is null) or took away (`after` is null)."""

    column: str
    before: object
    after: object


@dataclass(frozen=True)
class Passage:
    """What one step made of a row.

    `row_id` is the row's id there: that of the row which it was split from, until it was split.
    `gone`: a step that makes rows of its own, as a query does, gave none with this id. `not_made`: the
    batch is not committed. `not_read`: more was not to be read. `edits` are values that a person put
    right, which the step read. `details` are what a rejected row has beside its reason.
    """

    step: int
    name: str
    type: str
    row_id: str
    outcome: Outcome
    batch: str | None = None
    changes: list[Change] = field(default_factory=list)
    reason: str | None = None
    details: Row = field(default_factory=dict)
    error_class: str | None = None
    error_message: str | None = None
    attempts: int | None = None
    edits: Row = field(default_factory=dict)
    children: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Descendant:
    """A row that the traced one was split into, and the last step that had it."""

    row_id: str
    step: str
    outcome: Outcome
    reason: str | None = None


@dataclass(frozen=True)
class RowLife:
    """The life of one row: how it came in, and its passage through each step that it reached.

    `began` names the step that gave it its id. `unreadable` says why a line of the source is no row;
    `row` then has the line.
    """

    row_id: str
    began: str
    batch: str
    place: str
    row: Row
    unreadable: str | None
    passages: list[Passage]
    descendants: list[Descendant] = field(default_factory=list)


class ReadLimit:
    """How many bytes of rows may be read; without a number, as many as there are."""

    def __init__(self, max_bytes: float = float("inf")) -> None:
        self.left = max_bytes

    def allows(self, record: CommitRecord) -> bool:
        """Whether the files of a batch may be read still; counts them where they may."""
        size = sum(stored.size for stored in record.files.values())
        if size > self.left:
            self.left = 0
            return False
        self.left -= size
        return True


class _Found(NamedTuple):
    """A row in one part of a step's batch."""

    part: Part
    batch: str
    row: Row


@dataclass
class _AtStep:
    """The rows of the wanted origins in a step: by id, and the batches that were or were not read."""

    rows: dict[str, list[_Found]] = field(default_factory=dict)
    batches: list[str] = field(default_factory=list)
    missing: bool = False
    unread: bool = False
    edits: dict[str, Row] = field(default_factory=dict)

    def one(self, row_id: str, parts: Iterable[str] = PARTS) -> _Found | None:
        """The row with this id in one of the parts."""
        return next((found for found in self.rows.get(row_id, ()) if found.part in parts), None)


def life_of(work: PipelineWork, row_id: str) -> RowLife:
    """The life of the row with this id.

    Raises ConfigError, with ids that are near, where there is no such row; MissingBatch, CorruptFile.
    """
    (life,) = lives_of(work, {row_id: home_of(work, row_id)})
    return life


def lives_of(work: PipelineWork, homes: Mapping[str, Home], limit: ReadLimit | None = None) -> list[RowLife]:
    """The lives of rows whose homes are known; each batch is read once for all of them.

    Raises ConfigError, with ids that are near, for a child that its parent does not have.
    """
    places = _places(work, homes, limit or ReadLimit())
    return [_life(work, row_id, home, places) for row_id, home in homes.items()]


def _places(work: PipelineWork, homes: Mapping[str, Home], limit: ReadLimit) -> dict[str, _AtStep]:
    """Where rows of these origins are in each step, each batch read once."""
    origins = {origin_of(row_id) for row_id in homes}
    began: dict[str, set[str]] = {}
    for home in homes.values():
        began.setdefault(home.step, set()).add(home.batch)
    order = {key: place for place, key in enumerate(work.known_manifest().batches)}
    places = {SOURCE: _AtStep()}
    _read(work, SOURCE, began.get(SOURCE, set()), order, origins, places[SOURCE], limit)
    for step in work.pipeline.ordered_steps:
        parents = [places[name] for name in work.pipeline.parents(step)]
        keys = {key for parent in parents for key in parent.batches}
        if keys and work.pipeline.operator(step).regroups:
            keys |= set(moved_to(work, step.name, origins))
        here = places[step.name] = _AtStep(unread=any(parent.unread for parent in parents))
        _read(work, step.name, keys | began.get(step.name, set()), order, origins, here, limit)
    return places


def _read(
    work: PipelineWork,
    name: str,
    keys: set[str],
    order: Mapping[str, int],
    origins: set[str],
    here: _AtStep,
    limit: ReadLimit,
) -> None:
    folder = work.folder_of(name)
    wanted = pa.array(sorted(origins), pa.large_string())
    edits = None if name == SOURCE else work.step(work.pipeline.step(name)).edits
    for key in sorted(keys, key=order.__getitem__):
        record = folder.record(key)
        if edits is not None:
            here.edits |= {row_id: dict(edit) for row_id, edit in edits.of(key).values.items() if edit}
        if record is None:
            here.missing = True
            continue
        if not limit.allows(record):
            here.unread = True
            continue
        here.batches.append(key)
        for part in PARTS:
            table = folder.read(key, part, record)
            if table is not None:
                for row in rows_of(table.filter(pc.is_in(origins_of(table[ROW_ID]), wanted))):
                    here.rows.setdefault(str(row[ROW_ID]), []).append(_Found(part, key, row))  # pyright: ignore[reportArgumentType]


def _life(work: PipelineWork, row_id: str, home: Home, places: Mapping[str, _AtStep]) -> RowLife:
    chain = _chain(row_id)
    first = places[home.step].one(chain[0])
    if first is None and not places[home.step].unread:
        raise ConfigError(f"row {shown(chain[0])} is not in batch {home.batch!r} of {home.step!r}")
    passages: list[Passage] = []
    now: dict[str, Row] = {}
    if home.step == SOURCE and first is not None and first.part == "kept":
        now[SOURCE] = first.row
    for step in work.pipeline.ordered_steps:
        passage = _passage(work, step, chain, now, places[step.name])
        if passage is None and step.name == home.step:
            passage = Passage(
                work.pipeline.step_number(step), step.name, step.type, row_id, "kept", home.batch
            )
            now[step.name] = first.row if first is not None else {}
        if passage is not None:
            passages.append(passage)
    descendants = _descendants(row_id, places)
    is_there = descendants or any(passage.row_id == row_id for passage in passages)
    if len(chain) > 1 and not is_there and not any(here.unread for here in places.values()):
        _raise_no_child(work, row_id, places)
    row = {} if first is None else first.row
    is_line = first is not None and home.step == SOURCE and first.part == "rejected"
    unreadable = str(row["reject_detail"]) if is_line else None
    return RowLife(row_id, home.step, home.batch, home.place, row, unreadable, passages, descendants)


def _chain(row_id: str) -> list[str]:
    """The ids that a row had before it was split off, its own last: `in:7`, `in:7/0`."""
    origin = origin_of(row_id)
    numbers = row_id[len(origin) :].split("/")[1:]
    return [origin + "".join(f"/{number}" for number in numbers[:count]) for count in range(len(numbers) + 1)]


def _passage(
    work: PipelineWork, step: Step, chain: Sequence[str], now: dict[str, Row], here: _AtStep
) -> Passage | None:
    """What the step made of the row that its parents have in `now`; None where they have none."""
    before = _joined(work, step, now)
    if before is None:
        return None
    row_id = str(before[ROW_ID])
    edits = here.edits.get(row_id, {})
    before |= edits
    head = (work.pipeline.step_number(step), step.name, step.type)
    kept = next((found for each in reversed(chain) if (found := here.one(each, ("kept",)))), None)
    if kept is not None:
        now[step.name] = kept.row
        changes = changes_between(before, kept.row)
        return Passage(*head, str(kept.row[ROW_ID]), "kept", kept.batch, changes, edits=edits)
    set_aside = here.one(row_id, ("rejected", "failed"))
    if set_aside is not None:
        return _set_aside(head, row_id, set_aside, before, edits)
    children = [each for each in here.rows if each.startswith(f"{row_id}/") and here.one(each, ("kept",))]
    batch = here.rows[children[0]][0].batch if children else None
    outcome: Outcome = "split" if children else _nowhere(here)
    return Passage(*head, row_id, outcome, batch, edits=edits, children=children)


def _joined(work: PipelineWork, step: Step, now: Mapping[str, Row]) -> Row | None:
    """The row as the step reads it, of several parents each with its columns; None where no parent has it."""
    parents = [now[name] for name in work.pipeline.parents(step) if name in now]
    if len(parents) < 2:
        return dict(parents[0]) if parents else None
    taken = work.step(step).input.columns or {}
    joined = {name: now[parent].get(name) for name, parent in taken.items() if parent in now}
    return {ROW_ID: parents[0][ROW_ID], **joined}


def _nowhere(here: _AtStep) -> Outcome:
    if here.unread:
        return "not_read"
    return "not_made" if here.missing else "gone"


def _set_aside(head: tuple[int, str, str], row_id: str, found: _Found, before: Row, edits: Row) -> Passage:
    row = found.row
    if found.part == "rejected":
        details = {
            name: value
            for name, value in row.items()
            if name not in before and name != REJECT_REASON and value is not None
        }
        reason = str(row.get(REJECT_REASON))
        return Passage(*head, row_id, "rejected", found.batch, reason=reason, details=details, edits=edits)
    error_class, message, attempts = (row.get(name) for name in FAILED_COLUMNS)
    return Passage(
        *head,
        row_id,
        "failed",
        found.batch,
        error_class=str(error_class),
        error_message=str(message),
        attempts=attempts if isinstance(attempts, int) else None,
        edits=edits,
    )


def changes_between(before: Row, after: Row) -> list[Change]:
    """The columns that differ, in the order in which the row has them after, those taken away last."""
    names = [*after, *(name for name in before if name not in after)]
    pairs = ((name, before.get(name), after.get(name)) for name in names if name != ROW_ID)
    return [Change(*pair) for pair in pairs if not _same(pair[1], pair[2])]


def _same(first: object, second: object) -> bool:
    if type(first) is not type(second):
        return False
    return first == second or (first != first and second != second)  # NaN is the same as NaN


def _descendants(row_id: str, places: Mapping[str, _AtStep]) -> list[Descendant]:
    """The rows that the row was split into, each with the last step that had it."""
    last: dict[str, Descendant] = {}
    for name, here in places.items():
        for child, found in here.rows.items():
            if child.startswith(f"{row_id}/"):
                part, row = found[0].part, found[0].row
                reason = {"rejected": row.get(REJECT_REASON), "failed": row.get("error_class")}.get(part)
                last[child] = Descendant(child, name, part, None if reason is None else str(reason))
    split = {child.rpartition("/")[0] for child in last}
    return [
        Descendant(each.row_id, each.step, "split")
        if each.row_id in split and each.outcome == "kept"
        else each
        for each in last.values()
    ]


def _raise_no_child(work: PipelineWork, row_id: str, places: Mapping[str, _AtStep]) -> None:
    parent = row_id.rpartition("/")[0]
    known = {each for here in places.values() for each in here.rows if each.startswith(f"{parent}/")}
    siblings = nearest(row_id, sorted(known, key=lambda each: (len(each), each)))
    near = f"its rows there include {', '.join(map(shown, siblings))}" if siblings else "it was not split"
    raise ConfigError(
        f"pipeline {work.pipeline.name!r} has no row {shown(row_id)} of {shown(parent)}; {near}"
    )


def read_by(work: PipelineWork, step: str, row_id: str) -> Row | None:
    """The row as the step read it, e.g. the one that a duplicate repeats; None where it is nowhere."""
    try:
        home = home_of(work, row_id)
    except ConfigError:
        return None
    places = _places(work, {row_id: home}, ReadLimit())
    parents = (places[name].one(row_id, ("kept",)) for name in work.pipeline.parents(step))
    found = next((each for each in parents if each is not None), None)
    return None if found is None else found.row
