"""Makes the PDF files of the pipeline `pdf_to_chunks` from rows of `text2qa_sample.jsonl`.

`python -m dataflow_assets_tests.pdf_sample` writes them again; a test keeps them equal to what this makes.
"""

import json
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import dataflow_assets
from dataflow_assets_tests.pdf_files import Line, pdf_file

DATA = Path(dataflow_assets.__file__).parent / "pipelines" / "data"
ROWS = {"en": (8, 9, 1, 3, 13), "zh": (16, 22, 19, 25, 17)}
_TITLES = {"en": "The Debian Administrator's Handbook", "zh": "Debian 管理员手册"}
_WIDTH, _LINES = 90, 44


def made() -> dict[str, bytes]:
    """The files by name."""
    lines = (DATA / "text2qa_sample.jsonl").read_text("utf-8").splitlines()
    texts = [json.loads(line)["text"] for line in lines]
    return {
        f"pdf_sample_{language}.pdf": _book(_TITLES[language], [texts[row] for row in rows])
        for language, rows in ROWS.items()
    }


def _book(title: str, texts: list[str]) -> bytes:
    lines: list[str | Line] = [(18, title)]
    for text in texts:
        for paragraph in text.split("\n"):
            lines += _wrapped(paragraph)
    pages = [lines[start : start + _LINES] for start in range(0, len(lines), _LINES)]
    return pdf_file([[*page, f"{number} / {len(pages)}"] for number, page in enumerate(pages, 1)], title)


def _wrapped(paragraph: str) -> Iterator[str]:
    """Lines of at most 90 columns, cut at spaces and between wide characters, as typesetters do."""
    line, width, cut = "", 0, 0
    for character in paragraph:
        size = 2 if _is_wide(character) else 1
        if width + size > _WIDTH:
            cut = cut or len(line)
            yield line[:cut].rstrip()
            line, cut = line[cut:].lstrip(), 0
            width = sum(2 if _is_wide(each) else 1 for each in line)
        if character == " " or (_is_wide(character) and character not in "。，、；：！？）”"):
            cut = len(line) + (character == " ")
        line, width = line + character, width + size
    if line.strip():
        yield line


def _is_wide(character: str) -> bool:
    return unicodedata.east_asian_width(character) in "WF"


if __name__ == "__main__":
    for name, content in made().items():
        (DATA / name).write_bytes(content)
