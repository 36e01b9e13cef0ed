"""Small PDF files with English and Chinese text, written by hand: what the tests and the sample read.

The fonts are Helvetica and Adobe's STSong-Light by name, as PDF viewers know them; none is embedded.
A line has one font: PDFium loses a character that stands alone in a font that it does not find.
"""

from collections.abc import Iterator, Sequence

Line = tuple[int, str]
_TOP, _LEFT = 800, 60
_FONTS = [
    b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
    b"<</Type/Font/Subtype/Type0/BaseFont/STSong-Light/Encoding/UniGB-UCS2-H/DescendantFonts[5 0 R]>>",
    b"<</Type/Font/Subtype/CIDFontType0/BaseFont/STSong-Light/FontDescriptor 6 0 R/DW 1000/W[1 95 500]"
    b"/CIDSystemInfo<</Registry(Adobe)/Ordering(GB1)/Supplement 2>>>>",
    b"<</Type/FontDescriptor/FontName/STSong-Light/Flags 6/FontBBox[-25 -254 1000 880]/ItalicAngle 0"
    b"/Ascent 880/Descent -120/CapHeight 880/StemV 93>>",
]
_LOCK = b"<</Filter/Standard/V 1/R 2/P -4/O<" + b"11" * 32 + b">/U<" + b"22" * 32 + b">>>"


def pdf_file(pages: Sequence[Sequence[str | Line]], title: str = "", *, locked: bool = False) -> bytes:
    """A PDF with these lines on its pages; a line is text of 10 points, or a size and a text.

    `locked` gives it a password that nobody knows.
    """
    first = 8
    kids = b" ".join(b"%d 0 R" % (first + 2 * number) for number in range(len(pages)))
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Count %d/Kids[%b]>>" % (len(pages), kids),
        *_FONTS,
        b"<</Title<FEFF%b>>>" % title.encode("utf-16-be").hex().upper().encode(),
    ]
    for number, lines in enumerate(pages):
        content = b"\n".join(_content(lines))
        objects += [
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents %d 0 R"
            b"/Resources<</Font<</F1 3 0 R/F2 4 0 R>>>>>>" % (first + 2 * number + 1),
            b"<</Length %d>>stream\n%b\nendstream" % (len(content), content),
        ]
    lock = b"/Encrypt %d 0 R/ID[<%b><%b>]" % (len(objects) + 1, b"33" * 16, b"33" * 16) if locked else b""
    return _written([*objects, *([_LOCK] if locked else [])], lock)


def _content(lines: Sequence[str | Line]) -> Iterator[bytes]:
    height = _TOP
    for line in lines:
        size, text = (10, line) if isinstance(line, str) else line
        height -= size + 5
        yield b"BT %d %d Td" % (_LEFT, height)
        font, code = (1, text.encode("ascii")) if text.isascii() else (2, text.encode("utf-16-be"))
        yield b"/F%d %d Tf <%b> Tj" % (font, size, code.hex().encode())
        yield b"ET"


def _written(objects: Sequence[bytes], trailer: bytes) -> bytes:
    parts, places = [b"%PDF-1.5\n"], []
    for number, body in enumerate(objects, 1):
        places.append(sum(map(len, parts)))
        parts.append(b"%d 0 obj%b\nendobj\n" % (number, body))
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    start = sum(map(len, parts))
    parts.append(
        b"xref\n0 %d\n0000000000 65535 f \n%b"
        b"trailer<</Size %d/Root 1 0 R/Info 7 0 R%b>>\nstartxref\n%d\n%%%%EOF\n"
        % (len(objects) + 1, table, len(objects) + 1, trailer, start)
    )
    return b"".join(parts)
