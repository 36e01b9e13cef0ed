"""What of a record is its conversation: which column holds the messages, or which columns are one turn."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from dataflow_assets.batch import json_text, json_value
from dataflow_assets.corpora.tables import TEXT_COLUMNS
from dataflow_assets.corpora.turns import (
    MESSAGES,
    SHAREGPT,
    Placed,
    Turn,
    Wording,
    form_as_json,
    form_of_json,
    is_exact_float,
    joined,
    split_turns,
    storable,
)
from dataflow_assets.errors import ConfigError

Kind = Literal["messages", "sharegpt", "columns"]
Record = Mapping[str, object]
TURN_VALUES = dict(
    zip((*TEXT_COLUMNS, "data_weight"), ("system", "prompt", "reasoning", "response", "weight"), strict=True)
)
_WORDINGS: Mapping[Kind, Wording] = {"messages": MESSAGES, "sharegpt": SHAREGPT, "columns": MESSAGES}
_LISTS: Mapping[str, Kind] = {"messages": "messages", "conversations": "sharegpt", "conversation": "sharegpt"}
# In the order in which they are looked for.
_NAMES = {
    "system": ("system", "system_prompt", "data_system"),
    "prompt": ("instruction", "prompt", "question", "query", "input", "data_prompt", "text"),
    "reasoning": ("reasoning", "reasoning_content", "thinking", "data_reasoning"),
    "response": ("output", "response", "answer", "completion", "data_response"),
    "weight": ("weight", "data_weight"),
}
_TOOLS = ("tools", "data_tools")


class Shape(NamedTuple):
    """How records are conversations. `messages` is the column with the list, empty for kind `columns`;
    `columns` says which column is which text of the only turn; `tools` is the column of tools, if any.
    """

    kind: Kind
    messages: str = ""
    columns: Mapping[str, str] = {}
    tools: str = ""

    def as_json(self) -> str:
        """The shape as JSON text."""
        return json_text(self._asdict())

    @classmethod
    def of_json(cls, text: str) -> "Shape":
        """The shape of this JSON text."""
        value = json_value(text)
        assert isinstance(value, dict)
        return cls(**value)


class Flat(NamedTuple):
    """One turn as the values of its columns; `extras` is None where there is nothing else."""

    values: Mapping[str, object]
    tools: str | None
    extras: str | None


def shape_of_columns(names: Sequence[str]) -> Shape:
    """The shape that the names of the columns say. Raises ConfigError where they say none."""
    tools = next((name for name in _TOOLS if name in names), "")
    for column, kind in _LISTS.items():
        if column in names:
            return Shape(kind, column, {}, tools)
    found = {
        value: column
        for value, known in _NAMES.items()
        if (column := next((name for name in known if name in names), None))
    }
    if "prompt" not in found and "response" not in found:
        raise ConfigError(
            f"the columns {', '.join(names) or '(none)'} are no conversation; expected `messages`, "
            "`conversations`, or columns such as `instruction` and `output`: say with --prompt and "
            "--response which columns they are"
        )
    return Shape("columns", "", found, tools)


def left_beside(shape: Shape, names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Which of prompt and response none of these columns is, and the columns that are no part of a turn.

    Both are empty where a column holds the whole conversation.
    """
    if shape.kind != "columns":
        return [], []
    missing = [name for name in ("prompt", "response") if shape.columns.get(name) not in names]
    return missing, [name for name in names if name not in (*shape.columns.values(), shape.tools)]


def flattened(record: Record, shape: Shape) -> list[Flat]:
    """The record as rows, one a turn. Nulls are left out, as they are nowhere more than missing values."""
    rest = {name: value for name, value in record.items() if value is not None}
    tools = rest.pop(shape.tools, None) if shape.tools else None
    turns = _turns(rest, shape)
    return [
        Flat(
            {column: getattr(turn, name) for column, name in TURN_VALUES.items()},
            json_text(tools) if tools is not None and not number else None,
            _extras(turn, {} if number else rest),
        )
        for number, turn in enumerate(turns)
    ]


def _turns(rest: dict[str, object], shape: Shape) -> list[Turn]:
    """The turns of the record; what they hold is taken out of `rest`."""
    if shape.kind != "columns":
        messages = rest.get(shape.messages)
        if not isinstance(messages, list):
            return [Turn()]
        del rest[shape.messages]
        return split_turns(messages, _WORDINGS[shape.kind])
    fits = {
        name: rest.pop(column)
        for name, column in shape.columns.items()
        if (is_exact_float if name == "weight" else storable)(rest.get(column))
    }
    return [Turn(**fits)]  # pyright: ignore[reportArgumentType]  texts, and a number as the weight


def _extras(turn: Turn, rest: Record) -> str | None:
    extras: dict[str, object] = {}
    if rest:
        extras["row"] = rest
    if turn.form is not None:
        extras["form"] = form_as_json(turn.form)
    return json_text(extras) if extras else None


class Stored(NamedTuple):
    """A turn as it was read: whether it was soft-deleted, and the rest as in `Flat`."""

    values: Mapping[str, object]
    tools: str | None
    extras: str | None
    is_deleted: bool


def assembled(rows: Iterable[Stored], shape: Shape) -> dict[str, object]:
    """The record of these turns, in order; deleted ones are left out, of the first only its messages."""
    record: dict[str, object] = {}
    turns: list[Turn] = []
    for number, row in enumerate(rows):
        extras = json_value(row.extras) if row.extras is not None else {}
        assert isinstance(extras, dict)
        if not number:
            record |= extras.get("row", {})
            record |= {shape.tools: json_value(row.tools)} if row.tools is not None and shape.tools else {}
        if not row.is_deleted:
            turns.append(_turn_of(row.values, extras.get("form")))
    return record | _conversation(turns, shape)


def _turn_of(values: Mapping[str, object], form: list[list[object]] | None) -> Turn:
    named = {name: values[column] for column, name in TURN_VALUES.items()}
    placed: tuple[Placed, ...] | None = None if form is None else form_of_json(form)
    return Turn(**named, form=placed)  # pyright: ignore[reportArgumentType]  the columns have these types


def _conversation(turns: Sequence[Turn], shape: Shape) -> dict[str, object]:
    if shape.kind != "columns":
        plain = [turn for turn in turns if turn != Turn()]
        return {shape.messages: joined(plain, _WORDINGS[shape.kind])} if plain else {}
    values = {
        shape.columns.get(name, column): getattr(turn, name)
        for turn in turns
        for column, name in TURN_VALUES.items()
    }
    return {column: value for column, value in values.items() if value is not None}
