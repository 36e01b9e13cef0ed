"""Conversations as turns and back, exactly: what no column can hold goes into the form of the turn.

A turn is what the system says, what the model is given (the prompt: of the user, or of a tool), and the
model's response with its reasoning and weight. `split_turns` puts the messages of a conversation into
turns, `joined` makes the messages again. A turn whose messages are the plain ones has no form; others
keep their messages as a form, in which the texts that are in columns are left out.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

from dataflow_assets.batch import json_text

_REASONING = ("reasoning_content", "reasoning", "thinking")
_EXACT_INTEGERS = 2**53


class Wording(NamedTuple):
    """How a format of conversations calls things: its keys, and its names of who speaks."""

    role: str
    text: str
    system: str
    prompt: str
    response: str


MESSAGES = Wording("role", "content", "system", "user", "assistant")
SHAREGPT = Wording("from", "value", "system", "human", "gpt")
_SYSTEMS = {"system", "developer"}
_RESPONDERS = {"assistant", "gpt", "model", "bot", "chatgpt"}


class Placed(NamedTuple):
    """A message as it came, texts that are in columns as null; `places` says which key is in which column."""

    message: object
    places: Mapping[str, str]


@dataclass(frozen=True)
class Turn:
    """One turn: texts, the weight of the response, and its form where the messages are not the plain ones."""

    system: str | None = None
    prompt: str | None = None
    reasoning: str | None = None
    response: str | None = None
    weight: float | None = None
    form: tuple[Placed, ...] | None = None


VALUES = tuple(field.name for field in fields(Turn) if field.name != "form")


def split_turns(messages: Sequence[object], wording: Wording) -> list[Turn]:
    """The turns of a conversation, at least one."""
    turns: list[Turn] = []
    held: list[object] = []
    highest = -1
    for message in messages:
        rank = _rank(message, wording)
        if rank <= highest:
            turns.append(_turn(held, wording))
            held, highest = [], -1
        held.append(message)
        highest = rank
    return [*turns, _turn(held, wording)]


def joined(turns: Sequence[Turn], wording: Wording) -> list[object]:
    """The messages of these turns. A text that came after the form was made gets a message of its own."""
    return [message for turn in turns for message in _messages(turn, wording)]


def storable(value: object) -> bool:
    """Whether a text can be in a column on every database: no NUL character, no half of a surrogate pair."""
    if not isinstance(value, str) or "\0" in value:
        return False
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_exact_float(value: object) -> bool:
    """Whether a value is a float that a column of doubles gives back on every database, its sign too."""
    return isinstance(value, float) and math.isfinite(value) and (value != 0 or math.copysign(1, value) > 0)


def _rank(message: object, wording: Wording) -> int:
    """0 for what the system says, 1 for the prompt, 2 for the response."""
    role = message.get(wording.role) if isinstance(message, Mapping) else None
    if not isinstance(role, str):
        return 1
    return 0 if role in _SYSTEMS else 2 if role in _RESPONDERS else 1


def _turn(messages: Sequence[object], wording: Wording) -> Turn:
    values: dict[str, object] = {}
    form: list[Placed] = []
    for message in messages:
        form.append(_placed(message, wording, values))
    turn = _made(values)
    if messages and json_text(_messages(turn, wording)) == json_text(list(messages)):
        return turn
    return replace(turn, form=tuple(form))


def _made(values: Mapping[str, object]) -> Turn:
    texts = (values.get(name) for name in ("system", "prompt", "reasoning", "response"))
    weight = values.get("weight")
    return Turn(
        *(text if isinstance(text, str) else None for text in texts),
        weight=float(weight) if isinstance(weight, int | float) else None,
    )


def _placed(message: object, wording: Wording, values: dict[str, object]) -> Placed:
    """The message without the texts that `values` takes."""
    if not isinstance(message, dict):
        return Placed(message, {})
    rank = _rank(message, wording)
    wanted = {wording.text: ("system", "prompt", "response")[rank]}
    if rank == 2:
        reasoning = next((key for key in _REASONING if storable(message.get(key))), None)
        wanted |= {reasoning: "reasoning"} if reasoning else {}
        wanted |= {"weight": "weight"} if _is_exact(message.get("weight")) else {}
    places = {key: place for key, place in wanted.items() if place == "weight" or storable(message.get(key))}
    values |= {place: message[key] for key, place in places.items()}
    kept = {key: _blank(value) if key in places else value for key, value in message.items()}
    return Placed(kept, places)


def _is_exact(weight: object) -> bool:
    """Whether a number comes back from a column of doubles as it was, its sign too."""
    if isinstance(weight, int) and not isinstance(weight, bool):
        return abs(weight) <= _EXACT_INTEGERS
    return is_exact_float(weight)


def _blank(value: object) -> object:
    """What stands in a form for a value that is in a column: of numbers, their type."""
    return type(value)() if isinstance(value, int | float) else None


def _messages(turn: Turn, wording: Wording) -> list[object]:
    values: dict[str, object] = {name: getattr(turn, name) for name in VALUES}
    messages: list[object] = []
    placed: set[str] = set()
    for message, places in turn.form or ():
        placed.update(places.values())
        messages.append(_filled(message, places, values))
    rest = {name: value for name, value in values.items() if value is not None and name not in placed}
    return _with_rest(messages, rest, wording) if rest else messages


def _filled(message: object, places: Mapping[str, str], values: Mapping[str, object]) -> object:
    if not isinstance(message, dict):
        return message
    return {
        key: _typed(values[places[key]], value) if key in places else value for key, value in message.items()
    }


def _typed(value: object, blank: object) -> object:
    """A number with the type that it had."""
    if isinstance(blank, int) and isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _with_rest(messages: list[object], values: Mapping[str, object], wording: Wording) -> list[object]:
    """The messages, and these values as further plain ones, or as a part of the last response."""
    messages = list(messages)
    answer = next((place for place, one in enumerate(messages) if _rank(one, wording) == 2), None)
    if "prompt" in values:
        prompt = {wording.role: wording.prompt, wording.text: values["prompt"]}
        messages.insert(len(messages) if answer is None else answer, prompt)
    if values.keys() & {"response", "reasoning", "weight"}:
        _respond(messages, values, wording)
    if "system" in values:
        messages.insert(0, {wording.role: wording.system, wording.text: values["system"]})
    return messages


def _respond(messages: list[object], values: Mapping[str, object], wording: Wording) -> None:
    """Puts response, reasoning and weight into the last response of the messages, or into one of its own."""
    names = {"response": wording.text, "reasoning": _REASONING[0], "weight": "weight"}
    new = {key: values[name] for name, key in names.items() if name in values}
    last = messages[-1] if messages else None
    if isinstance(last, dict) and _rank(last, wording) == 2:
        messages[-1] = {**last, **new}
    else:
        messages.append({wording.role: wording.response, wording.text: None, **new})


def form_as_json(form: Sequence[Placed]) -> list[object]:
    """A form as JSON values: a pair of message and places for each message."""
    return [[message, dict(places)] for message, places in form]


def form_of_json(form: Sequence[Sequence[object]]) -> tuple[Placed, ...]:
    """The form of these JSON values."""
    return tuple(Placed(message, places if isinstance(places, dict) else {}) for message, places in form)
