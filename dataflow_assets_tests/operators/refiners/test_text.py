import re

import ftfy
import pytest
from ftfy.badness import MOJIBAKE_CATEGORIES
from hypothesis import given
from hypothesis import strategies as st

from dataflow_assets.operators import build_operator
from dataflow_assets.operators.refiners.text import _ftfy_config
from dataflow_assets_tests.operators.sample_tables import applied, edited, ids, typed_table

SPACES = "\t \u00a0\u1680\u2003\u200a\u202f\u205f\u3000"
LINE_ENDS = "\n\v\f\r\u0085\u2028\u2029"
spaced = st.text(st.sampled_from(f"a中{SPACES}{LINE_ENDS}"), max_size=12)
MOJIBAKE = "".join(MOJIBAKE_CATEGORIES.values()).replace("-", "")
broken = st.text(
    st.sampled_from(MOJIBAKE + "aZ .\n<&;中\ufeff\x00\x1b\x7f\x85") | st.characters(codec="utf-8")
)


def test_lowercase_covers_every_alphabet():
    assert edited("lowercase", ["ÀÉ ЖЩ ΑΩ İ", "ABC中文１Ａ"]) == ["àé жщ αω i", "abc中文１ａ"]


def tidied(text: str) -> str:
    lines = re.split(f"\r\n|[{LINE_ENDS}]", text)
    tidy = "\n".join(re.sub(f"[{SPACES}]+", " ", line).strip(" ") for line in lines)
    return re.sub("\n{3,}", "\n\n", tidy).strip("\n")


@given(st.lists(spaced))
def test_whitespace_is_normalized_line_by_line(texts: list[str]):
    assert edited("normalize_whitespace", texts) == [tidied(text) for text in texts]


@given(st.lists(spaced))
def test_normalizing_whitespace_twice_changes_nothing(texts: list[str]):
    once = edited("normalize_whitespace", texts)
    assert edited("normalize_whitespace", once) == once


def test_spaces_between_han_characters_go_where_that_is_asked_for():
    text = "中 文 字　符， “好” 吗 ？ 用 GPU 3 个\n下 一行"
    tidy = "中文字符，“好”吗？用 GPU 3 个\n下一行"
    assert edited("normalize_whitespace", [text], {"han_spaces": "remove"}) == [tidy]
    assert edited("normalize_whitespace", ["中 文"]) == ["中 文"]


def test_joiners_inside_emoji_are_no_whitespace():
    assert edited("normalize_whitespace", ["👨‍👩‍👧"]) == ["👨‍👩‍👧"]


@pytest.mark.parametrize(
    ("broken_text", "repaired"),
    [
        ("schÃ¶n und â€œgutâ€\x9d", "schön und “gut”"),
        ("AT&amp;T", "AT&T"),
        ("<p>AT&amp;T</p>", "<p>AT&amp;T</p>"),
        ("\x1b[32m绿\x1b[m", "绿"),
        ("a\x00\x08b\ufeff", "ab"),
        ("\x85", "…"),
        ("“中文”，ＡＢ！ﬁ\r\n", "“中文”，ＡＢ！ﬁ\r\n"),
    ],
)
def test_fix_unicode_repairs_what_is_broken_and_nothing_else(broken_text: str, repaired: str):
    assert edited("fix_unicode", [broken_text]) == [repaired]


@given(st.lists(broken), st.booleans())
def test_fix_unicode_gives_what_ftfy_gives_on_every_text(texts: list[str], entities: bool):
    expected = [ftfy.fix_text(text, _ftfy_config(entities)) for text in texts]
    assert edited("fix_unicode", texts, {"entities": entities}) == expected


@given(st.text(max_size=40), st.sampled_from(["cp1252", "latin-1", "cp1251", "macroman"]))
def test_fix_unicode_sees_all_text_that_was_read_with_a_wrong_encoding(text: str, encoding: str):
    misread = text.encode().decode(encoding, "replace")
    assert edited("fix_unicode", [misread]) == [ftfy.fix_text(misread, _ftfy_config(True))]


def test_fix_unicode_leaves_entities_where_it_is_told_to():
    assert edited("fix_unicode", ["a &lt; b"], {"entities": False}) == ["a &lt; b"]


def test_fix_unicode_repairs_lone_surrogates_of_a_json_column():
    outcome = applied("fix_unicode", typed_table("json", ["a\ud800b", "ok", "\ud83d", 7, None]))
    assert outcome.kept["text"].to_pylist() == ["a\ufffdb", "ok", "\ufffd"]
    assert outcome.failed is not None
    assert outcome.failed["error_class"].to_pylist() == ["WrongType", "MissingValue"]


def test_clean_texts_are_not_even_copied():
    texts = typed_table("string", ["clean", "“干净”的文字"])["text"]
    for name in ("fix_unicode", "normalize_whitespace", "strip_html", "remove_urls"):
        assert build_operator(name, {}).edit_column(texts)[0] is texts  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(("on_null", "kept", "rejected", "failed"), [
    ("fail", ["r0", "r2"], [], ["r1"]),
    ("keep", ["r0", "r1", "r2"], [], []),
    ("reject", ["r0", "r2"], ["r1"], []),
])  # fmt: skip
@pytest.mark.parametrize("kind", ["string", "json"])
def test_a_row_without_text_goes_where_on_null_says(kind, on_null, kept, rejected, failed):
    rows = typed_table(kind, ["A", None, "B"])
    outcome = applied("lowercase", rows, {"on_null": on_null})
    assert [ids(part) for part in outcome] == [kept, rejected, failed]
