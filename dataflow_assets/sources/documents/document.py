"""What a document reader gives: its text by pages, or why there is none."""

from typing import NamedTuple


class Document(NamedTuple):
    """The text of a document. `pages` are those of a PDF; every other format is one page."""

    pages: list[str]
    title: str | None = None


class UnreadableDocument(Exception):
    """The document is set aside. `kind` is its `reject_reason`, the message says more."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(f"{kind}: {detail}")


class Limits(NamedTuple):
    """How large a file and its text may get before it is set aside unread."""

    max_file_bytes: int
    max_text_chars: int
    max_expansion: int
