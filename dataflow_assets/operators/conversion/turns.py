"""A conversation as the converters hold it: turns with a role and a text, and the order that they have."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, cast

from dataflow_assets.errors import MissingValue, WrongType

Role = Literal["system", "user", "assistant"]
ROLES: tuple[Role, ...] = ("system", "user", "assistant")


class Turn(NamedTuple):
    """What one of them says."""

    role: Role
    text: str


class Exchange(NamedTuple):
    """A conversation of one question and one answer."""

    system: str | None
    user: str
    assistant: str


def turns_in(
    value: object, column: str, role_key: str, text_key: str, roles: Mapping[str, Role]
) -> list[Turn]:
    """The turns of a list of objects with these two keys. Raises MissingValue, WrongType."""
    if value is None:
        raise MissingValue(f"missing {column}: the row has no conversation in column {column!r}")
    if not isinstance(value, list):
        raise WrongType(
            f"wrong type: column {column!r} holds {type(value).__name__}, expected a list of turns"
        )
    return [_turn(turn, number, (role_key, text_key), roles) for number, turn in enumerate(value, 1)]


def _turn(turn: object, number: int, keys: tuple[str, str], roles: Mapping[str, Role]) -> Turn:
    if not isinstance(turn, dict):
        raise WrongType(f"wrong type: turn {number} is {type(turn).__name__}, expected an object")
    if missing := [key for key in keys if turn.get(key) is None]:
        raise MissingValue(f"missing {missing[0]}: turn {number} has no {missing[0]!r}")
    if more := [key for key in turn if key not in keys and turn[key] is not None]:
        raise WrongType(f"wrong type: turn {number} has {more[0]!r}, which no other format holds")
    role, text = turn[keys[0]], turn[keys[1]]
    if not isinstance(role, str) or role not in roles:
        raise WrongType(f"wrong type: turn {number} is said by {role!r}, expected one of {', '.join(roles)}")
    return Turn(roles[role], checked_text(text, f"turn {number}"))


def checked_text(text: object, where: str) -> str:
    """The text, if it is one with any visible character."""
    if not isinstance(text, str):
        raise WrongType(f"wrong type: {where} holds {type(text).__name__}, expected text")
    if not text.strip():
        raise MissingValue(f"missing text: {where} is blank")
    return text


def check_order(turns: Sequence[Turn]) -> None:
    """Raises WrongType unless users and assistants alternate, from a user to an assistant.

    One system message may stand before them.
    """
    spoken = [turn.role for turn in turns]
    spoken = spoken[1:] if spoken[:1] == ["system"] else spoken
    if not spoken:
        raise MissingValue("missing turns: the conversation has no turn of a user")
    for number, role in enumerate(spoken):
        expected = ("user", "assistant")[number % 2]
        if role != expected:
            place = number + 1 + (len(turns) - len(spoken))
            raise WrongType(f"wrong type: turn {place} is of the {role}, expected one of the {expected}")
    if spoken[-1] != "assistant":
        raise WrongType("wrong type: the last turn is of the user, expected one of the assistant")


def exchange_of(turns: Sequence[Turn], form: str) -> Exchange:
    """The conversation as one question and one answer. Raises WrongType where it is longer."""
    system = turns[0].text if turns[0].role == "system" else None
    spoken = turns if system is None else turns[1:]
    if [turn.role for turn in spoken] != ["user", "assistant"]:
        raise WrongType(
            f"wrong type: the conversation has {len(spoken)} turns, and {form} holds one exchange"
        )
    return Exchange(system, spoken[0].text, spoken[1].text)


def turns_of(system: object, user: object, assistant: object, names: Sequence[str]) -> list[Turn]:
    """The turns of a question and an answer; an empty system message is none. Raises for a blank text."""
    said = [] if system is None or system == "" else [("system", system, names[0])]
    said += [("user", user, names[1]), ("assistant", assistant, names[2])]
    turns = []
    for role, text, name in said:
        if text is None:
            raise MissingValue(f"missing {name}: the row has no text in column {name!r}")
        turns.append(Turn(cast(Role, role), checked_text(text, f"column {name!r}")))
    return turns
