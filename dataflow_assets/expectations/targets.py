"""Which column and measure a rule means, in a step with given columns."""

from collections.abc import Collection, Mapping
from typing import Literal, NamedTuple

from dataflow_assets.batch import ROW_ID, ColumnType
from dataflow_assets.pipeline.problems import listed, near_names, shown
from dataflow_assets.pipeline.rule_grammar import (
    Conflicts,
    Count,
    Drift,
    OfColumn,
    Path,
    ShareOf,
    StatOf,
    Value,
)
from dataflow_assets.profiles.conversations import CONVERSATION_LABELS, CONVERSATION_MEASURES
from dataflow_assets.profiles.texts import TEXT_LABELS, TEXT_MEASURES

VALUE = "value"
_TEXT_COLUMN = "text"
_CONVERSATION_COLUMNS = ("messages", "conversations", "conversation")
_NUMBERS = ("int64", "float64")
Kind = Literal["number", "label", "value", "nested"]
_COUNTED: Mapping[str, tuple[ColumnType, ...]] = {
    "distinct": ("string", "json", "bool"),
    "duplicates": ("string", "json"),
    "near_duplicates": ("string",),
    "boilerplate": ("string",),
}


class Target(NamedTuple):
    """A column and what of it is meant: a measure, a label of its texts, or its value; JSON is `nested`."""

    column: str
    measure: str
    kind: Kind


class Columns(NamedTuple):
    """The columns of a step's output, and the names of the pipeline's own measures."""

    schema: Mapping[str, ColumnType]
    own: Collection[str] = ()

    @property
    def names(self) -> list[str]:
        """The columns that rules may name."""
        return [name for name in self.schema if name != ROW_ID]


def target_of(value: Value, columns: Columns) -> Target | None:
    """What a value is measured of; None for rows and label conflicts, whose columns are only checked.

    Raises ValueError that names what there is.
    """
    if isinstance(value, Count):
        return None
    if isinstance(value, Conflicts):
        for name in (*value.inputs, value.label):
            _known(name, columns)
        return None
    if isinstance(value, OfColumn):
        return _of_column(value, columns)
    if isinstance(value, StatOf):
        return _found(value.path, columns, ("number",), "a statistic")
    if isinstance(value, ShareOf):
        wants_text = isinstance(value.operand, str)
        kinds: tuple[Kind, ...] = ("value", "label") if wants_text else ("number",)
        return _found(value.path, columns, kinds, "a text in quotes" if wants_text else "a number")
    assert isinstance(value, Drift)
    if value.distance == "psi":
        return _found(value.path, columns, ("number",), "psi")
    return _found(value.path, columns, ("value", "label"), "js")


def _of_column(value: OfColumn, columns: Columns) -> Target:
    column = _text_column(columns, value.what) if value.column is None else _known(value.column, columns)
    kinds = _COUNTED.get(value.what)
    if kinds is not None and columns.schema[column] not in kinds:
        raise ValueError(
            f"{value.what} of the column {shown(column)}, which is {columns.schema[column]}; "
            f"expected {' or '.join(kinds)}"
            + ("; `checks` has max_duplicate_share for it" if value.what == "duplicates" else "")
        )
    return Target(column, VALUE, "value")


def _found(path: Path, columns: Columns, kinds: tuple[Kind, ...], what: str) -> Target:
    """The first meaning of the path that is of one of these kinds; a column before a measure."""
    meanings = _meanings(path, columns)
    for target in meanings:
        if target.kind in kinds:
            return target
    if not meanings:
        raise ValueError(_unknown(path, columns))
    raise ValueError(f"{what} is not for {str(path)!r}, {_why_not(path, meanings[0], columns, kinds)}")


def _why_not(path: Path, found: Target, columns: Columns, kinds: tuple[Kind, ...]) -> str:
    """What the path is instead, and what can be done with it."""
    if found.kind == "number":
        return "which has numbers; compare them with a number, or take psi"
    if found.kind == "label":
        return f'which has labels; take share({path} = "…") or js'
    column = columns.schema[found.column]
    if column == "bool":
        return f'which is bool and has no numbers; take share({path} = "true") or js'
    if "number" in kinds:
        measure = "turns" if column == "json" else "chars"
        return f"which is {column} and has no numbers; name a measure of it, such as {path}.{measure}"
    return f"which is {column}, whose values are not counted; name a label of it, such as {path}.last_role"


