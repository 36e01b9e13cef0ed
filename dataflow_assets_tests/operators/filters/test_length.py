import re

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow_assets.errors import ConfigError
from dataflow_assets.operators import build_operator
from dataflow_assets.operators.filters.length import count_words
from dataflow_assets_tests.operators.sample_tables import applied, ids, table

SPACES = " \t\n\x0b\x0c\r\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2000\u200a\u2028\u2029\u202f\u205f\u3000"
spaced = st.text(st.sampled_from("ab中é👍" + SPACES + "\u200b\x1b\u180e"))


@pytest.mark.parametrize(
    ("params", "reasons"),
    [
        ({"min_chars": 2}, ["too_short", None, None, None]),
        ({"max_chars": 2}, [None, None, "too_long", "too_long"]),
        ({"min_chars": 2, "max_chars": 2}, ["too_short", None, "too_long", "too_long"]),
        ({"min_words": 2}, ["too_short", "too_short", None, "too_short"]),
        ({"max_words": 1}, [None, None, "too_long", None]),
        ({"min_words": 2, "max_chars": 2}, ["too_short", "too_short", "too_long", "too_short"]),
    ],
)
def test_bounds_belong_to_the_range(params: dict[str, int], reasons: list[str | None]):
    outcome = applied("filter_length", table(text=["", "中文", "ab cd", "一句话没有空格"]), params)
    assert ids(outcome.kept) == [f"r{row}" for row, reason in enumerate(reasons) if reason is None]
    assert outcome.rejected is not None
    assert outcome.rejected["reject_reason"].to_pylist() == [reason for reason in reasons if reason]


@given(st.lists(spaced))
def test_words_are_those_between_any_white_space(texts: list[str]):
    column = pa.chunked_array([pa.array(texts, pa.large_string())])
    words = [re.findall(rf"[^{SPACES}]+", text) for text in texts]
    assert count_words(column).to_pylist() == [len(found) for found in words]


def test_characters_are_code_points():
    assert ids(applied("filter_length", table(text=["👨‍👩‍👧"]), {"min_chars": 5, "max_chars": 5}).kept) == [
        "r0"
    ]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({}, "at least one of"),
        ({"min_chars": 3, "max_chars": 2}, "min_chars 3 is above max_chars 2"),
        ({"min_words": 3, "max_words": 2}, "min_words 3 is above max_words 2"),
        ({"min_chars": -1}, "greater than or equal to 0"),
        ({"min_chars": "3"}, "valid integer"),
        ({"min_char": 3}, "no parameter 'min_char'"),
    ],
)
def test_bounds_that_make_no_sense_are_refused_at_load(params: dict[str, object], message: str):
    with pytest.raises(ConfigError, match=message):
        build_operator("filter_length", params)
