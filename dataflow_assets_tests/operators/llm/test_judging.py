"""Operators that judge: score, filter, classify, compare."""

import pytest

from dataflow_assets.errors import ConfigError
from dataflow_assets.operators.llm.operator import Rejected
from dataflow_assets.operators.registry import build_operator
from dataflow_assets_tests.operators.llm.asking import built, done, error_class, user

ROW = {"instruction": "Why?", "answer": "Because.", "text": "Water boils.", "score_total": 7.0}
POINTS = {"reason": " Fair. ", "accuracy": 3, "relevance": 1.5, "clarity": 2, "usefulness": 0}
PAIR = {"instruction": "Why?", "answer_a": "So.", "answer_b": "Thus."}
CRITERION = {"criterion": "It is about water.", "reasons": ["off_topic", "broken"]}


def test_scores_are_columns_with_their_total():
    found, (call,) = done("score_with_llm", {}, ROW, POINTS)
    assert found == {
        "score_accuracy": 3.0,
        "score_relevance": 1.5,
        "score_clarity": 2.0,
        "score_usefulness": 0.0,
        "score_total": 6.5,
        "score_reason": "Fair.",
    }
    assert user(call).endswith("Sample:\n[instruction]\nWhy?\n\n[answer]\nBecause.\n\nJSON:")
    assert "- accuracy: 0-3 (what is said is true" in user(call)
    assert call.schema is not None and next(iter(call.schema["properties"])) == "reason"  # pyright: ignore


def test_a_rubric_of_ones_own_has_its_own_words():
    params = {"columns": ["text"], "rubric": {"depth": 5}, "meanings": {"depth": "how deep"}, "prefix": "d_"}
    found, (call,) = done("score_with_llm", params, ROW, {"reason": "", "depth": 4})
    assert found == {"d_depth": 4.0, "d_total": 4.0, "d_reason": ""}
    assert "\n- depth: 0-5 (how deep)\n" in user(call)
    assert "Sample:\nWater boils.\n" in user(call)
    assert built("score_with_llm", params).reads() == ["text"]


def test_the_rubric_is_said_in_chinese_to_chinese_rows():
    _, (call,) = done("score_with_llm", {"columns": ["text"]}, {"text": "水在一百度沸腾。"}, POINTS)
    assert "- accuracy: 0-3 (内容真实" in user(call)


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("8 of 10", "json_parse"),
        ({**POINTS, "accuracy": 4}, "schema_invalid"),
        ({**POINTS, "accuracy": -1}, "schema_invalid"),
        ({**POINTS, "accuracy": "3"}, "schema_invalid"),
        ({"accuracy": 3}, "schema_invalid"),
    ],
)
def test_points_beyond_the_rubric_fail_the_row(answer: object, found: str):
    assert error_class("score_with_llm", {}, ROW, answer) == found
    assert error_class("filter_with_llm", {}, ROW, answer) == found


@pytest.mark.parametrize("row", [{**ROW, "answer": None}, {"instruction": " ", "answer": ""}])
def test_a_sample_that_lacks_text_is_not_sent(row: dict):
    assert error_class("score_with_llm", {}, row) == "MissingValue"


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"rubric": {"total": 3}}, "cannot be called 'total'"),
        ({"rubric": {"a": 0}}, "has 0 points"),
        ({"meanings": {"b": "x"}}, "not in the rubric: 'b'"),
    ],
)
def test_a_rubric_that_makes_no_sense_is_refused_at_load(params: dict, message: str):
    with pytest.raises(ConfigError, match=message):
        build_operator("score_with_llm", params)


def test_a_filter_scores_and_keeps_from_seven_on():
    good = {**POINTS, "usefulness": 0.5}
    kept, _ = done("filter_with_llm", {}, ROW, good)
    assert isinstance(kept, dict) and kept["score_total"] == 7.0
    assert list(kept) == list(built("filter_with_llm").writes())
    dropped = done("filter_with_llm", {}, ROW, POINTS)[0]
    assert isinstance(dropped, Rejected) and dropped.reason == "score_below_minimum"
    assert set(dropped.details) == set(kept)


@pytest.mark.parametrize(
    ("score", "found"), [(7, {}), (7.0, {}), (6.99, Rejected("score_below_minimum", {"score_total": 6.99}))]
)
def test_a_score_that_is_there_is_only_compared(score: float, found: object):
    params = {"score_column": "score_total"}
    assert done("filter_with_llm", params, {"score_total": score}) == (found, [])
    assert (built("filter_with_llm", params).reads(), built("filter_with_llm", params).writes()) == (
        ["score_total"],
        {},
    )


@pytest.mark.parametrize(
    ("score", "found"), [(None, "MissingValue"), ("7", "WrongType"), (True, "WrongType")]
)
def test_what_is_no_score_fails_the_row(score: object, found: str):
    assert error_class("filter_with_llm", {"score_column": "s"}, {"s": score}) == found


