"""`filter_blocklist` and `filter_url`: what stands on a list."""

from pathlib import Path

import pytest

from dataflow_assets.errors import ConfigError
from dataflow_assets.operators import build_operator
from dataflow_assets.operators.filters.blocklist import FilterBlocklist
from dataflow_assets.operators.operator import TextFilter
from dataflow_assets_tests.operators.sample_tables import applied, ids, table


def reason(name: str, text: str, **params: object) -> str | None:
    rejected = applied(name, table(text=[text]), {"column": "text", **params}).rejected
    return None if rejected is None else rejected["reject_reason"][0].as_py()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("An ass!", True),
        ("AN ASS", True),
        ("a class of assassins", False),
        ("bass_ass", False),
        ("free money now", True),
        ("free moneylender", False),
        ("澳门博彩网站", True),
        ("网上ass广告", True),
        ("cafe\u0301", True),
        ("caf\u00e9s", False),
        ("", False),
    ],
)
def test_a_listed_word_counts_where_it_is_whole(text: str, found: bool):
    words = ["ass", "free money", "博彩", "caf\u00e9"]
    assert reason("filter_blocklist", text, words=words) == ("listed_words" if found else None)


def test_a_longer_word_that_is_not_whole_hides_no_shorter_one():
    assert reason("filter_blocklist", "foo barn", words=["foo bar", "foo"]) == "listed_words"


def test_overlapping_words_count_once():
    params = {"words": ["free money", "money", "money now"], "max_count": 1}
    assert reason("filter_blocklist", "free money now", **params) is None
    assert reason("filter_blocklist", "free money, money", **params) == "listed_words"


def test_the_share_is_that_of_the_written_characters():
    params = {"words": ["spam"], "max_count": 9, "max_share": 0.5}
    assert reason("filter_blocklist", "spam  eggs", **params) is None
    assert reason("filter_blocklist", "spam egg", **params) == "listed_share"


def test_each_language_has_its_lists(tmp_path: Path):
    (tmp_path / "en.txt").write_text("# mild\ngift\n\n")
    (tmp_path / "zh.txt").write_text("毒药\n")
    params = {"files_by_language": {"en": ["en.txt"], "zh": ["zh.txt"]}}
    operator = build_operator("filter_blocklist", params, tmp_path)
    assert isinstance(operator, FilterBlocklist)
    texts = ["A gift for you", "「毒药」 is poison in Chinese, they say", "这是毒药", "这是一个gift"]
    assert ids(operator.apply(table(text=texts)).kept) == ["r1", "r3"]


def test_annotate_adds_count_and_share_and_drops_nothing():
    params = {"words": ["spam"], "mode": "annotate"}
    kept = applied("filter_blocklist", table(text=["spam Spam eggs", " "]), params).kept
    assert kept["blocklist_count"].to_pylist() == [2, 0]
    assert kept["blocklist_share"].to_pylist() == [8 / 12, 0]


def test_a_changed_file_is_a_changed_step(tmp_path: Path):
    def identity(words: str) -> object:
        (tmp_path / "list.txt").write_text(words)
        return build_operator("filter_blocklist", {"files": ["list.txt"]}, tmp_path).identity()

    assert identity("one\ntwo") == identity("two\n\none\n") != identity("one\nthree")


def test_a_list_of_fifty_thousand_words_is_no_trouble():
    words = [f"word{number}" for number in range(50_000)]
    assert reason("filter_blocklist", "The word4711 stands here", words=words) == "listed_words"
    assert reason("filter_blocklist", "The word47110000 does not", words=words) is None


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("filter_blocklist", {}, "no word to look for"),
        ("filter_blocklist", {"words": [" "]}, "no word to look for"),
        ("filter_blocklist", {"files": ["none.txt"]}, "'none.txt' cannot be read"),
        ("filter_blocklist", {"files_by_language": {"fr": ["x"]}}, "fr"),
        ("filter_url", {}, "nothing to look for"),
        ("filter_url", {"words": ["free money"]}, "is not letters and digits alone"),
        ("filter_url", {"domains": ["spam.example/page"]}, "is no domain"),
        ("filter_url", {"urls": ["/page"]}, "is no address"),
        ("filter_url", {"parts": [""]}, "blank"),
    ],
)
def test_lists_that_make_no_sense_are_refused_at_load(name: str, params: dict, message: str):
    with pytest.raises(ConfigError, match=message):
        build_operator(name, params)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://www.Spam.org/x", "listed_domain"),
        ("https://u:p@a.b.spam.org.:8080?q", "listed_domain"),
        ("spam.org", "listed_domain"),
        ("https://notspam.org", None),
        ("https://good.org/spam.org", None),
        ("https://bücher.example/", "listed_domain"),
        ("https://xn--bcher-kva.example/", "listed_domain"),
        ("http://x.org/a", "listed_url"),
        ("https://www.x.org/a/b?c=1#d", "listed_url"),
        ("https://x.org/ab", None),
        ("https://y.org/free-CASINO_win", "listed_words"),
        ("https://y.org/%63asino", "listed_words"),
        ("https://y.org/casinos", None),
        ("https://y.org/megaporno", "listed_part"),
        ("", None),
        ("://", None),
        ("no address at all", None),
        ("[::1", None),
        ("http://[2001:db8::1]:80/a", "listed_domain"),
        ("http://" + "x" * 70 + ".中.org/", None),
    ],
)
def test_an_address_is_on_a_list_or_not(url: str, expected: str | None):
    params = {
        "domains": ["spam.org", "*.bücher.example", "[2001:db8::1]"],
        "urls": ["https://x.org/a/"],
        "words": ["casino"],
        "parts": ["PORN"],
    }
    assert reason("filter_url", url, **params) == expected


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("a." * 500_000 + "b", None),
        ("a." * 500_000 + "spam.org", "listed_domain"),
        ("a/" * 500_000, None),
        ("x.org/a" + "/b" * 500_000, "listed_url"),
    ],
)
def test_a_very_long_address_is_looked_up_as_far_as_the_lists_reach(address: str, expected: str | None):
    assert reason("filter_url", address, domains=["spam.org"], urls=["x.org/a"]) == expected


def test_lists_of_addresses_come_from_files_too(tmp_path: Path):
    (tmp_path / "domains").write_text("# of a list\nspam.org\n")
    (tmp_path / "urls").write_text("x.org/a\n")
    (tmp_path / "words").write_text("casino\n")
    params = {"domain_files": ["domains"], "url_files": ["urls"], "word_files": ["words"], "max_words": 1}
    operator = build_operator("filter_url", params, tmp_path)
    assert isinstance(operator, TextFilter)
    urls = ["http://spam.org", "http://x.org/a/1", "http://y.org/casino", "http://y.org/casino/casino"]
    assert [operator.reason(url) for url in urls] == ["listed_domain", "listed_url", None, "listed_words"]


def test_the_address_has_a_column_of_its_own():
    outcome = applied("filter_url", table(url=["a.org", "b.org"], text=["b.org", ""]), {"domains": ["b.org"]})
    assert ids(outcome.kept) == ["r0"]
