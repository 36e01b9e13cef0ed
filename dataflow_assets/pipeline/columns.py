"""Follows the columns along the graph of a pipeline before any row is read.

Of each column it is known which step touched it last. A step with several parents gets the inner
join of their rows on `row_id`, each column from the parent in which it was changed last; two
branches that both changed it are a mistake.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from dataflow_assets.batch import ROW_ID, ColumnType, Schema
from dataflow_assets.errors import ConfigError, Raised, said_by
from dataflow_assets.expectations.needs import problems_of_rules
from dataflow_assets.operators.operator import RESERVED_COLUMNS, Operator
from dataflow_assets.pipeline import Pipeline
from dataflow_assets.pipeline.graph import SOURCE
from dataflow_assets.pipeline.problems import listed, near_names, printable, shortened, shown

JoinColumns = dict[str, str]
_PROBE = "\0any other column"
_ROW_ID_MEANING = "The row's name, the same in all steps: `<source>:<number>`; parts of a row add `/<n>`."


def check_columns(pipeline: Pipeline, source_schema: Mapping[str, ColumnType]) -> dict[str, Schema]:
    """The columns after the source and after each step, `row_id` among them.

    Raises ConfigError with one line for each column that a step reads and nobody brings, each
    reserved or foreign column that a step would overwrite, each join that cannot be made, and each
    column that a check looks at and the step's output lacks.
    """
    walk = _walked(pipeline, source_schema)
    return {name: dict(columns.schema) for name, columns in walk.columns.items()}


def join_plan(pipeline: Pipeline, source_schema: Mapping[str, ColumnType]) -> dict[str, JoinColumns]:
    """For each step with several parents, the parent that each of its input columns is taken from.

    The columns are in their order. Raises ConfigError as `check_columns` does.
    """
    return _walked(pipeline, source_schema).joins


class ColumnOrigins(NamedTuple):
    """Of each column of an asset's rows: its type, its meaning, and the columns that it is made of.

    `made_of` has pairs of a step (or `source`) and a column; it is empty where an operator does not
    say what it reads. `meanings` are sentences in Markdown.
    """

    schema: Schema
    meanings: dict[str, str]
    made_of: dict[str, list[tuple[str, str]]]


def column_origins(pipeline: Pipeline, source_schema: Mapping[str, ColumnType]) -> dict[str, ColumnOrigins]:
    """The columns after the source and after each step. Raises ConfigError as `check_columns` does."""
    walk = _walked(pipeline, source_schema)
    source = dict(walk.columns[SOURCE].schema)
    found = {SOURCE: ColumnOrigins(source, source_meanings(source), {})}
    for step in pipeline.ordered_steps:
        parents = pipeline.parents(step)
        came_from = walk.joins.get(step.name) or dict.fromkeys(found[parents[0]].schema, parents[0])
        found[step.name] = _origins(walk, step.name, came_from, found)
    return found


def source_meanings(columns: Iterable[str]) -> dict[str, str]:
    """What is known of the columns of the source."""
    return dict.fromkeys(columns, "As it was read from the source.") | {ROW_ID: _ROW_ID_MEANING}


def _origins(
    walk: "_Walk", step: str, came_from: Mapping[str, str], found: Mapping[str, ColumnOrigins]
) -> ColumnOrigins:
    operator, columns = walk.pipeline.operator(step), walk.columns[step]
    reads = [(came_from[name], name) for name in operator.reads() if name in came_from]
    told = operator.meanings()
    came: Schema = {name: found[parent].schema[name] for name, parent in came_from.items()}
    may = "May be changed" if _PROBE in operator.touched({**came, _PROBE: "string"}) else "Changed"
    meanings: dict[str, str] = {}
    made_of: dict[str, list[tuple[str, str]]] = {}
    for name in columns.schema:
        itself = [(came_from[name], name)] if name in came_from else []
        if columns.touched_by[name] == step:
            made_of[name] = list(dict.fromkeys([*itself, *reads]))
            others = ", ".join(f"`{other}`" for _, other in made_of[name] if other != name)
            did = f"{may if itself else 'Added'} by step {walk.pipeline.step_number(step)}, `{step}` "
            by = f"{did}(`{operator.name}`){', from ' + others if others else ''}."
            meanings[name] = f"{told[name]} {by}" if name in told else by
        else:
            meanings[name] = found[came_from[name]].meanings[name]
            made_of[name] = itself
    return ColumnOrigins(dict(columns.schema), meanings, made_of)


class _Columns(NamedTuple):
    """The columns of a step's rows, who touched each last, and which steps split or regrouped the rows."""

    schema: Schema
    touched_by: dict[str, str]
    split_by: tuple[str, ...]


@dataclass
class _Walk:
    pipeline: Pipeline
    columns: dict[str, _Columns] = field(default_factory=dict)
    joins: dict[str, JoinColumns] = field(default_factory=dict)
    ancestors: dict[str, set[str]] = field(default_factory=lambda: {SOURCE: set()})
    problems: list[str] = field(default_factory=list)

    def problem(self, place: str, message: str) -> None:
        line = f"{place}: {self.pipeline.redacted(message)}"
        self.problems.append(printable(shortened(line)))


def _walked(pipeline: Pipeline, source_schema: Mapping[str, ColumnType]) -> _Walk:
    walk = _Walk(pipeline)
    walk.columns[SOURCE] = _source(walk, source_schema)
    for step in pipeline.ordered_steps:
        parents = pipeline.parents(step)
        walk.ancestors[step.name] = set(parents).union(*(walk.ancestors[parent] for parent in parents))
        came = _joined(walk, step.name, parents) if len(parents) > 1 else walk.columns[parents[0]]
        walk.columns[step.name] = _after(walk, step.name, came)
        for check in step.checks:
            if problem := check.problem(walk.columns[step.name].schema):
                walk.problem(pipeline.place(step), problem)
        if step.expect:
            before = {parent: walk.columns[parent].schema for parent in parents}
            for problem in problems_of_rules(pipeline, step, walk.columns[step.name].schema, before):
                walk.problem(pipeline.place(step), problem)
    if walk.problems:
        raise ConfigError(walk.problems)
    return walk


