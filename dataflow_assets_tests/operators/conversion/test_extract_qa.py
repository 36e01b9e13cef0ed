"""Pairs out of texts and JSON: each a row, and why a row has none."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow_assets.batch import rows_of
from dataflow_assets.engines.engine import check_law
from dataflow_assets.errors import ConfigError
from dataflow_assets.operators.conversion.json_path import found_at, parsed_path
from dataflow_assets.operators.registry import build_operator
from dataflow_assets_tests.operators.sample_tables import applied, ids, table, typed_table

PATTERN = r"(?m)^(?:Q|问)[:：]\s*(?P<question>.+)\n(?:A|答)[:：]\s*(?P<answer>.+)$"
TEXT = "Intro\nQ: What is it? \nA: A test.\n\n问：为什么？\n答：因为。\n"


def pairs(outcome) -> list[tuple]:
    return [(row["row_id"], row["question"], row["answer"]) for row in rows_of(outcome.kept)]


def test_each_match_is_a_row():
    rows = table(text=[TEXT, "no pair"], lang=["en", "zh"])
    operator = build_operator("extract_qa", {"pattern": PATTERN})
    outcome = operator.apply(rows)
    check_law(operator, rows, outcome, "test")
    assert pairs(outcome) == [("r0/0", "What is it?", "A test."), ("r0/1", "为什么？", "因为。")]
    assert outcome.kept["lang"].to_pylist() == ["en", "en"]
    assert outcome.rejected is not None and outcome.rejected["reject_reason"].to_pylist() == ["no_match"]


def test_a_row_without_text_is_kept_or_rejected_as_on_null_says():
    rows = table(text=[None, TEXT, "no pair"])
    operator = build_operator("extract_qa", {"pattern": PATTERN, "on_null": "keep"})
    outcome = operator.apply(rows)
    check_law(operator, rows, outcome, "test")
    assert pairs(outcome)[:2] == [("r0/0", None, None), ("r1/0", "What is it?", "A test.")]
    rejected = applied("extract_qa", rows, {"pattern": PATTERN, "on_null": "reject"}).rejected
    assert rejected is not None and rejected["reject_reason"].to_pylist() == ["missing_text", "no_match"]


def test_each_object_at_the_path_is_a_row():
    answer = {
        "data": [{"pairs": [{"q": "a", "a": {"text": "b"}}, {"q": 7, "a": {"text": True}}]}, {"pairs": []}]
    }
    texts = [f"Here it is:\n```json\n{json.dumps(answer)}\n```", '{"other": 1}', "no json"]
    params = {"path": "$.data[*].pairs[*]", "fields": {"question": "q", "answer": "a.text"}}
    outcome = applied("extract_qa", typed_table("string", texts), params)
    assert pairs(outcome) == [("r0/0", "a", "b"), ("r0/1", "7", "true")]
    assert ids(outcome.rejected) == ["r1"]
    assert outcome.failed is not None and outcome.failed["error_class"].to_pylist() == ["json_parse"]


def test_json_columns_need_no_text():
    rows = table(text=[[{"question": "a", "answer": "b"}], '[{"question": "c", "answer": "d"}]', 7])
    outcome = applied("extract_qa", rows, {"path": "$[*]"})
    assert pairs(outcome) == [("r0/0", "a", "b"), ("r1/0", "c", "d")]
    assert ids(outcome.failed) == ["r2"]


@pytest.mark.parametrize(
    ("pair", "error", "message"),
    [
        ({"question": "a"}, "MissingValue", "missing answer: a pair of the row has no answer"),
        ({"question": " ", "answer": "b"}, "MissingValue", "missing question"),
        ({"question": "a", "answer": None}, "MissingValue", "missing answer"),
        ({"question": ["a"], "answer": "b"}, "WrongType", "question of a pair is ['a'], expected one text"),
        ("text", "MissingValue", "missing question"),
    ],
)
def test_a_pair_that_is_none_fails_its_row(pair: object, error: str, message: str):
    rows = table(text=[[{"question": "a", "answer": "b"}, pair]])
    outcome = applied("extract_qa", rows, {"path": "$[*]"})
    assert outcome.kept.num_rows == 0 and outcome.failed is not None
    assert outcome.failed["error_class"].to_pylist() == [error]
    assert message in outcome.failed["error_message"][0].as_py()


def test_json_with_mistakes_is_mended_where_that_is_said():
    rows = typed_table("string", ["[{'question': 'a', 'answer': 'b',}]"])
    assert pairs(applied("extract_qa", rows, {"path": "$[*]", "repair": True})) == [("r0/0", "a", "b")]


def test_a_pattern_that_does_not_end_fails_its_row():
    rows = typed_table("string", ["a" * 40 + "!", "ab"])
    outcome = applied("extract_qa", rows, {"pattern": "(?P<question>(a|a)+)(?P<answer>b)", "timeout_s": 0.05})
    assert ids(outcome.failed) == ["r0"] and ids(outcome.kept) == ["r1/0"]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({}, "give pattern or path"),
        ({"pattern": PATTERN, "path": "$"}, "give pattern or path"),
        ({"pattern": "(a)"}, "no named group"),
        ({"pattern": "("}, "is no regular expression"),
        ({"pattern": "(?P<row_id>a)"}, "'row_id' has a name that this package uses"),
        ({"pattern": PATTERN, "fields": {"a": "b"}}, "fields belongs to path"),
        ({"path": "$[x]"}, "is no path"),
        ({"path": "$", "fields": {}}, "fields"),
    ],
)
def test_params_that_find_no_columns_are_refused(params: dict, message: str):
    with pytest.raises(ConfigError, match=message):
        build_operator("extract_qa", params)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("$", [{"a": [{"b.c": 1}, {"b.c": 2}]}]),
        ("a[*]", [{"b.c": 1}, {"b.c": 2}]),
        ('$.a[1]["b.c"]', [2]),
        ("$.a[5]", []),
        ("$.a.b", []),
        ("$[*]", []),
    ],
)
def test_paths(path: str, found: list):
    assert found_at({"a": [{"b.c": 1}, {"b.c": 2}]}, parsed_path(path)) == found


WORDS = st.text(st.characters(exclude_categories=["Cs", "Zs", "Cc"]), min_size=1).filter(str.strip)


@given(st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=5))
def test_what_is_written_as_json_is_found(written: list[tuple[str, str]]):
    text = json.dumps([{"question": question, "answer": answer} for question, answer in written])
    outcome = applied("extract_qa", typed_table("string", [text]), {"path": "$[*]"})
    assert [pair[1:] for pair in pairs(outcome)] == [(q.strip(), a.strip()) for q, a in written]
