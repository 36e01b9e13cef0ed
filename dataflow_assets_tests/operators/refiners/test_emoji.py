import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow_assets.operators.refiners.data_files import data_lines
from dataflow_assets_tests.operators.sample_tables import edited

SEQUENCES = [
    "😀", "👍🏽", "👨‍👩‍👧‍👦", "👩🏿‍🚀", "🏳️‍🌈", "🏴‍☠️", "🇩🇪", "🇨🇳🇺🇸", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "1️⃣", "#⃣", "*️⃣", "❤️", "❤️‍🔥",
    "❤‍🔥", "☝🏽", "☎️", "✅", "⭐", "⌚", "㊗️", "🫱🏻‍🫲🏿", "🧑‍⚕️", "🏃‍♀️‍➡️", "🐻‍❄️", "🀄",
]  # fmt: skip


@pytest.mark.parametrize("emoji", SEQUENCES)
def test_a_sequence_goes_as_a_whole(emoji: str):
    assert edited("remove_emoji", [f"前{emoji}a", f"{emoji}{emoji}"]) == ["前a", ""]


@pytest.mark.parametrize(
    "text", ["©®™ℹ", "1 # *", "☎ ✂ ❤ ↔ ▶", "㊗ 〰", "نمی\u200cخواهم क्\u200dष", "《中文》、。…"]
)
def test_what_is_shown_as_text_stays(text: str):
    assert edited("remove_emoji", [text]) == [text]


def test_symbols_go_where_they_are_asked_for_but_not_those_of_trade():
    assert edited("remove_emoji", ["©™ ☎ ❤ 1 中"], {"symbols": True}) == ["©™   1 中"]


def test_an_emoji_can_be_replaced_by_any_text():
    assert edited("remove_emoji", ["a👍🏽👍b"], {"replacement": r"\1"}) == [r"a\1\1b"]


@given(st.text(st.characters(max_codepoint=0x24FF) | st.sampled_from("中文、。한글あア")))
def test_letters_of_no_script_are_touched(text: str):
    letters = [sign for sign in text if sign.isalpha()]
    assert [sign for sign in edited("remove_emoji", [text])[0] if sign.isalpha()] == letters


@pytest.mark.parametrize(
    ("text", "without"),
    [
        ("fine :-) :D ;) :'( =) 8-)", "fine      "),
        ("好:D 好:)。", "好 好。"),
        ("T_T orz XD (╯°□°)╯︵ ┻━┻ ¯\\_(ツ)_/¯ (^_^) <3", "      "),
        ("(good :) and", "(good  and"),
    ],
)
def test_emoticons_go(text: str, without: str):
    assert edited("remove_emoticons", [text]) == [without]


@pytest.mark.parametrize(
    "text",
    ["10:30 8) 12:3", "C:\\ D:/x http://a.b", '{"a":[1], "b":"x"}', "f(x:) a[:3] x => y == z",
     "std::vector ::P", "EXD a<3 a.T_Tb", "key:| - :name", "标题：（一）", "s:(1) 比例3:8",
     "<3.0.6@x> bin/:/lib <b>:] é:*"],
)  # fmt: skip
def test_what_only_looks_like_an_emoticon_stays(text: str):
    assert edited("remove_emoticons", [text]) == [text]


@pytest.mark.parametrize("emoticon", data_lines("emoticons.txt"))
def test_every_listed_emoticon_goes_as_a_whole(emoticon: str):
    assert edited("remove_emoticons", [f"a {emoticon} b", f"中{emoticon}文"]) == ["a  b", "中文"]
