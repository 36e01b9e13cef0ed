import pytest

from dataflow_assets.operators.llm.qa import pairs_schema
from dataflow_assets.operators.llm.shipped import prompt_text
from dataflow_assets.serving.structured import schema_prompt
from dataflow_assets_tests.operators.llm.asking import built, done, error_class, user

TEXT = "Water boils at 100 degrees.\nOn a mountain it boils at less."
ROW = {"text": TEXT}
FIRST = {"question": "When does water boil?", "answer": "At 100 degrees.", "evidence": [TEXT.split("\n")[0]]}
SECOND = {
    "question": "And on a mountain?",
    "answer": "At less.",
    "evidence": ["On a  mountain it boils at less."],
}
BOTH = {"question": "Is it hotter?", "answer": "No.", "evidence": [*FIRST["evidence"], *SECOND["evidence"]]}


def pairs(*found: dict) -> dict:
    return {"pairs": list(found)}


def test_each_pair_is_a_child_with_its_evidence():
    found, (call,) = done("generate_qa", {"pairs": 2}, ROW, pairs(FIRST, SECOND))
    assert found == [{**FIRST, "hops": 1}, {**SECOND, "hops": 1}]
    prompt = prompt_text("generate_qa.single", "en").replace("{pairs}", "2").replace("{text}", TEXT)
    assert user(call) == f"{schema_prompt(pairs_schema(1))}\n{prompt}\n\nJSON:"
    assert call.schema == pairs_schema(1)


def test_the_operator_splits_into_columns():
    operator = built("generate_qa", {"column": "chunk", "repair": True})
    assert operator.splits and operator.reads() == ["chunk"]
    kinds = {
        "question": "string",
        "answer": "string",
        "evidence": "json",
        "hops": "int64",
        "repaired": "bool",
    }
    assert operator.writes() == kinds


def test_multi_hop_pairs_join_two_passages():
    found, (call,) = done("generate_qa", {"hops": "multi"}, ROW, pairs(BOTH))
    assert found == [{**BOTH, "hops": 2}]
    assert "multi-hop" in user(call)
    assert error_class("generate_qa", {"hops": "multi"}, ROW, pairs(FIRST)) == "schema_invalid"


def test_questions_come_once_and_no_more_than_asked_for():
    again = {**FIRST, "question": " When does water boil? ", "answer": "Later."}
    found, _ = done("generate_qa", {"pairs": 2}, ROW, pairs(FIRST, again, SECOND, BOTH))
    assert found == [{**FIRST, "hops": 1}, {**SECOND, "hops": 1}]


def test_mended_pairs_are_marked():
    found, _ = done("generate_qa", {"repair": True}, ROW, str(pairs(FIRST)))
    assert found == [{**FIRST, "hops": 1, "repaired": True}]


def test_evidence_can_be_asked_to_stand_in_the_text():
    params = {"quoted_evidence": True}
    assert done("generate_qa", params, ROW, pairs(SECOND))[0] == [{**SECOND, "hops": 1}]
    made_up = {**FIRST, "evidence": ["Water freezes."]}
    assert error_class("generate_qa", params, ROW, pairs(made_up)) == "gate:quoted_evidence"


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("I have no idea", "json_parse"),
        ({"pairs": []}, "schema_invalid"),
        ([FIRST], "schema_invalid"),
        (pairs({**FIRST, "evidence": []}), "schema_invalid"),
        (pairs(SECOND, {**FIRST, "answer": " "}), "gate:not_empty"),
        (pairs({**FIRST, "question": "\n"}), "gate:not_empty"),
        (pairs({**FIRST, "answer": "I'm sorry, but I can't."}), "gate:no_refusal"),
        (pairs({**FIRST, "answer": "x"}), "gate:min_chars"),
    ],
)
def test_an_answer_that_is_no_pairs_fails_the_row(answer: object, found: str):
    assert error_class("generate_qa", {"gates": {"min_chars": 2}}, ROW, answer) == found


@pytest.mark.parametrize("text", [None, " "])
def test_no_text_is_not_sent(text: str | None):
    assert error_class("generate_qa", {}, {"text": text}) == "MissingValue"
