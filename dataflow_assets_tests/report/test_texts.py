import pytest

from dataflow_assets.report.texts import as_text, cut, cut_pair, legible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\nb", "a\nb"),
        ("a\r\nb", "a\\r\nb"),
        ("\x1b[2J", "\\x1b[2J"),
        ("\u202etxt", "\\u202etxt"),
        ("\ud800", "\\ud800"),
        ("\x00", "\\x00"),
        ("中文 العربية", "中文 العربية"),
    ],
)
def test_what_cannot_be_seen_is_shown_as_an_escape(text: str, shown: str):
    assert legible(text) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, None), ("x", "x"), (1.5, "1.5"), (True, "true"), ([1, "é"], '[\n  1,\n  "é"\n]')],
)
def test_values_are_shown_as_text(value: object, shown: str | None):
    assert as_text(value) == shown


def test_a_long_text_is_cut_and_says_so():
    assert cut("x" * 1_000_000, 10) == "xxxxxxxxxx… (999,990 more characters)"
    assert cut("x" * 10, 10) == "x" * 10


def test_a_change_far_behind_is_in_sight():
    before, after = "a" * 5000 + "old", "a" * 5000 + "new"
    shown = cut_pair(before, after, 300)
    assert [text and text.endswith(end) for text, end in zip(shown, ("old", "new"), strict=True)] == [
        True,
        True,
    ]
    assert (shown[0] or "").startswith("(the first 4,880 characters are left out) …aaa")


def test_a_change_at_the_start_is_cut_at_the_end():
    assert cut_pair("old" + "a" * 5000, None, 5) == ("oldaa… (4,998 more characters)", None)
