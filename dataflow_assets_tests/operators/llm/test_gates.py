import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow_assets.operators.llm.gates import GateParams, Gates, refusal_in, similarity
from dataflow_assets.serving.calls import CallFailed

SYSTEM = "You are a careful editor of a physics journal.\nShort."
TABLE = "| a | b |\n|---|:-:|\n| 1 | 2 |"
FUNCTION = f"{__package__}.gate_functions:no_digits"


def missed(
    answer: str, inputs: tuple[str, ...] = (), row: dict | None = None, **params: object
) -> str | None:
    """The class that the answer fails with, or None."""
    try:
        Gates(GateParams.model_validate(params), [SYSTEM]).check(answer, inputs, row)
    except CallFailed as error:
        assert error.raw == answer
        return error.error_class
    return None


@pytest.mark.parametrize(
    ("answer", "params", "gate"),
    [
        ("ok", {}, None),
        ("", {}, "not_empty"),
        (" \n\u3000", {"no_refusal": False}, "not_empty"),
        ("12345", {"min_chars": 5, "max_chars": 5}, None),
        ("1234", {"min_chars": 5}, "min_chars"),
        ("123456", {"max_chars": 5}, "max_chars"),
        ("这是中文。", {"language": "zh"}, None),
        ("This is English.", {"language": "zh"}, "language"),
        ("これは日本語の文です。", {"language": "zh"}, "language"),
        ("This is English, with 中文.", {"language": "en"}, None),
        ("这是中文。", {"language": "en"}, "language"),
        ("42", {"language": "en"}, None),
        ("Das ist ein deutscher Satz über das Wetter.", {"language": "de"}, None),
        ("This is an English sentence about the weather.", {"language": "de"}, "language"),
        ('Here: {"a": 1}', {"format": "json"}, None),
        ("no json", {"format": "json"}, "format"),
        (TABLE, {"format": "markdown_table"}, None),
        ("| a | b |", {"format": "markdown_table"}, "format"),
        ("```py\nx\n```", {"format": "code_block"}, None),
        ("x = 1", {"format": "code_block"}, "format"),
        ("Answer: 4", {"matches": r"Answer: \d+$"}, None),
        ("Answer: x", {"matches": r"Answer: \d+$"}, "matches"),
        ("a" * 40 + "b", {"matches": "(a+)+$"}, "matches"),
        ("a 1", {"function": FUNCTION}, "digits"),
        ("a", {"function": FUNCTION}, None),
    ],
)
def test_an_answer_passes_or_names_the_gate_that_it_missed(answer: str, params: dict, gate: str | None):
    assert missed(answer, **params) == (gate and f"gate:{gate}")


@pytest.mark.parametrize(
    "answer",
    [
        "I'm sorry, but I can't help with that.",
        "I’m sorry, but I can’t do this.",
        "Well. As an AI language model, I have no opinion.",
        "抱歉，我无法回答这个问题。",
        "作为一个AI语言模型，我没有感情。",
        "**I cannot fulfill this request.**",
    ],
)
def test_a_refusal_is_no_answer(answer: str):
    assert missed(answer) == "gate:no_refusal"
    assert missed(answer, no_refusal=False) is None


@pytest.mark.parametrize(
    "answer",
    [
        'She said: "I am sorry, but the shop is closed."',
        "I cannot believe how large the sun is.",
        "Sorry, but not sorry: a phrase of 2010.",
        "他说：抱歉，我来晚了。",
        "人工智能语言模型是一种模型。",
    ],
)
def test_what_only_sounds_like_a_refusal_passes(answer: str):
    assert refusal_in(answer) is None


def test_a_copy_of_the_input_is_told_by_its_likeness():
    text = "Water boils at 100 degrees at sea level, and lower on a mountain, as the pressure falls."
    assert missed(text.upper() + " \n", (text,), not_a_copy=True) == "gate:not_a_copy"
    assert missed(text.replace("100", "99"), ("x", text), not_a_copy=True) == "gate:not_a_copy"
    assert missed("On a mountain water boils below 100 degrees.", (text,), not_a_copy=True) is None
    assert missed(text, (text,)) is None


@given(st.text(), st.text())
def test_similarity_is_a_share_and_goes_both_ways(first: str, second: str):
    assert 0 <= similarity(first, second) == similarity(second, first) <= 1
    assert similarity(first, first) == 1


def test_a_line_of_the_prompt_is_a_leak_unless_the_row_says_it():
    leak = "Sure! you are  a careful editor of a physics\njournal. Water boils."
    assert missed(leak) == "gate:no_prompt_leak"
    assert missed(leak, ("We say: you are a careful editor of a physics journal.",)) is None
    assert missed(leak, no_prompt_leak=False) is None
    assert missed("Short. Yes.") is None


def test_same_language_is_that_of_the_input():
    assert missed("这是中文。", ("中文输入",), language="same") is None
    assert missed("English here.", ("中文输入",), language="same") == "gate:language"


def test_an_own_gate_sees_the_row():
    assert missed("a 1", (), {"strict": False}, function=FUNCTION) is None


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"min_chars": 3, "max_chars": 2}, "min_chars 3 is above max_chars 2"),
        ({"matches": "("}, "is no regular expression"),
        ({"language": "qq"}, "knows no language 'qq'"),
        ({"function": "no.such:thing"}, "cannot be imported"),
        ({"function": f"{__package__}.gate_functions:NOT_CALLABLE"}, "expected a function"),
    ],
)
def test_gates_that_make_no_sense_are_refused_at_load(params: dict, message: str):
    with pytest.raises(ValueError, match=message):
        GateParams.model_validate(params)


def test_the_phrases_and_the_own_function_are_part_of_what_a_step_is():
    plain = Gates(GateParams()).identity()
    own = Gates(GateParams(function=FUNCTION, no_refusal=False)).identity()
    assert (list(plain), list(own)) == (["refusals"], ["function"])
