import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow_assets.serving.calls import CallFailed
from dataflow_assets.serving.structured import json_schema, parsed, schema_prompt, validated

CASE = Path(__file__).parents[1] / "cases" / "23_fenced_json_variants"
CONTENTS = json.loads((CASE / "input.contents.json").read_text("utf-8"))
EXPECTED = json.loads((CASE / "expected.json").read_text("utf-8"))
MENDED = ("fullwidth_quotes", "python_dict")
SHORT = {
    "question": "string",
    "score": {"type": "integer", "minimum": 1, "maximum": 5},
    "tags": ["string"],
    "note": "string?",
    "by": {"name": "string", "type": "string"},
}
GOOD = {"question": "q", "score": 1, "tags": [], "note": None, "by": {"name": "n", "type": "t"}}
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
containers = json_values.filter(lambda value: isinstance(value, dict | list))


def problem(text: str, repair: bool = False) -> CallFailed:
    with pytest.raises(CallFailed) as error:
        parsed(text, repair)
    return error.value


@pytest.mark.parametrize("case", CONTENTS, ids=[case["name"] for case in CONTENTS])
def test_case_23_is_parsed_or_fails_with_its_text(case: dict):
    expected = EXPECTED[case["name"]]
    if expected is None:
        error = problem(case["content"])
        assert (error.error_class, error.raw) == ("json_parse", case["content"])
    else:
        assert parsed(case["content"]) == (expected, False)


@pytest.mark.parametrize("case", CONTENTS, ids=[case["name"] for case in CONTENTS])
def test_case_23_is_repaired_only_where_asked_and_is_marked(case: dict):
    expected = {"q": "a", "n": 1} if case["name"] in MENDED else EXPECTED[case["name"]]
    if expected is None:
        assert problem(case["content"], repair=True).error_class == "json_parse"
    else:
        assert parsed(case["content"], repair=True) == (expected, case["name"] in MENDED)


@given(containers)
def test_what_is_json_comes_back_as_it_is(value: object):
    text = json.dumps(value, ensure_ascii=False)
    for wrapped in (text, f"```json\n{text}\n```", f"<think>[9] {{</think>{text}"):
        found, repaired = parsed(wrapped)
        assert (json.dumps(found), repaired) == (json.dumps(value), False)


@given(st.text())
def test_any_text_is_parsed_or_is_a_json_parse_failure(text: str):
    for repair in (False, True):
        try:
            assert isinstance(parsed(text, repair)[0], dict | list)
        except CallFailed as error:
            assert error.error_class == "json_parse"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('As in [1] and [2, 3]: {"a": 1}.', {"a": 1}),
        ('{"a": 1} is shorter than {"a": 1, "b": [1, 2]}', {"a": 1, "b": [1, 2]}),
        ('```python\nx = {1}\n```\n```json\n{"a": 1}\n```', {"a": 1}),
        ('no tag before</think>{"a": 1}', {"a": 1}),
        ('{"a": "what does <think> do?"}', {"a": "what does <think> do?"}),
        ('{"id": 12345678901234567890123}', {"id": 12345678901234567890123}),
        ("[0.1, 1e3]", [0.1, 1000.0]),
    ],
)
def test_the_right_piece_is_taken(text: str, value: object):
    assert parsed(text) == (value, False)


@pytest.mark.parametrize(
    "text",
    [
        '{"a": {"b": 1}, broken',
        '[{"q": 1}, {"q"',
        '```json\n{"a": {"b": 1}, oops}\n```',
        '{"a": NaN}',
        '{"a": 1e999}',
        '{"a": "\\ud800"}',
        "[" * 100_000,
    ],
)
def test_no_part_of_broken_json_is_taken_for_the_whole(text: str):
    assert problem(text).error_class == "json_parse"


def test_a_value_that_fits_comes_back_as_it_is():
    assert validated(GOOD, SHORT) is GOOD
    assert validated(GOOD, json_schema(SHORT)) is GOOD


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"score": 6}, "at $.score found 6, expected maximum 5"),
        ({"score": "3"}, "at $.score found '3', expected type 'integer'"),
        ({"score": 3.0}, "at $.score found 3.0, expected type 'integer'"),
        ({"score": True}, "at $.score found true, expected type 'integer'"),
        ({"tags": ["a", 1]}, "at $.tags[1] found 1, expected type 'string'"),
        ({"note": 1}, 'at $.note found 1, expected type ["string", "null"]'),
        ({"by": {"name": "n"}}, "expected the field 'type' too"),
        ({"more": 1}, "expected no other fields than: question, score, tags, note, by"),
    ],
)
def test_a_value_that_does_not_fit_is_told_with_its_place(change: dict, message: str):
    with pytest.raises(CallFailed) as error:
        validated({**GOOD, **change}, SHORT, raw="the answer")
    assert (error.value.error_class, error.value.raw) == ("schema_invalid", "the answer")
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({}, "the schema is empty"),
        ({"a": "strin"}, "field 'a': there is no type 'strin'"),
        ({"a": []}, "field 'a': found []"),
        ({"a": 3}, "field 'a': found 3"),
        ({"type": "object", "properties": {"a": {"type": "strin"}}}, "at $.properties.a.type"),
        ({"type": "object", "properties": {"a": {"$ref": "#/$defs/b"}}}, "leads nowhere"),
        ({"type": "object", "properties": {"a": {"$ref": "http://a.test/b"}}}, "leads nowhere"),
    ],
)
def test_a_schema_that_is_none_is_told(schema: dict, message: str):
    with pytest.raises(ValueError) as error:
        json_schema(schema)
    assert message in str(error.value)


def test_references_within_a_schema_are_followed():
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/b"}},
        "$defs": {"b": {"type": "integer"}},
    }
    assert validated({"a": 1}, schema) == {"a": 1}
    with pytest.raises(CallFailed, match=r"\$\.a found 'x'"):
        validated({"a": "x"}, schema)


@pytest.mark.parametrize(("language", "word"), [("en", "nothing else"), ("zh", "只输出")])
def test_a_schema_is_said_in_the_language(language, word: str):
    first, schema = schema_prompt({"a": "string"}, language).split("\n")
    assert word in first
    assert json.loads(schema) == json_schema({"a": "string"})
