import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow_assets_tests.operators.sample_tables import edited


@pytest.mark.parametrize(
    ("text", "without"),
    [
        ("见https://a.com/b?c=d&e=f#g，好", "见，好"),
        ("访问www.baidu.com吧", "访问吧"),
        ("看 http://a.cn/路径", "看 路径"),
        ("(see http://a.b/c).", "(see )."),
        ("https://en.wikipedia.org/wiki/A_(b), next", ", next"),
        ("[text](https://a.b/c_(d)) end", "[text]() end"),
        ("“https://a.b”", "“”"),
        ("\"http://a.b\" 'http://a.b'", "\"\" ''"),
        ("<http://a.b>", "<>"),
        ("http://a.com...", "..."),
        ("**http://a.b** HTTPS://A.B! FTP://a/b?", "**** ! ?"),
        ("https://de.wikipedia.org/wiki/Käse %20", " %20"),
        ("http://[::1]:80/x", ""),
        ("WWW.a.b www2.a.b", " "),
        ("awww.so cute http:// ftp: wwww", "awww.so cute http:// ftp: wwww"),
        ("a@b.com mailto:a@b.com git://x", "a@b.com mailto:a@b.com git://x"),
    ],
)
def test_addresses_go_and_the_text_around_stays(text: str, without: str):
    assert edited("remove_urls", [text]) == [without]


def test_an_address_can_be_replaced_by_any_text():
    assert edited("remove_urls", ["a http://b.c d"], {"replacement": r"<\1>"}) == [r"a <\1> d"]


@given(st.lists(st.text() | st.text("http:/w. ()[]中a")))
def test_nothing_but_addresses_is_touched(texts: list[str]):
    for text, without in zip(texts, edited("remove_urls", texts), strict=True):
        assert without == text or "://" in text or "www" in text.lower()


@given(st.text(st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF), min_size=1))
def test_chinese_behind_an_address_stays(text: str):
    assert edited("remove_urls", [f"https://a.b/c{text}"]) == [text]
