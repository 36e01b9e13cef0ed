"""`join_lines`."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow_assets_tests.operators.sample_tables import edited

PARAGRAPH = "合法的借贷关系受法律保护。双方之间的借贷关系成立并生效，被告未按约还款，已构成违约。"
WRAPPED = {
    "english": (
        "The first line goes on in\nthe second one. Then it\nends.",
        "The first line goes on in the second one. Then it ends.",
    ),
    "chinese": ("第一行还没有写完，在第\n二行继续。\n第三行。", "第一行还没有写完，在第二行继续。\n第三行。"),
    "mixed": (
        "安装系统以后，请先运行命令\napt update 来更新。",
        "安装系统以后，请先运行命令apt update 来更新。",
    ),
    "hyphen": ("It is an exam-\nple of it.", "It is an example of it."),
    "number range": ("It is written on pages 3-\n5 of it.", "It is written on pages 3- 5 of it."),
    "sentence end": ("This line is a full sentence.\nAnd this is another one, too.", None),
    "items": ("The list of what is there\n- one\n- two\n1. three\n2.1 four\n一、五", None),
    "heading": ("Short\nThis line is a good deal longer than that.", None),
    "paragraphs": ("The first one of them is here\n\nThe second", None),
    "table": ("What the table below says is\n| a | b |\n```", None),
    "address": (
        "The address of the machine is\n192.168.0.1 in the net.",
        "The address of the machine is 192.168.0.1 in the net.",
    ),
    "korean": ("한국어 문장이 여기에\n계속됩니다", "한국어 문장이 여기에 계속됩니다"),
    "korean quote": ("한국어 문장이 여기에\n「책」이라는", "한국어 문장이 여기에 「책」이라는"),
    "japanese": ("カタカナの長いテキスト\nデータです", "カタカナの長いテキストデータです"),
    "emoji": ("a line with a smile 😀\nand one 🙂 without", "a line with a smile 😀 and one 🙂 without"),
    "emoji in chinese": ("这一行写满了还有笑脸😀\n然后继续", "这一行写满了还有笑脸😀然后继续"),
    "fullwidth latin": ("型号是ＡＢＣＤＥＦ\nＧＨ，有货", "型号是ＡＢＣＤＥＦＧＨ，有货"),
    "one line": ("nothing  to join ", None),
}


@pytest.mark.parametrize("name", WRAPPED)
def test_lines(name: str):
    text, joined = WRAPPED[name]
    assert edited("join_lines", [text]) == [text if joined is None else joined]


def test_min_fill_says_which_lines_are_full():
    text = "half a line\ngoes on in a wide one of 30 cols"
    assert edited("join_lines", [text]) == [text]
    assert edited("join_lines", [text], {"min_fill": 0.3}) == [text.replace("\n", " ")]


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


def test_a_paragraph_of_very_many_lines_takes_no_longer_a_line() -> None:
    assert edited("join_lines", ["1234567890\n" * 100_000]) == ["1234567890 " * 99_999 + "1234567890\n"]


@given(st.integers(6, 20))
def test_a_chinese_paragraph_comes_back_whole_from_any_width(width: int) -> None:
    text = PARAGRAPH.replace("。", "，")[:-1] + "。"
    wrapped = "\n".join(text[start : start + width] for start in range(0, len(text), width))
    assert edited("join_lines", [wrapped]) == [text]


@given(st.text(max_size=80))
def test_no_character_but_space_and_hyphen_is_lost_or_added(text: str) -> None:
    left = edited("join_lines", [text.encode("utf-8", "ignore").decode()])[0]
    assert "".join(left.replace("-", "").split()) == "".join(text.replace("-", "").split())
