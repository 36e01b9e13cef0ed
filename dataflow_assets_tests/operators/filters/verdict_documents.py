"""The documents of the verdict table: 400 real ones, and for each two that are made of it by rule.

    python -m dataflow_assets_tests.operators.filters.verdict_documents > documents.jsonl

Standard library only.
"""

import json
import lzma
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent / "verdicts"


class VerdictDocument(NamedTuple):
    """A document and its name."""

    id: str
    text: str


def _every_line(edit: Callable[[int, str], str]) -> Callable[[str], str]:
    return lambda text: "\n".join(edit(number, line) for number, line in enumerate(text.split("\n")))


def _every_word(edit: Callable[[int, str], str]) -> Callable[[str], str]:
    return lambda text: " ".join(edit(number, word) for number, word in enumerate(text.split(" ")))


def _longest_line(text: str) -> str:
    return max(text.split("\n"), key=len)


def _first_words(text: str, count: int) -> str:
    return " ".join(text.split()[:count]) if " " in text.strip() else text[: count * 2]


# Each makes a document on which another rule decides.
DERIVATIONS: dict[str, Callable[[str], str]] = {
    "first words": lambda text: _first_words(text, 25),
    "about fifty words": lambda text: _first_words(text, 58),
    "lines twice": _every_line(lambda number, line: f"{line}\n{line}"),
    "a third of the lines again": lambda text: text + "\n" + "\n".join(text.split("\n")[::3]),
    "a paragraph three times": lambda text: text + 3 * ("\n\n" + _longest_line(text)),
    "a paragraph again in the middle": lambda text: text + "\n\n" + _longest_line(text) + "\n\nEnd of it.",
    "paragraphs in one": lambda text: re.sub(r"\s*\n\s*", " ", text),
    "halves of lines": _every_line(
        lambda number, line: line[: len(line) // 2] + "\n" + line[len(line) // 2 :]
    ),
    "no marks": lambda text: re.sub(r"[.,;:!?。，、；：！？”\"]", "", text),
    "no marks at line ends": _every_line(lambda number, line: line.rstrip(".。!?！？”\"'：:;；")),
    "bullets": _every_line(lambda number, line: f"- {line}" if line else line),
    "round bullets": _every_line(lambda number, line: f"• {line}" if number % 12 else line),
    "ellipses at line ends": _every_line(lambda number, line: f"{line}..." if number % 2 else line),
    "one ellipsis": _every_line(lambda number, line: f"{line}…" if number % 4 == 0 else line),
    "ellipses between words": _every_word(lambda number, word: f"{word}..." if number % 7 == 0 else word),
    "hashes": _every_word(lambda number, word: f"#{word}" if number % 8 == 0 else word),
    "many hashes": lambda text: text.replace(" ", " # ").replace("，", "，#"),
    "numbers": lambda text: text + "\n" + " ".join(str(number * 37) for number in range(len(text) // 8)),
    "some numbers": lambda text: text + " " + " ".join(str(number * 37) for number in range(len(text) // 30)),
    "long words": lambda text: text.replace(" ", "").replace("\n", "x"),
    "longer words": _every_word(lambda number, word: word * 3),
    "letters": lambda text: " ".join(re.sub(r"\s", "", text)),
    "upper case": str.upper,
    "no small words": lambda text: re.sub(
        r"(?i)\b(the|be|to|of|and|that|have|with)\b|[的年在月是和日了]", "", text
    ),
    "a refrain": lambda text: re.sub(
        r"([.。])", r"\1 in the house of the lord in the house ", text, count=12
    ),
    "a phrase again": _every_line(lambda number, line: f"{line} as it was before and will be again, we say."),
    "a word again": _every_word(lambda number, word: f"{word} again" if number % 4 == 0 else word),
    "two words in turn": lambda text: text + " to be" * (len(text) // 40),
    "curly brackets": lambda text: text + "\nfunction() { return true; } is what it says here.",
    "javascript": _every_line(lambda number, line: f"{line} Enable JavaScript." if number % 3 == 0 else line),
    "javascript in brackets": lambda text: text + "\nvar x = {a: 1} in JavaScript is an object.",
    "lorem ipsum": lambda text: text + "\nThis is Lorem ipsum dolor sit amet.",
    "brackets, then lorem ipsum": lambda text: "It has { in it.\n" + text + "\nThis is Lorem ipsum dolor.",
    "policies": _every_line(lambda number, line: f"{line} Read our privacy policy." if number % 2 else line),
    "citations": lambda text: re.sub(r"([.。])", r"[12]\1[3] [edit] [citation needed] ", text),
    "a very long word": _every_line(lambda number, line: f"{line} {'x' * 1001}." if number % 2 else line),
    "quoted lines": _every_line(lambda number, line: f'"{line}"' if line else line),
    "few sentences": lambda text: "\n".join(re.split(r"(?<=[.。])\s*", text)[:4]),
    "five sentences": lambda text: " ".join(re.split(r"(?<=[.。])\s*", text)[:5]),
    "wide breaks": lambda text: text.replace("\n", "\n\n\n\n"),
    "other line ends": lambda text: text.replace("\n", "\r\n").replace(". ", ".\u2028"),
    "spaces": lambda text: text.replace(" ", "  \t").replace("\n", " \n "),
    "contractions": lambda text: (
        re.sub(r"\b(is|are|do|have)\b", r"\1n't", text) + " I'm can't cannot won't'd've."
    ),
    "emoji": _every_word(lambda number, word: f"{word}😀:-)" if number % 9 == 0 else word),
    "half Chinese": lambda text: text[: len(text) // 2] + "。我们在北京的大学里学习，他和学生们在一起。" * 8,
    "half English": lambda text: (
        text[: len(text) // 2] + " The cat and the dog have to be with that man." * 5
    ),
    "a long Chinese line": lambda text: "他说，" + text.replace("\n", "，") + "，这是最后一句话" * 90,
    "doubled": lambda text: text + "\n\n" + text,
    "line by line": lambda text: re.sub(r"([.。，,])\s*", r"\1\n", text),
    "blank": lambda text: re.sub(r"\S", " ", text[:60]),
    "nothing": lambda text: "",
}


def documents() -> Iterator[VerdictDocument]:
    """The real documents, each followed by those that are made of it."""
    names = list(DERIVATIONS)
    lines = lzma.decompress((FOLDER / "documents.jsonl.xz").read_bytes()).decode().splitlines()
    for number, line in enumerate(lines):
        row = json.loads(line)
        yield VerdictDocument(row["id"], row["text"])
        for name in {names[number % len(names)]: 1, names[(7 * number + 3) % len(names)]: 2}:
            yield VerdictDocument(f"{row['id']}, {name}", DERIVATIONS[name](row["text"]))


if __name__ == "__main__":
    for document in documents():
        sys.stdout.write(json.dumps(document._asdict()) + "\n")
