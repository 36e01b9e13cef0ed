"""Wrapped lines become whole sentences; items, headings and short lines stay as they are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow_assets_tests.operators.sample_tables import edited

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


@given(st.text(st.sampled_from("ab .-。中\n1|"), max_size=60))
def test_nothing_but_white_space_and_hyphens_changes(text: str):
    [joined] = edited("join_lines", [text])
    assert "".join(joined.split()).replace("-", "") == "".join(text.split()).replace("-", "")
