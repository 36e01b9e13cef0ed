"""DOCX: headings, tables and changes as they read; archives that grow without measure are refused."""

import zipfile

import pytest

from dataflow_assets.sources.documents.document import Document, Limits, UnreadableDocument
from dataflow_assets.sources.documents.docx import read_docx
from dataflow_assets_tests.sources.documents.docx_files import docx_file, paragraph

LIMITS = Limits(2**28, 2**26, 250)
MATH = "http://schemas.openxmlformats.org/officeDocument/2006/math"
TABLE = (
    "<w:tbl><w:tr><w:tc>{}</w:tc><w:tc>{}{}</w:tc></w:tr><w:tr><w:tc>{}</w:tc><w:tc>{}</w:tc></w:tr></w:tbl>"
)


def read(tmp_path, content: bytes, limits: Limits = LIMITS) -> Document:
    path = tmp_path / "a.docx"
    path.write_bytes(content)
    return read_docx(path, limits)


def test_headings_are_marked_by_the_name_of_their_style(tmp_path):
    body = paragraph("第一章", "1") + paragraph("Part", "a3") + paragraph("正文。") + paragraph("", "1")
    document = read(tmp_path, docx_file(body))
    assert document == Document(["# 第一章\n## Part\n正文。\n"], "合同 A")


def test_tables_are_rows_of_cells(tmp_path):
    cells = (paragraph(text) for text in ("甲 | 方", "one", "two", "3", "4"))
    body = paragraph("Before") + TABLE.format(*cells) + paragraph("After")
    assert read(tmp_path, docx_file(body)).pages == ["Before\n| 甲 \\| 方 | one two |\n| 3 | 4 |\nAfter"]


def test_deleted_text_is_left_out_and_inserted_text_is_there(tmp_path):
    body = (
        "<w:p><w:r><w:t>a</w:t><w:tab/><w:t>b</w:t><w:br/></w:r><w:del><w:r><w:delText>gone</w:delText></w:r></w:del>"
        "<w:ins><w:r><w:t>new</w:t></w:r></w:ins></w:p>"
    )
    assert read(tmp_path, docx_file(body)).pages == ["a\tb\nnew"]


def math(tag: str, *inside: str) -> str:
    return f"<m:{tag}>{''.join(inside)}</m:{tag}>"


def letters(text: str) -> str:
    return math("r", math("t", text))


@pytest.mark.parametrize(
    ("equation", "text"),
    [
        (letters("E=m") + math("sSup", math("e", letters("c")), math("sup", letters("2"))), "$E=mc^{2}$"),
        (math("f", math("num", letters("a+b")), math("den", letters("2"))), r"$\frac{a+b}{2}$"),
        (math("rad", math("deg"), math("e", letters("x"))), r"$\sqrt{x}$"),
        (math("rad", math("deg", letters("3")), math("e", letters("x"))), r"$\sqrt[3]{x}$"),
        (letters("f") + math("d", math("e", letters("x")), math("e", letters("y"))), "$f(x|y)$"),
        (
            math("nary", '<m:naryPr><m:chr m:val="∑"/></m:naryPr>', math("sub", letters("i")), letters("x")),
            "$∑_{i}x$",
        ),
        (math("m", math("mr", math("e", letters("a")), math("e", letters("b"))), math("mr")), r"$a & b \\$"),
        ("<m:box>" * 3000 + letters("deep") + "</m:box>" * 3000, "$deep$"),
        (math("r"), ""),
    ],
)
def test_equations_are_read(tmp_path, equation: str, text: str):
    body = f'<w:p xmlns:m="{MATH}"><w:r><w:t>is </w:t></w:r><m:oMath>{equation}</m:oMath></w:p>'
    assert read(tmp_path, docx_file(body)).pages == [f"is {text}"]