def _source(walk: _Walk, schema: Mapping[str, ColumnType]) -> _Columns:
    for name in RESERVED_COLUMNS:
        if name in schema and name != ROW_ID:
            walk.problem(
                f"pipeline {walk.pipeline.name!r}: source",
                f"the column {name!r} has a name that the package keeps for itself; "
                "give it another under `rename` of the source",
            )
    columns: Schema = {**schema, ROW_ID: "string"}
    return _Columns(columns, dict.fromkeys(columns, SOURCE), ())


def _after(walk: _Walk, step: str, came: _Columns) -> _Columns:
    """The columns after the step; the mistakes that it makes with those that came."""
    operator = walk.pipeline.operator(step)
    place = walk.pipeline.place(step)
    missing: list[str] = []
    try:
        reads, writes = list(operator.reads()), operator.writes()
        missing = _missing(reads, came.schema)
        for message in [*missing, *_overwritten(operator, reads, writes, came.schema)]:
            walk.problem(place, message)
        schema = operator.output_schema(dict(came.schema))
        touched = operator.touched(dict(came.schema))
    except (Exception, SystemExit) as error:  # noqa: BLE001  a user's operator may raise anything
        for message in [] if missing else _told(error):
            walk.problem(place, message)
        return came
    for message in _reserved(came.schema, schema, touched):
        walk.problem(place, message)
    touched_by = {name: step if name in touched else came.touched_by.get(name, step) for name in schema}
    split_by = (*came.split_by, step) if operator.splits or operator.regroups else came.split_by
    return _Columns({**schema, ROW_ID: "string"}, {**touched_by, ROW_ID: SOURCE}, split_by)


def _told(error: Raised) -> list[str]:
    if isinstance(error, ConfigError):
        return error.problems
    return [f"the operator cannot say its columns: {type(error).__name__}: {said_by(error)}"]


def _missing(reads: Iterable[str], schema: Schema) -> list[str]:
    return [
        f"reads the column {shown(name)}, which is not there (there are: {_names(schema)})"
        f"{near_names(name, schema)}"
        for name in dict.fromkeys(reads)
        if name not in schema
    ]


def _names(schema: Iterable[str]) -> str:
    return listed(name for name in schema if name != ROW_ID)


def _overwritten(operator: Operator, reads: Sequence[str], writes: Schema, schema: Schema) -> list[str]:
    """A column that is written without being read would be lost without a word.

    Not meant are operators that may change any column, as a user's function does, and steps that
    say `overwrite: true`.
    """
    anywhere = operator.touched({**schema, _PROBE: "string"})
    if _PROBE in anywhere or getattr(operator.params, "overwrite", False):
        return []
    return [
        f"writes the column {name!r}, which is there already and which it does not read; write to another "
        "column, or drop or rename this one before"
        for name in writes
        if name in schema and name not in reads and name not in RESERVED_COLUMNS
    ]


def _reserved(before: Schema, after: Schema, touched: Iterable[str]) -> list[str]:
    kept = "is kept by the package for itself"
    made = (set(touched) | (set(after) - set(before))) & set(RESERVED_COLUMNS)
    problems = [f"writes the column {name!r}, which {kept}; take another name" for name in sorted(made)]
    if ROW_ID not in after:
        problems.append(f"drops or renames the column {ROW_ID!r}, which {kept}; leave it as it is")
    return problems


def _joined(walk: _Walk, step: str, parents: Sequence[str]) -> _Columns:
    """The columns of the parents' rows joined on `row_id`, those of the first parent first."""
    place = walk.pipeline.place(step)
    sides = {parent: walk.columns[parent] for parent in parents}
    first = sides[parents[0]]
    for parent, side in sides.items():
        if set(side.split_by) != set(first.split_by):
            splitters = ", ".join(sorted(set(side.split_by) ^ set(first.split_by)))
            walk.problem(
                place,
                f"joins {parents[0]!r} and {parent!r} on {ROW_ID}, but {splitters} splits the rows, or "
                "moves them to other batches, on the way to only one of them, so that none would match; join "
                "before that step",
            )
            break
    chosen: JoinColumns = {}
    for name in dict.fromkeys(name for side in sides.values() for name in side.schema):
        chosen[name] = _side_of(walk, place, name, [p for p in parents if name in sides[p].schema])
    walk.joins[step] = chosen
    schema: Schema = {name: sides[parent].schema[name] for name, parent in chosen.items()}
    touched_by = {name: sides[parent].touched_by[name] for name, parent in chosen.items()}
    return _Columns(schema, touched_by, first.split_by)


def _side_of(walk: _Walk, place: str, name: str, parents: Sequence[str]) -> str:
    """The parent that has the last change of this column."""
    best = parents[0]
    for parent in parents[1:]:
        old, new = walk.columns[best].touched_by[name], walk.columns[parent].touched_by[name]
        if old in walk.ancestors[new]:
            best = parent
        elif old != new and new not in walk.ancestors[old]:
            walk.problem(
                place,
                f"joins two values of the column {name!r}: {old!r} changed it on the way to {best!r}, and "
                f"{new!r} on the way to {parent!r}; give it another name in one branch with rename_columns",
            )
            break
    return best
