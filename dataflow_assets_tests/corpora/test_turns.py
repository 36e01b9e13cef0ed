"""Any list of messages becomes turns and comes back; what was changed in a column shows in the messages."""

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataflow_assets.batch import json_text
from dataflow_assets.corpora.shapes import Shape, Stored, assembled, flattened
from dataflow_assets.corpora.turns import MESSAGES, SHAREGPT, Turn, joined, split_turns

USER, BOT = {"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}
_SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
_VALUES = st.recursive(_SCALARS, lambda inner: st.lists(inner, max_size=2), max_leaves=3)
_KEYS = st.sampled_from(["role", "content", "from", "value", "weight", "reasoning", "thinking", "tool_calls"])
_ROLES = st.sampled_from(["user", "assistant", "system", "tool", "gpt", "human", "developer", "?"])
_MESSAGES = st.lists(
    st.dictionaries(_KEYS, _VALUES, max_size=5)
    | st.builds(
        lambda role, rest: {"role": role, **rest}, _ROLES, st.dictionaries(_KEYS, _VALUES, max_size=3)
    )
    | st.builds(lambda role, text: {"role": role, "content": text}, _ROLES, st.text())
    | st.builds(lambda role, text: {"from": role, "value": text}, _ROLES, st.text())
    | _VALUES,
    max_size=8,
)


@settings(max_examples=300, deadline=None)
@given(_MESSAGES, st.sampled_from(["messages", "sharegpt"]))
def test_any_messages_come_back(messages: list[object], kind: str) -> None:
    shape = Shape(kind, "talk")  # type: ignore[arg-type]
    record = {"talk": messages, "n": 1}
    flat = flattened(json.loads(json_text(record)), shape)
    back = assembled([Stored(*one, False) for one in flat], shape)
    assert json_text(back["talk"]) == json_text(json.loads(json_text(messages)))
    assert back["n"] == 1


@pytest.mark.parametrize(
    ("messages", "turns"),
    [
        ([USER, BOT], [Turn(prompt="q", response="a")]),
        ([USER, BOT, USER], [Turn(prompt="q", response="a"), Turn(prompt="q")]),
        ([BOT, USER, BOT], [Turn(response="a"), Turn(prompt="q", response="a")]),
        ([USER, USER], [Turn(prompt="q"), Turn(prompt="q")]),
        (
            [{"role": "system", "content": "s"}, USER, {**BOT, "reasoning_content": "r"}],
            [Turn(system="s", prompt="q", response="a", reasoning="r")],
        ),
        ([USER, {**BOT, "weight": 0.5}], [Turn(prompt="q", response="a", weight=0.5)]),
    ],
)
def test_plain_messages_are_plain_columns(messages: list[object], turns: list[Turn]) -> None:
    assert split_turns(messages, MESSAGES) == turns


def test_a_tool_is_what_the_model_is_given() -> None:
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]}
    result = {"role": "tool", "tool_call_id": "1", "content": "12:00"}
    first, second = split_turns([USER, call, result, BOT], MESSAGES)
    assert (first.prompt, first.response, second.prompt, second.response) == ("q", None, "12:00", "a")


@pytest.mark.parametrize("text", ["a\0b", "half \ud83d"])
def test_a_text_that_no_column_holds_is_in_the_form(text: str) -> None:
    (turn,) = split_turns([{"role": "user", "content": text}], MESSAGES)
    assert turn.prompt is None
    assert joined([turn], MESSAGES) == [{"role": "user", "content": text}]


def test_what_is_written_to_a_column_shows_in_the_messages() -> None:
    (turn,) = split_turns([USER, {**BOT, "name": "odd"}], MESSAGES)
    changed = replace(turn, response="new", reasoning="why", weight=1.5, system="s")
    assert joined([changed], MESSAGES) == [
        {"role": "system", "content": "s"},
        USER,
        {"role": "assistant", "content": "new", "name": "odd", "reasoning_content": "why", "weight": 1.5},
    ]


def test_a_response_that_was_written_later_follows_its_prompt() -> None:
    (turn,) = split_turns([{"from": "human", "value": "q"}], SHAREGPT)
    assert joined([replace(turn, response="a")], SHAREGPT)[1] == {"from": "gpt", "value": "a"}


def test_a_reasoning_of_a_record_without_such_a_column_is_not_lost() -> None:
    shape = Shape("columns", "", {"prompt": "q"})
    (flat,) = flattened({"q": "x", "other": 1}, shape)
    values = {**flat.values, "data_reasoning": "why"}
    back = assembled([Stored(values, None, flat.extras, False)], shape)
    assert back == {"q": "x", "other": 1, "data_reasoning": "why"}