@pytest.mark.parametrize(
    ("font", "code", "sign"),
    [
        ("Symbol", "F061", "α"),
        ("Symbol", "F0F2", "∫"),
        ("Symbol", "F0E5", "∑"),
        ("Symbol", "7E", "∼"),
        ("Wingdings", "F0FE", "☑"),
        ("MS Gothic", "2610", "☐"),
        ("Webdings", "F061", "�"),
        ("Arial", "D800", "�"),
        ("", "no", "�"),
    ],
)
def test_signs_of_fonts_are_read(tmp_path, font: str, code: str, sign: str):
    body = f'<w:p><w:r><w:t>a</w:t><w:sym w:font="{font}" w:char="{code}"/></w:r></w:p>'
    assert read(tmp_path, docx_file(body)).pages == [f"a{sign}"]


def test_hidden_text_is_left_out(tmp_path):
    run = "<w:r><w:rPr>{}</w:rPr><w:t>{}</w:t></w:r>"
    marks = {"<w:vanish/>": "a", '<w:vanish w:val="1"/>': "b", '<w:vanish w:val="0"/>': "c", "<w:b/>": "d"}
    body = "".join(run.format(mark, text) for mark, text in marks.items())
    assert read(tmp_path, docx_file(f"<w:p>{body}</w:p>")).pages == ["cd"]


def test_text_boxes_nested_tables_and_moved_text_are_read_once(tmp_path):
    alternative = (
        '<mc:AlternateContent xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006">'
        f"<mc:Choice>{paragraph('box')}</mc:Choice><mc:Fallback>{paragraph('box')}</mc:Fallback>"
        "</mc:AlternateContent>"
    )
    inner = f"<w:tbl><w:tr><w:tc>{paragraph('inner')}</w:tc></w:tr></w:tbl>"
    body = (
        f"<w:p><w:moveFrom><w:r><w:t>old place</w:t></w:r></w:moveFrom><w:r>{alternative}</w:r></w:p>"
        f"<w:tbl><w:sdt><w:sdtContent><w:tr><w:tc>{paragraph('outer')}{inner}</w:tc></w:tr></w:sdtContent></w:sdt>"
        "</w:tbl>" + "<w:sdt>" * 3000 + paragraph("deep") + "</w:sdt>" * 3000
    )
    assert read(tmp_path, docx_file(body)).pages == ["box\n| outer inner |\ndeep"]


def with_damaged_lzma() -> bytes:
    content = bytearray(docx_file(paragraph("text " * 50), packed=zipfile.ZIP_LZMA))
    start = content.index(b"word/document.xml") + len("word/document.xml") + 9
    content[start : start + 20] = bytes(b ^ 0xFF for b in content[start : start + 20])
    return bytes(content)


def with_a_name_that_is_no_utf_8() -> bytes:
    content = bytearray(docx_file("").replace(b"docProps/core.xml", b"docProps/c\xff\xfee.xml"))
    content[content.rindex(b"PK\x01\x02") + 9] |= 0x08
    return bytes(content)


HIDDEN = '<?xml version="1.0" encoding="utf-16"?><!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'
BAD = {
    "a bomb": (docx_file(paragraph("x" * 5_000_000)), "too large"),
    "entities": (docx_file("", '<!DOCTYPE a [<!ENTITY b "c">]>'), "broken"),
    "entities in utf-16": (docx_file("", document=HIDDEN.encode("utf-16")), "broken"),
    "broken xml": (docx_file("<w:p>"), "broken"),
    "unknown encoding": (docx_file("", '<?xml version="1.0" encoding="klingon"?>'), "broken"),
    "encoding of several bytes": (docx_file("", '<?xml version="1.0" encoding="gbk"?>'), "broken"),
    "damaged lzma": (with_damaged_lzma(), "broken"),
    "a name that is no utf-8": (with_a_name_that_is_no_utf_8(), "broken"),
    "no archive": (b"PK\x03\x04 nothing", "broken"),
    "another archive": (b"PK\x05\x06" + bytes(18), "broken"),
    "old or locked": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "encrypted"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_file_that_is_none_says_why(tmp_path, name: str):
    content, kind = BAD[name]
    with pytest.raises(UnreadableDocument, match=rf"^{kind}: "):
        read(tmp_path, content)
