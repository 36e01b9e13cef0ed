"""Encodings of plain text, Markdown titles, and HTML with and without its menus."""

import pytest

from dataflow_assets.sources.documents.document import Document, UnreadableDocument
from dataflow_assets.sources.documents.plain import decoded, read_markdown
from dataflow_assets.sources.documents.web_page import read_html

CHINESE = "这是一份中文说明，一共两句。第二句在这里！"
ARTICLE = "<p>" + "</p><p>".join(
    f"Paragraph {n} of the article says that the harbour was built before the town, and why."
    for n in range(6)
)
PAGE = (
    "<html><head><title>The &amp; harbour</title></head><body>"
    "<nav><ul><li><a href='/'>Home</a></li></ul></nav>"
    f"<article>{ARTICLE}</p></article><footer><a href='/imprint'>Imprint</a></footer></body></html>"
)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "gb18030"])
def test_chinese_text_is_found_in_its_encoding(encoding: str):
    assert decoded(CHINESE.encode(encoding), None) == CHINESE


@pytest.mark.parametrize("text", ["Müller geht über die Straße", "déjà vu, naïveté, élève", "naïve"])
def test_latin_text_is_not_taken_for_chinese(text: str):
    with pytest.raises(UnreadableDocument, match=r"neither UTF-8 nor GB18030; say `source.encoding`"):
        decoded(text.encode("latin-1"), None)
    assert decoded(text.encode("latin-1"), "latin-1") == text


def test_an_encoding_that_is_said_is_not_guessed_at():
    with pytest.raises(UnreadableDocument, match=r"no utf-8, as `source.encoding` says"):
        decoded(CHINESE.encode("gb18030"), "utf-8")


@pytest.mark.parametrize("content", [b"a\0b", "a\0b".encode("utf-16")])
def test_a_nul_means_binary(content: bytes):
    with pytest.raises(UnreadableDocument, match=r"^binary: "):
        decoded(content, None)


def test_the_title_of_markdown_is_its_first_heading():
    assert read_markdown(b"text\n\n## two\n# The title #\r\n# more", None).title == "The title"
    assert read_markdown(b"#!/bin/sh\n", None).title is None


@pytest.mark.parametrize("code", ["```sh\n# no\n```\n", "~~~\n```\n# no\n~~~\n", "a\n\n    # no\n"])
def test_a_comment_in_code_is_no_title(code: str):
    assert read_markdown(f"{code}\n# The title\n{code}".encode(), None).title == "The title"
    assert read_markdown(code.encode() * 2, None).title is None
    assert read_markdown(b"```\n# no", None).title is None


def test_the_main_text_of_a_page_is_without_its_menus():
    document = read_html(PAGE.encode(), None, "main")
    assert document.title == "The & harbour"
    assert document.pages[0].count("harbour was built") == 6
    assert "Home" not in document.pages[0] and "Imprint" not in document.pages[0]


def test_all_of_a_page_is_with_them():
    [text] = read_html(PAGE.encode(), None, "all").pages
    assert "Home" in text and "Imprint" in text and "<" not in text


def test_the_declared_charset_is_what_browsers_take_it_for():
    page = f'<meta charset="gb2312"><title>镕</title><p>朱镕基，{CHINESE}</p>'
    assert read_html(page.encode("gb18030"), None, "all") == Document([f"镕\n朱镕基，{CHINESE}"], "镕")


@pytest.mark.parametrize(
    ("charset", "encoding"),
    [("utf-16", "utf-8"), ("UTF-16LE", "utf-8"), ("iso8859-1", "cp1252"), ("hex", "utf-8"), ("no", "utf-8")],
)
def test_a_charset_that_cannot_be_meant_is_read_as_browsers_do(charset: str, encoding: str):
    page = f'<meta charset="{charset}"><title>“quoted”</title><p>text</p>'
    assert read_html(page.encode(encoding), None, "all").title == "“quoted”"


def test_a_page_without_main_text_says_so():
    with pytest.raises(UnreadableDocument, match=r"^no main text: .*source.html: all"):
        read_html(b"<html><body></body></html>", None, "main")
