from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow_assets.errors import ConfigError
from dataflow_assets.operators.llm.final_answer import final_answer, normalized
from dataflow_assets.operators.llm.operator import Rejected
from dataflow_assets.operators.registry import build_operator
from dataflow_assets_tests.operators.llm.asking import built, done, error_class, user

ROW = {"instruction": "What is 6 x 7?"}


def answers(*found: str) -> list[str]:
    return [f"Let me see.\nAnswer: {each}" for each in found]


def test_the_answer_of_the_majority_is_kept():
    script = answers("41", "**42**", "42.0", "$42$.", "43")
    found, calls = done("vote", {"seed": 1}, ROW, *script)
    votes = ["41", "42", "42", "42", "43"]
    assert found == {"answer": script[1], "final_answer": "42", "agreement": 0.6, "votes": votes}
    assert [(call.sample, call.parameters["seed"]) for call in calls] == [(n, n + 1) for n in range(5)]
    assert user(calls[0]).endswith("Question:\nWhat is 6 x 7?")


@pytest.mark.parametrize(
    ("votes", "least", "found"),
    [
        ("aabb", 0.0, None),
        ("aabc", 0.5, "a"),
        ("aabc", 0.6, None),
        ("aaaaaaabcd", 0.7, "a"),
        ("abcd", 0.25, None),
    ],
)
def test_a_row_without_a_majority_is_rejected(votes: str, least: float, found: str | None):
    params = {"samples": len(votes), "min_agreement": least, "prefix": "v_"}
    result, _ = done("vote", params, ROW, *answers(*votes))
    if found is None:
        assert result == Rejected("no_majority", {"votes": list(votes)})
    else:
        assert isinstance(result, dict) and result["v_final_answer"] == found
        assert list(result) == list(built("vote", params).writes())


def test_a_sample_without_a_final_answer_has_no_vote():
    found, _ = done("vote", {"extract": "number", "samples": 3}, ROW, "is 42", "is 42", "no idea")
    assert isinstance(found, dict) and found["votes"] == ["42", "42", None]
    assert done("vote", {"extract": "number", "samples": 2}, ROW, "no", "no")[0] == Rejected(
        "no_majority", {"votes": [None, None]}
    )


def test_a_sample_that_fails_fails_the_row():
    assert error_class("vote", {"samples": 2}, ROW, "ok", "As an AI language model, no.") == "gate:no_refusal"


@pytest.mark.parametrize(
    ("text", "extract", "found"),
    [
        (r"so \boxed{\frac{1}{2}} it is", "auto", r"\frac{1}{2}"),
        (r"\boxed{1} or \boxed{2}", "boxed", "2"),
        (r"\boxed{1", "boxed", None),
        ("no box 3", "boxed", None),
        ("Answer: 1\nNo.\n**Final answer:** 2", "auto", "** 2"),
        ("过程……\n答案：北京", "auto", "北京"),
        ("just this", "auto", "just this"),
        ("from 1,000 to -2,500.5 m", "number", "-2,500.5"),
        ("A is wrong, so (B).", "choice", "B"),
        ("All of it", "choice", None),
        ("The answer is B. I am sure.", "choice", "B"),
        ("Answer: C. I hope this helps!", "choice", "C"),
        ("It is D. A cat says so, and I'm glad", "choice", "D"),
        ("so A is right", "choice", "A"),
        ("选 A 因为", "choice", "A"),
        ("Answer: I", "choice", "I"),
        ("10-5", "number", "5"),
        ("on 2024-01-15", "number", "15"),
        ("x = -3", "number", "-3"),
        ("about −5", "number", "−5"),
        ("p=.5", "number", ".5"),
        ("No.5", "number", "5"),
        ("1,2", "number", "2"),
        ("12,3456", "number", "3456"),
        ("1.5e-3 m", "number", "1.5e-3"),
        ("Answer: 1", "text", "Answer: 1"),
    ],
)
def test_the_final_answer_is_found(text: str, extract, found: str | None):
    assert final_answer(text, extract) == found


def test_an_own_pattern_finds_the_last_match():
    assert final_answer("x=1 x=2", "auto", r"x=(\d)") == "2"
    assert final_answer("x=1 x=2", "auto", r"x=\d") == "x=2"
    assert final_answer("y", "auto", r"x=\d") is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("42", " 42.00 "),
        ("1,000", "1000"),
        ("１２", "12"),
        (r"\text{Paris}", "paris."),
        ("**Yes**", "yes"),
        ("北京。", "北京"),
        ("a  b", "A B"),
        ("“Paris.”", "Paris!"),
        (r"\(42\)", "42"),
        ("−5", "-5"),
        (".5", "0.50"),
        ("(B).", "b"),
        ("(3,4)", "（3.0， 4）."),
        ("1,000, 2", "1000,2"),
    ],
)
def test_answers_that_say_the_same_are_equal(one: str, other: str):
    assert normalized(one) == normalized(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("42", "43"),
        ("a b", "ab"),
        ("-1", "1"),
        ("1.5", "15"),
        (".0625", "625"),
        ("(3,4)", "34"),
        ("1,2", "12"),
        ("(1,000)", "(1,0)"),
        ("5!", "5"),
        ("n!", "n"),
        ("10²", "102"),
        ("f'", "f"),
        ("1234567890123456789012345678901", "1234567890123456789012345678902"),
    ],
)
def test_answers_that_differ_stay_different(one: str, other: str):
    assert normalized(one) != normalized(other)


NUMBERS = st.decimals(-(10**40), 10**40, allow_nan=False, places=6)
TUPLES = st.lists(st.integers(-2000, 2000), min_size=2, max_size=4)
AROUND = st.sampled_from(["{}", "${}$.", "**{}**", r"\({}\)", r"\text{{{}}}", " “{}” ", "`{}`,"])
LISTED = st.sampled_from([("({})", ","), ("({}).", ", "), ("（ {} ）", " ， "), ("$({})$", ",  ")])


def spelled_number(number: Decimal, data: st.DataObject) -> str:
    plain = data.draw(st.sampled_from([f"{number:f}", f"{number:,f}", f"({number:f})", f"{number:+f}"]))
    plain = data.draw(st.sampled_from([plain, plain.replace("-", "−"), plain.replace("1", "１")]))
    return data.draw(AROUND).format(plain)


def spelled_tuple(numbers: list[int], data: st.DataObject) -> str:
    around, comma = data.draw(LISTED)
    return around.format(comma.join(map(str, numbers)))


@given(NUMBERS, NUMBERS, st.data())
def test_numbers_are_equal_however_they_are_spelled_and_only_then(one, other, data):
    spelled = [normalized(spelled_number(number, data)) for number in (one, one, other)]
    assert spelled[0] == spelled[1]
    assert (spelled[0] == spelled[2]) == (one == other)


@given(TUPLES, TUPLES, st.data())
def test_tuples_are_equal_however_they_are_spelled_and_only_then(one, other, data):
    spelled = [normalized(spelled_tuple(numbers, data)) for numbers in (one, one, other)]
    assert spelled[0] == spelled[1]
    assert (spelled[0] == spelled[2]) == (one == other)
    assert spelled[0] != normalized("".join(map(str, one)))


@given(st.text())
def test_normalizing_twice_is_normalizing_once(text: str):
    assert normalized(normalized(text)) == normalized(text)


def test_a_pattern_that_is_none_is_refused_at_load():
    with pytest.raises(ConfigError, match="is no regular expression"):
        build_operator("vote", {"pattern": "("})
