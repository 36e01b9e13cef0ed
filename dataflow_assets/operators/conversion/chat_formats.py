"""The formats of conversations: messages, ShareGPT, Alpaca, ChatML, columns; each to turns and back."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

from dataflow_assets.batch import Schema
from dataflow_assets.errors import MissingValue, WrongType
from dataflow_assets.operators.conversion.turns import (
    ROLES,
    Role,
    Turn,
    checked_text,
    exchange_of,
    turns_in,
    turns_of,
)

FormatName = Literal["messages", "sharegpt", "alpaca", "chatml", "columns"]
Row = Mapping[str, object]
_SAID_BY: dict[str, Role] = {
    "system": "system",
    "human": "user",
    "user": "user",
    "gpt": "assistant",
    "assistant": "assistant",
}
_SHAREGPT_NAMES: dict[Role, str] = {"system": "system", "user": "human", "assistant": "gpt"}
_CHATML_TURN = re.compile(r"<\|im_start\|>([^\n]*)\n(.*?)<\|im_end\|>\n?", re.DOTALL)
_CHATML_MARK = re.compile(r"<\|im_(?:start|end)\|>")


class ChatFormat(NamedTuple):
    """One format: the columns that it needs and may have, and the way to turns and back.

    Both ways raise MissingValue or WrongType for what does not fit.
    """

    columns: Schema
    optional: Schema
    read: Callable[[Row], list[Turn]]
    write: Callable[[Sequence[Turn]], dict[str, object]]

    @property
    def all_columns(self) -> Schema:
        """The columns that it writes."""
        return {**self.columns, **self.optional}


def _read_messages(row: Row) -> list[Turn]:
    return turns_in(row["messages"], "messages", "role", "content", {role: role for role in ROLES})


def _write_messages(turns: Sequence[Turn]) -> dict[str, object]:
    return {"messages": [{"role": turn.role, "content": turn.text} for turn in turns]}


def _read_sharegpt(row: Row) -> list[Turn]:
    return turns_in(row["conversations"], "conversations", "from", "value", _SAID_BY)


def _write_sharegpt(turns: Sequence[Turn]) -> dict[str, object]:
    return {"conversations": [{"from": _SHAREGPT_NAMES[turn.role], "value": turn.text} for turn in turns]}


def _read_alpaca(row: Row) -> list[Turn]:
    asked = row["input"]
    if asked is None or asked == "":
        question = row["instruction"]
    else:
        first = checked_text(row["instruction"], "column 'instruction'")
        second = checked_text(asked, "column 'input'")
        question = f"{first}\n{second}"
    return turns_of(row.get("system"), question, row["output"], ("system", "instruction", "output"))


def _write_alpaca(turns: Sequence[Turn]) -> dict[str, object]:
    found = exchange_of(turns, "alpaca")
    return {"instruction": found.user, "input": "", "output": found.assistant, "system": found.system or ""}


def _read_columns(row: Row) -> list[Turn]:
    names = ("system", "question", "answer")
    return turns_of(row.get("system"), row["question"], row["answer"], names)


def _write_columns(turns: Sequence[Turn]) -> dict[str, object]:
    found = exchange_of(turns, "a question with its answer")
    return {"question": found.user, "answer": found.assistant, "system": found.system}


def _read_chatml(row: Row) -> list[Turn]:
    text = row["text"]
    if text is None:
        raise MissingValue("missing text: the row has no text in column 'text'")
    if not isinstance(text, str):
        raise WrongType(f"wrong type: column 'text' holds {type(text).__name__}, expected text")
    turns: list[dict[str, object]] = []
    place = 0
    while place < len(text):
        found = _CHATML_TURN.match(text, place)
        if found is None or _CHATML_MARK.search(found[2]):
            shown = text[place : place + 40]
            raise WrongType(f"wrong type: expected `<|im_start|>role` … `<|im_end|>`, found {shown!r}")
        turns.append({"role": found[1], "content": found[2]})
        place = found.end()
    return turns_in(turns, "text", "role", "content", {role: role for role in ROLES})


def _write_chatml(turns: Sequence[Turn]) -> dict[str, object]:
    for number, turn in enumerate(turns, 1):
        if found := _CHATML_MARK.search(turn.text):
            raise WrongType(f"wrong type: turn {number} has {found[0]} in its text, which ChatML cannot hold")
    return {"text": "".join(f"<|im_start|>{turn.role}\n{turn.text}<|im_end|>\n" for turn in turns)}


FORMATS: dict[FormatName, ChatFormat] = {
    "messages": ChatFormat({"messages": "json"}, {}, _read_messages, _write_messages),
    "sharegpt": ChatFormat({"conversations": "json"}, {}, _read_sharegpt, _write_sharegpt),
    "alpaca": ChatFormat(
        {"instruction": "string", "input": "string", "output": "string"},
        {"system": "string"},
        _read_alpaca,
        _write_alpaca,
    ),
    "chatml": ChatFormat({"text": "string"}, {}, _read_chatml, _write_chatml),
    "columns": ChatFormat(
        {"question": "string", "answer": "string"}, {"system": "string"}, _read_columns, _write_columns
    ),
}
