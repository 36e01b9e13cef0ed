"""PDF to text, page by page, with PDFium."""

from pathlib import Path
from typing import TYPE_CHECKING

from dataflow_assets.sources.documents.document import Document, Limits, UnreadableDocument

if TYPE_CHECKING:
    import pypdfium2

# PDFium writes U+FFFE for a hyphen that parts a word at the end of a line.
_PARTED = "\ufffe"


def read_pdf(path: Path, limits: Limits) -> Document:
    """The text layer of each page, lines as they stand on it, words parted by a hyphen put together.

    Raises UnreadableDocument for a file that is encrypted, broken, or has a text beyond the limit.
    """
    import pypdfium2

    try:
        with pypdfium2.PdfDocument(path) as pdf:
            return Document(_pages(pdf, limits), _title(pdf))
    except pypdfium2.PdfiumError as error:
        message = str(error)
        if "assword" in message or "ecurity" in message:
            raise UnreadableDocument("encrypted", f"the PDF needs a password ({message})") from error
        raise UnreadableDocument("broken", f"PDFium cannot read the PDF: {message}") from error


def _pages(pdf: "pypdfium2.PdfDocument", limits: Limits) -> list[str]:
    pages: list[str] = []
    size = 0
    for number in range(len(pdf)):
        page = pdf[number]
        try:
            textpage = page.get_textpage()
            try:
                pages.append(_tidy(textpage.get_text_range()))
            finally:
                textpage.close()
        finally:
            page.close()
        size += len(pages[-1])
        if size > limits.max_text_chars:
            raise UnreadableDocument(
                "too large", f"its first {number + 1} pages have more than {limits.max_text_chars} characters"
            )
    return pages


def _tidy(text: str) -> str:
    r"""Lines that end in `\n`; no NUL, no half of a surrogate pair, no mark of a parted word."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
    text = text.replace(f"{_PARTED}\n", "").replace(_PARTED, "")
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _title(pdf: "pypdfium2.PdfDocument") -> str | None:
    """The title on one line; none where it is blank or no Unicode."""
    try:
        title = pdf.get_metadata_value("Title")
    except UnicodeDecodeError:
        return None
    return " ".join((title or "").replace("\0", "").split()) or None
