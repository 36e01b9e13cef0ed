"""`join_lines`."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow_assets_tests.operators.sample_tables import edited

PARAGRAPH = "合法的借贷关系受法律保护。双方之间的借贷关系成立并生效，被告未按约还款，已构成违约。"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("one line", "one line"),
        ("被告何强超\n应当偿还借\n款\n。", "被告何强超应当偿还借款。"),
        (
            "The quick brown fox jumps over the lazy\ndog and runs through the whole forest by\nnight.",
            "The quick brown fox jumps over the lazy dog and runs through the whole forest by night.",
        ),
        ("住柳河县新华巷18\n7号，联系电话一二", "住柳河县新华巷187号，联系电话一二"),
        ("A lower court had de-\ncided the whole case", "A lower court had decided the whole case"),
        ("判决如下这一行已经写满了\n一、被告应当偿还", "判决如下这一行已经写满了\n一、被告应当偿还"),
        ("A heading\n\nA paragraph follows here", "A heading\n\nA paragraph follows here"),
        (
            "A sentence that fills its line.\nAnother sentence, quite long",
            "A sentence that fills its line.\nAnother sentence, quite long",
        ),
    ],
)
def test_lines_of_a_paragraph_are_joined(text: str, expected: str) -> None:
    assert edited("join_lines", [text]) == [expected]


@given(st.integers(6, 20))
def test_a_chinese_paragraph_comes_back_whole_from_any_width(width: int) -> None:
    text = PARAGRAPH.replace("。", "，")[:-1] + "。"
    wrapped = "\n".join(text[start : start + width] for start in range(0, len(text), width))
    assert edited("join_lines", [wrapped]) == [text]


@given(st.text(max_size=80))
def test_no_character_but_space_and_hyphen_is_lost_or_added(text: str) -> None:
    left = edited("join_lines", [text.encode("utf-8", "ignore").decode()])[0]
    assert "".join(left.replace("-", "").split()) == "".join(text.replace("-", "").split())
