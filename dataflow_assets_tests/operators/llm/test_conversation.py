import pytest

from dataflow_assets.errors import ConfigError
from dataflow_assets.operators.llm.shipped import prompt_text
from dataflow_assets.operators.registry import build_operator
from dataflow_assets_tests.operators.llm.asking import built, done, error_class, user

ROW = {"text": "Why is the sky blue?"}
TALK = [
    {"role": "system", "content": "Be kind"},
    {"role": "user", "content": "Hi"},
    {"role": "assistant", "content": "Old"},
    {"from": "human", "value": "Why?"},
]


def talk(*said: str) -> list[dict[str, str]]:
    """The messages of a conversation in which user and assistant take turns."""
    return [{"role": ("user", "assistant")[turn % 2], "content": text} for turn, text in enumerate(said)]


def test_the_text_opens_and_the_simulated_user_goes_on():
    found, calls = done("conversation", {"turns": 2}, ROW, "It scatters.", "And red?", "At dusk.")
    assert found == {"messages": talk(ROW["text"], "It scatters.", "And red?", "At dusk.")}
    said = prompt_text("conversation", "en").replace("{text}", ROW["text"])
    said = said.replace("{conversation}", "[user]\nWhy is the sky blue?\n\n[assistant]\nIt scatters.")
    assert [list(call.messages) for call in calls] == [
        talk(ROW["text"]),
        talk(said),
        talk(ROW["text"], "It scatters.", "And red?"),
    ]


def test_the_simulated_user_can_open():
    params = {"turns": 1, "opening": "simulated"}
    found, calls = done("conversation", params, {"text": "光"}, "光是什么？", "是波。")
    assert found == {"messages": talk("光是什么？", "是波。")}
    assert user(calls[0]) == prompt_text("conversation.opening", "zh").replace("{text}", "光")


def test_system_and_examples_are_the_assistants():
    params = {"turns": 2, "system": "Be brief", "examples": [{"user": "u", "assistant": "a"}]}
    found, calls = done("conversation", params, ROW, "1", "2", "3")
    assert isinstance(found, dict)
    assert found["messages"] == [{"role": "system", "content": "Be brief"}, *talk(ROW["text"], "1", "2", "3")]
    assert [[message["content"] for message in call.messages][:3] for call in calls[::2]] == [
        ["Be brief", "u", "a"]
    ] * 2
    assert len(calls[1].messages) == 1


def test_turns_of_the_row_are_asked_again():
    found, calls = done("conversation", {"messages_column": "m", "turns": 9}, {"m": TALK}, "New", "So.")
    assert found == {"messages": [TALK[0], *talk("Hi", "New", "Why?", "So.")]}
    assert [len(call.messages) for call in calls] == [2, 4]
    assert built("conversation", {"messages_column": "m"}).reads() == ["m"]


@pytest.mark.parametrize("given", [None, [], TALK[:1]])
def test_without_a_turn_of_the_user_nothing_is_sent(given: object):
    assert error_class("conversation", {"messages_column": "m"}, {"m": given}) == "MissingValue"


@pytest.mark.parametrize(
    ("script", "found"),
    [
        (["short"], "gate:min_chars"),
        (["long enough", "I'm sorry, but I can't"], "gate:no_refusal"),
        (["long enough", ""], "gate:not_empty"),
        (["long enough", "x", "As an AI language model"], "gate:no_refusal"),
    ],
)
def test_any_turn_that_misses_a_gate_fails_the_row(script: list[str], found: str):
    assert error_class("conversation", {"turns": 2, "gates": {"min_chars": 6}}, ROW, *script) == found


def test_the_users_prompt_can_be_ones_own():
    params = {"prompt": "Ask on, {who}: {conversation}", "turns": 2}
    _, calls = done("conversation", params, {**ROW, "who": "Ann"}, "1", "2", "3")
    assert user(calls[1]) == "Ask on, Ann: [user]\nWhy is the sky blue?\n\n[assistant]\n1"
    assert built("conversation", params).reads() == ["text", "who"]


def test_a_prompt_for_nobody_is_refused_at_load():
    with pytest.raises(ConfigError, match="`prompt` is for a simulated user"):
        build_operator("conversation", {"prompt": "x", "messages_column": "m"})