def test_a_criterion_keeps_or_rejects_with_a_named_reason():
    kept, (call,) = done("filter_with_llm", CRITERION, ROW, {"reason": "yes", "verdict": "keep"})
    assert kept == {}
    assert "if this holds:\nIt is about water.\n" in user(call)
    said = {"reason": "torn", "verdict": "broken"}
    assert done("filter_with_llm", CRITERION, ROW, said)[0] == Rejected("broken", said)
    assert (
        error_class("filter_with_llm", CRITERION, ROW, {"reason": "", "verdict": "bad"}) == "schema_invalid"
    )


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"criterion": "x", "score_column": "s"}, "give criterion or score_column, not both"),
        ({"criterion": "x", "reasons": [" "]}, "a reason is blank"),
        ({"min_score": 11.0}, "min_score 11 is above the rubric's 10 points"),
    ],
)
def test_a_filter_with_two_rules_or_none_is_refused_at_load(params: dict, message: str):
    with pytest.raises(ConfigError, match=message):
        build_operator("filter_with_llm", params)


@pytest.mark.parametrize(
    "answer", [{"label": "Code"}, "Code", ' "code". ', '```json\n{"label": "Code"}\n```']
)
def test_a_label_is_taken_as_json_or_bare(answer: object):
    found, (call,) = done("classify", {"labels": ["Code", "prose"]}, ROW, answer)
    assert found == {"label": "Code"}
    assert "best?\n- Code\n- prose\nChoose" in user(call)


@pytest.mark.parametrize(("answer", "label"), [("A", "A"), ("a.", "a"), ("*NO.*", "No."), ("No.", "No.")])
def test_a_bare_label_is_taken_as_it_is_written_first(answer: str, label: str):
    assert done("classify", {"labels": ["A", "a", "No."]}, ROW, answer)[0] == {"label": label}


def test_a_bare_label_in_a_case_that_two_labels_have_fails_the_row():
    assert error_class("classify", {"labels": ["Ab", "aB"]}, ROW, "ab") == "json_parse"


def test_labels_may_have_meanings():
    _, (call,) = done("classify", {"labels": {"a": "all else", "b": "bees"}}, ROW, "a")
    assert "\n- a: all else\n- b: bees\n" in user(call)


@pytest.mark.parametrize(("answer", "found"), [({"label": "c"}, "schema_invalid"), ("maybe a", "json_parse")])
def test_what_is_no_label_fails_the_row(answer: object, found: str):
    assert error_class("classify", {"labels": ["a", "b"]}, ROW, answer) == found


@pytest.mark.parametrize("labels", [[], ["a"], ["a", "a"], ["a", " "], {"a": "x"}])
def test_labels_that_cannot_be_chosen_from_are_refused_at_load(labels: object):
    with pytest.raises(ConfigError, match="expected at least two labels"):
        build_operator("classify", {"labels": labels})


@pytest.mark.parametrize(
    ("first", "second", "verdict", "verdicts"),
    [
        ("first", "second", "a", ["a", "a"]),
        ("second", "first", "b", ["b", "b"]),
        ("first", "first", "tie", ["a", "b"]),
        ("tie", "first", "tie", ["tie", "b"]),
        ("tie", "tie", "tie", ["tie", "tie"]),
    ],
)
def test_only_what_wins_in_both_places_has_won(first: str, second: str, verdict: str, verdicts: list[str]):
    script = [{"reason": "r1", "winner": first}, {"reason": "r2", "winner": second}]
    found, _ = done("judge_pairs", {}, PAIR, *script)
    assert found == {"verdict": verdict, "verdicts": verdicts, "verdict_reasons": ["r1", "r2"]}


def test_both_orders_are_asked():
    _, calls = done("judge_pairs", {}, PAIR, *[{"reason": "", "winner": "tie"}] * 2)
    assert user(calls[0]).endswith("First answer:\nSo.\n\nSecond answer:\nThus.\n\nJSON:")
    assert user(calls[1]).endswith("First answer:\nThus.\n\nSecond answer:\nSo.\n\nJSON:")
    assert built("judge_pairs").reads() == ["answer_a", "answer_b", "instruction"]


def test_equal_texts_are_a_tie_without_a_call():
    found, calls = done("judge_pairs", {"prefix": "j_"}, {**PAIR, "answer_b": "So. "})
    assert (found, calls) == ({"j_verdict": "tie", "j_verdicts": [], "j_verdict_reasons": []}, [])


@pytest.mark.parametrize(
    ("row", "found"), [({"answer_a": None}, "MissingValue"), ({"instruction": ""}, "MissingValue")]
)
def test_a_pair_that_lacks_text_is_not_sent(row: dict, found: str):
    assert error_class("judge_pairs", {}, {**PAIR, **row}) == found


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"a_column": "x", "b_column": "x"}, "are both 'x'"),
        ({"prompt": "{first} or {other}?"}, r"the prompt lacks {second}"),
    ],
)
def test_a_comparison_of_one_is_refused_at_load(params: dict, message: str):
    with pytest.raises(ConfigError, match=message):
        build_operator("judge_pairs", params)
