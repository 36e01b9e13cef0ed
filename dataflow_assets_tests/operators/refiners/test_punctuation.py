import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow_assets.errors import ConfigError
from dataflow_assets.operators import build_operator
from dataflow_assets_tests.operators.sample_tables import edited


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("So!!!! Why??? Well......", "So! Why? Well..."),
        ("好。。。真的！！！……………… —————— 等、、等", "好。真的！…… —— 等、等"),
        ("a... 你…… 我—— e.g. ?!?!", "a... 你…… 我—— e.g. ?!?!"),
        ("--- *** a == b // c :: d | --- |", "--- *** a == b // c :: d | --- |"),
    ],
)
def test_runs_become_as_long_as_print_has_them(text: str, short: str):
    assert edited("collapse_punctuation", [text]) == [short]


def test_marks_and_lengths_can_be_chosen():
    params = {"marks": "-\\^", "longest": {"-": 2}}
    assert edited("collapse_punctuation", ["a----b \\\\\\ ^^^ !!!"], params) == ["a--b \\ ^ !!!"]


@given(st.text("!.…—a。 "))
def test_collapsing_twice_changes_nothing_more(text: str):
    once = edited("collapse_punctuation", [text])
    assert edited("collapse_punctuation", once) == once


def test_a_length_below_one_is_refused():
    with pytest.raises(ConfigError, match="from 1 to 100"):
        build_operator("collapse_punctuation", {"longest": {"!": 0}})


def test_punctuation_of_every_script_goes_but_for_what_is_kept():
    text = "don't “well-known”，《书》 $5 + 3% ¿qué? a_b ،"
    assert edited("remove_punctuation", [text]) == ["dont wellknown书 5  3 qué ab "]
    kept = edited("remove_punctuation", [text], {"keep": "'-_]\\", "replacement": " "})
    assert kept == ["don't  well-known 书   5   3   qué  a_b  "]