def _meanings(path: Path, columns: Columns) -> list[Target]:
    *before, name = path.names
    if before:
        return _of_kind(_known(before[0], columns), name, columns)
    found: list[Target] = []
    kind = columns.schema.get(name) if name != ROW_ID else None
    if kind is not None:
        of_kind: Kind = "number" if kind in _NUMBERS else "nested" if kind == "json" else "value"
        found.append(Target(name, VALUE, of_kind))
    if name in columns.own:
        found.append(Target(name, VALUE, "number"))
    if kind in _NUMBERS or name in columns.own:
        return found
    return found + _of_usual_column(name, columns)


def _of_usual_column(name: str, columns: Columns) -> list[Target]:
    """The measure of the column that it is usually of: of texts, or of conversations."""
    found: list[Target] = []
    mistakes: list[ValueError] = []
    for column_of, measures, labels in (
        (_text_column, TEXT_MEASURES, TEXT_LABELS),
        (_conversation_column, CONVERSATION_MEASURES, CONVERSATION_LABELS),
    ):
        if name in measures or name in labels:
            try:
                column = column_of(columns, name)
                found.append(Target(column, name, "number" if name in measures else "label"))
            except ValueError as error:
                mistakes.append(error)
    if len(found) > 1:
        both = " or ".join(f"{target.column}.{name}" for target in found)
        raise ValueError(f"{name} of which column? name one: {both}")
    if mistakes and not found:
        raise mistakes[0]
    return found


def _of_kind(column: str, name: str, columns: Columns) -> list[Target]:
    """A measure of this column."""
    kind = columns.schema[column]
    if kind in _NUMBERS:
        known: dict[str, Kind] = {VALUE: "number"}
    elif kind == "bool":
        known = {VALUE: "value"}
    else:
        measures = TEXT_MEASURES if kind == "string" else CONVERSATION_MEASURES
        labels = TEXT_LABELS if kind == "string" else CONVERSATION_LABELS
        known = {**dict.fromkeys(measures, "number"), **dict.fromkeys(labels, "label")}
    if name not in known:
        raise ValueError(
            f"the column {shown(column)} is {kind} and has no measure {shown(name)} "
            f"(there are: {listed(known)}){near_names(name, known)}"
        )
    return [Target(column, name, known[name])]


def _known(name: str, columns: Columns) -> str:
    if name not in columns.names:
        raise ValueError(
            f"there is no column {shown(name)} (there are: {listed(columns.names)})"
            f"{near_names(name, columns.names)}"
        )
    return name


def _unknown(path: Path, columns: Columns) -> str:
    name = path.names[0]
    known = [*columns.names, *columns.own, *TEXT_MEASURES, *TEXT_LABELS]
    known += [each for each in (*CONVERSATION_MEASURES, *CONVERSATION_LABELS) if each not in known]
    measures = listed([*columns.own, *TEXT_MEASURES, *TEXT_LABELS, *CONVERSATION_MEASURES])
    return (
        f"{shown(name)} is no measure and no column (columns: {listed(columns.names)}; measures: {measures})"
        f"{near_names(name, known)}"
    )


def _text_column(columns: Columns, what: str) -> str:
    """`text`, else the only column of texts."""
    texts = [name for name in columns.names if columns.schema[name] == "string"]
    if _TEXT_COLUMN in texts:
        return _TEXT_COLUMN
    if len(texts) == 1:
        return texts[0]
    found = f"the columns of texts are {listed(texts)}" if texts else "there is no column of texts"
    raise ValueError(f"{what} of which column? {found}; name one: {_with_column(what, texts)}")


def _with_column(what: str, texts: list[str]) -> str:
    column = texts[0] if texts else "column"
    return f"{what}({column})" if what in _COUNTED else f"{column}.{what}"


def _conversation_column(columns: Columns, what: str) -> str:
    nested = [name for name in columns.names if columns.schema[name] == "json"]
    usual = [name for name in _CONVERSATION_COLUMNS if name in nested]
    if usual or len(nested) == 1:
        return (usual or nested)[0]
    found = f"the columns that may hold some are {listed(nested)}" if nested else "no column is json"
    example = f"{nested[0] if nested else 'messages'}.{what}"
    raise ValueError(f"{what} of which column of conversations? {found}; name one: {example}")
