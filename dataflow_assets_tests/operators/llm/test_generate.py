import pytest

from dataflow_assets.errors import ConfigError, Stopped
from dataflow_assets.operators.registry import build_operator
from dataflow_assets.serving.calls import CallFailed
from dataflow_assets.serving.structured import schema_prompt
from dataflow_assets_tests.operators.llm.asking import built, done, error_class, failure, user

ROW = {"text": "t"}
ASK = {"prompt": "Title of {text}"}
TALK = [
    {"role": "user", "content": "Hi"},
    {"from": "gpt", "value": "Hello"},
    {"from": "human", "value": "{x}"},
]
SCHEMA = {
    "title": "string",
    "stars": "integer",
    "price": "number",
    "sold": "boolean",
    "tags": ["string"],
    "note": "string?",
}
FIELDS = {"title": "A", "stars": 2, "price": 3, "sold": True, "tags": ["x"], "note": None}
STRUCTURED = {"prompt": "Facts of {text}", "schema": SCHEMA}


def test_the_answer_is_a_column():
    found, calls = done("generate", {**ASK, "output_column": "title"}, ROW, "A title")
    assert found == {"title": "A title"}
    assert [(call.messages, call.n, call.sample, call.schema) for call in calls] == [
        (({"role": "user", "content": "Title of t"},), 1, 0, None)
    ]
    assert built("generate", ASK).writes() == {"generated": "string"}


def test_several_answers_are_a_list_and_each_has_its_own_seed():
    params = {**ASK, "n": 3, "seed": 5}
    found, calls = done("generate", params, ROW, "a", "b", "a")
    assert found == {"generated": ["a", "b", "a"]}
    assert [(call.sample, call.parameters["seed"]) for call in calls] == [(0, 5), (1, 6), (2, 7)]
    assert built("generate", params).writes() == {"generated": "json"}


def test_samples_that_were_paid_for_are_waited_for():
    params = {**ASK, "n": 3}
    error = failure("generate", params, ROW, CallFailed("timeout", "late"), "b", CallFailed("empty", "none"))
    assert str(error) == "late"
    assert isinstance(failure("generate", params, ROW, CallFailed("empty", ""), Stopped("now"), "c"), Stopped)


def test_a_conversation_is_sent_as_it_is():
    _, (call,) = done("generate", {"messages_column": "talk", "system": "Be kind"}, {"talk": TALK}, "ok")
    roles = [message["role"] for message in call.messages]
    assert roles == ["system", "user", "assistant", "user"]
    assert user(call) == "{x}"


def test_a_prompt_follows_the_conversation():
    params = {"messages_column": "talk", "prompt": "Sum it up for {who}."}
    _, (call,) = done("generate", params, {"talk": TALK[:2], "who": "Ann"}, "ok")
    assert [message["content"] for message in call.messages] == ["Hi", "Hello", "Sum it up for Ann."]
    assert built("generate", params).reads() == ["who", "talk"]


def test_the_system_message_of_the_parameters_replaces_that_of_the_row():
    talk = [{"role": "system", "content": "Old"}, {"role": "user", "content": "Hi"}]
    _, (kept,) = done("generate", {"messages_column": "talk"}, {"talk": talk}, "ok")
    _, (new,) = done("generate", {"messages_column": "talk", "system": "New"}, {"talk": talk}, "ok")
    assert [call.messages[0]["content"] for call in (kept, new)] == ["Old", "New"]
    assert len(new.messages) == 2


@pytest.mark.parametrize(
    ("talk", "found"),
    [
        (None, "MissingValue"),
        ([], "MissingValue"),
        ("Hi", "WrongType"),
        ([{"role": "tool", "content": "x"}], "WrongType"),
        ([{"role": "user", "content": None}], "WrongType"),
        ([{"role": "user", "content": "\ud800"}], "WrongType"),
        (TALK[:2], "WrongType"),
    ],
)
def test_what_is_no_conversation_is_not_sent(talk: object, found: str):
    assert error_class("generate", {"messages_column": "talk"}, {"talk": talk}) == found


def test_a_null_column_is_not_sent():
    error = failure("generate", ASK, {"text": None})
    assert str(error) == "missing text: the row has no value in column 'text'"


def test_a_schema_becomes_columns():
    found, (call,) = done("generate_structured", STRUCTURED, ROW, FIELDS)
    assert found == {**FIELDS, "price": 3.0}
    assert isinstance(found, dict) and isinstance(found["price"], float)
    assert user(call) == f"{schema_prompt(SCHEMA)}\nFacts of t\n\nJSON:"
    assert call.schema is not None and call.schema["required"] == list(SCHEMA)


def test_columns_have_the_types_of_the_schema():
    kinds = ["string", "int64", "float64", "bool", "json", "string"]
    assert list(built("generate_structured", STRUCTURED).writes().values()) == kinds


def test_json_schema_is_taken_as_it_is():
    schema = {"type": "object", "properties": {"a": {"type": ["integer", "null"]}, "b": {"anyOf": [{}]}}}
    operator = built("generate_structured", {"prompt": "{text}", "schema": schema})
    assert operator.writes() == {"a": "int64", "b": "json"}
    assert done("generate_structured", {"prompt": "{text}", "schema": schema}, ROW, {"b": 1})[0] == {
        "a": None,
        "b": 1,
    }


def test_mended_json_is_marked_only_where_it_is_allowed():
    params = {"prompt": "{text}", "schema": {"a": "integer"}, "repair": True}
    assert done("generate_structured", params, ROW, "{'a': 1}")[0] == {"a": 1, "repaired": True}
    assert done("generate_structured", params, ROW, {"a": 1})[0] == {"a": 1, "repaired": False}
    assert built("generate_structured", params).writes()["repaired"] == "bool"
    assert error_class("generate_structured", {**params, "repair": False}, ROW, "{'a': 1}") == "json_parse"


@pytest.mark.parametrize(
    ("change", "gates", "found"),
    [
        ({"stars": "2"}, {}, "schema_invalid"),
        ({"stars": 2**63}, {}, "schema_invalid"),
        ({"title": " "}, {}, "gate:not_empty"),
        ({"title": "I'm sorry, but I can't."}, {}, "gate:no_refusal"),
        ({"title": "A"}, {"min_chars": 2}, "gate:min_chars"),
    ],
)
def test_fields_that_are_wrong_fail_the_row(change: dict, gates: dict, found: str):
    assert (
        error_class("generate_structured", {**STRUCTURED, "gates": gates}, ROW, {**FIELDS, **change}) == found
    )


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"type": "array", "items": {}}, "the schema is of no object with fields"),
        ({"a": "strin"}, "there is no type 'strin'"),
        ({"row_id": "string"}, "reserved column names: 'row_id'"),
        ({"repaired": "string"}, "the column `repaired` is taken"),
    ],
)
def test_a_schema_without_usable_columns_is_refused_at_load(schema: dict, message: str):
    with pytest.raises(ConfigError) as error:
        build_operator("generate_structured", {"prompt": "{text}", "schema": schema, "repair": True})
    assert message in str(error.value)
