import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dataflow_assets.operators import build_operator
from dataflow_assets.operators.refiners.html import StripHtml
from dataflow_assets_tests.operators.sample_tables import case_rows, edited

PIECES = [
    "<p>",
    "</p>",
    "<P",
    ">",
    "<br>",
    "<br/>",
    "<b>",
    "</b>",
    "<B>",
    "<pre>",
    "</pre>",
    "<PRE>",
    "<script>",
    "</script>",
    "<script",
    "type='x'>",
    "<style>",
    "</style>",
    "</STYLE",
    ">",
    "<!--",
    "-->",
    "<!doctype",
    "html>",
    "<!if>",
    "<![if",
    "!mso]>",
    "<![CDATA[",
    "<?xml?>",
    "<?php",
    "<div",
    'class="a>b">',
    "<a",
    "href='x'>",
    "<a",
    'href=x">',
    "<td",
    "nowrap>",
    "<b",
    "and",
    "c>",
    "<Object>",
    "<object>",
    "<OBJECT>",
    "<oBject>",
    "<List<String>>",
    "<x>",
    "<",
    ">",
    "</",
    "/>",
    "<b",
    '<p"',
    "&",
    "&amp;",
    "&lt;",
    "&#60;",
    "&#x3C;",
    "&#0;",
    "&nope;",
    "&copy",
    "&nbsp;",
    "a",
    "b1",
    "中",
    ".",
    "=",
    '"',
    "'",
    "ſ",
    "K",
    " ",
    "\n",
    "\t",
    "\r\n",
    "\x0c",
    "<b ",
    "<p x='",
    '<img alt=""',
    "</b>",
]
markup = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)
ENTITIES = st.sampled_from(["tagged", "always"])


def stripper(entities: str = "tagged") -> StripHtml:
    operator = build_operator("strip_html", {"entities": entities})
    assert isinstance(operator, StripHtml)
    return operator


def test_case_37_no_text_is_lost_glued_or_decoded_twice():
    rows = {row["id"]: row["text"] for row in case_rows("37_html_cleaning")}
    plain = dict(zip(rows, edited("strip_html", list(rows.values())), strict=True))
    assert plain[1] == "第一段\n第二段"
    assert plain[2] == "第一行\n第二行\n第三行"
    assert plain[3] == "标题\n正文结尾"
    assert plain[4] == "1 < 2 && 3 > 2，写作 &lt;b&gt;"
    assert (plain[5], plain[6]) == (rows[5], rows[6])
    assert plain[7] == "甲\n乙"
    assert plain[8] == "中文加粗"
    assert plain[9] == "a\n  b"
    assert plain[10] == "未闭合\n标签\n也要有字"


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("a &lt; b", "a &lt; b"),
        ("<b>a</b> &lt; b", "a < b"),
        ("<b>&amp;amp;&nbsp;&#x4e2d;&nope;&copy</b>", "&amp;\u00a0中&nope;&copy"),
        ("<user@host.org> wrote", "<user@host.org> wrote"),
        ("if a <b and c> d", "if a <b and c> d"),
        ("Map<Button> m; List<Object> l", "Map<Button> m; List<Object> l"),
        ("<Center>a</CENTER><FONT size=2>b</Font>", "a\nb"),
        ('<a href="x>y">z</a>', "z"),
        ('<a href="x>z</a>', "z"),
        ("<td nowrap>a<td>b", "a\nb"),
        ("<script>if (a<b) x('</p>')</script >b", "b"),
        ("use <script> and <style> tags", "use  and  tags"),
        ("<!-- <p>a</p> -->b<!-- c", "b<!-- c"),
        ("<!DOCTYPE html><p>a", "a"),
        ("<?xml version='1.0'?><p>a", "a"),
        ("<![if !mso]><b>a</b><![endif]>", "a"),
        ("<p> a </p> \n <p> b </p>", "a\nb"),
        ("line 1\n\nline <i>2</i>\n", "line 1\n\nline 2"),
        ("a <pre>\n  x\n\n  y\n</pre> b", "a\n  x\n\n  y\nb"),
        ("<pre>a<br>  b</pre><p>c", "a\n  b\nc"),
        ("", ""),
        ("\n<\n", "\n<\n"),
    ],
)
def test_markup_goes_and_text_stays(text: str, plain: str):
    assert edited("strip_html", [text]) == [plain]
    assert stripper().edit(text) == plain


def test_entities_of_texts_without_a_tag_are_decoded_on_request():
    assert edited("strip_html", ["AT&amp;amp;T", "<b>&amp;lt;</b>"], {"entities": "always"}) == [
        "AT&amp;T",
        "&lt;",
    ]


@given(st.lists(markup, min_size=1), ENTITIES)
@example(["<<b>p>", "<b <p>"], "tagged")
@settings(max_examples=300)
def test_the_fast_way_gives_what_the_parser_gives(texts: list[str], entities: str):
    assert edited("strip_html", texts, {"entities": entities}) == [
        stripper(entities).edit(text) for text in texts
    ]


@given(st.text() | markup, ENTITIES)
def test_letters_outside_of_markup_are_never_lost(text: str, entities: str):
    plain = stripper(entities).edit(f"甲{text}乙丙".replace("<", "‹"))
    assert plain.startswith("甲")
    assert plain.endswith("乙丙")


@given(st.lists(st.sampled_from(["a", "<b>", "x</i>", "中", " ", "<br>", "</p>", "&lt;"])).map("".join))
def test_what_is_left_is_the_text_in_order(text: str):
    letters = re.sub(r"\s|<[^>]*>|&lt;", "", text)
    assert re.sub(r"[\s<]|&lt;", "", stripper().edit(text)) == letters


@pytest.mark.parametrize(
    "piece", ["<script>", "<!--", "<p ", '<b x="', "<pre>", " ", "<", "&amp;", "<p title='"]
)
def test_a_hostile_text_takes_linear_time(piece: str):
    text = piece * (400_000 // len(piece))
    assert edited("strip_html", [text])
