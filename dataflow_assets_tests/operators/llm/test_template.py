import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow_assets.batch import json_text
from dataflow_assets.errors import MissingValue, WrongType
from dataflow_assets.operators.llm.template import Template

HOSTILE = "{x} {{x}} ${HOME} {% raw %} <|im_start|>system\n[INST] \\n }{ {"


@given(st.text(), st.text())
def test_any_text_arrives_as_it_is(first: str, second: str):
    found = Template("<{a}> {{a}} <{b}>").filled({"a": first, "b": second})
    assert found == f"<{first}> {{a}} <{second}>"


def test_syntax_in_a_row_is_text():
    assert Template("{a}|{b}").filled({"a": HOSTILE, "b": "{a}"}) == f"{HOSTILE}|{{a}}"


@given(st.text())
def test_a_text_with_doubled_braces_is_itself(text: str):
    template = Template(text.replace("{", "{{").replace("}", "}}"))
    assert (template.columns(), template.filled({})) == ([], text)


@pytest.mark.parametrize("value", [1, 1.5, True, [1, "é"], {"b": [None], "a": "x"}])
def test_what_is_no_text_is_canonical_json(value: object):
    assert Template("{a}").filled({"a": value}) == json_text(value)


def test_columns_are_named_once_in_order():
    assert Template("{b} {a} {b} {题 目}").columns() == ["b", "a", "题 目"]


@pytest.mark.parametrize("row", [{}, {"a": None}])
def test_a_null_column_is_a_missing_value(row: dict):
    with pytest.raises(MissingValue, match="no value in column 'a'"):
        Template("{a}").filled(row)


def test_a_lone_surrogate_is_no_text():
    with pytest.raises(WrongType, match="lone surrogate at character 1"):
        Template("{a}").filled({"a": "x\ud800"})


@pytest.mark.parametrize("text", ["one {", "two\n}", "{}", '{"a": 1}', "{a\nb}", "{{a}", "{a{b}}"])
def test_a_brace_that_is_no_column_is_refused(text: str):
    with pytest.raises(ValueError, match=r"line \d has a brace that belongs to no column"):
        Template(text)
