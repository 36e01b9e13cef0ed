"""Rows to measure with, from a seed: web-like text with HTML, URLs and exact duplicates."""

import json
import random
from pathlib import Path

_WORDS = Path(__file__).with_name("words.txt").read_text().split()
_HAN = (
    "数据处理系统可以在任何时候停止并且继续运行文本清洗过滤去重语言模型训练语料质量很重要我们需要更多的例子"
)
_DIRT = (
    "<b>Bold</b>",
    "<br/>",
    "<p>",
    "</p>",
    '<a href="http://x.org/p?q=1">link</a>',
    "A &lt; B",
    "<div class='x'>",
)
_DUPLICATE_SHARE = 0.05
_SHORT_SHARE = 0.1


def _text(random_: random.Random) -> str:
    words = random_.choices(_WORDS, k=8 if random_.random() < _SHORT_SHARE else random_.randint(60, 170))
    for _ in range(len(words) // 40):
        words.insert(random_.randrange(len(words)), random_.choice(_DIRT))
    if random_.random() < 0.3:
        words.insert(random_.randrange(len(words)), f"https://example.com/a/{random_.randrange(10**6)}?id=7")
    if random_.random() < 0.1:
        words.append("".join(random_.choices(_HAN, k=30)))
    return " ".join(words).capitalize() + "."


def write_corpus(path: Path, rows: int, seed: int = 7) -> int:
    """Writes `rows` JSONL rows of about 620 bytes (id, text, source, year, score).

    Returns the bytes of the file.
    """
    random_ = random.Random(seed)
    texts: list[str] = []
    with open(path, "w", encoding="utf-8") as file:
        for number in range(rows):
            repeat = bool(texts) and random_.random() < _DUPLICATE_SHARE
            text = random_.choice(texts) if repeat else _text(random_)
            if len(texts) < 20_000:
                texts.append(text)
            row = {
                "id": f"doc-{number:08d}",
                "text": text,
                "source": random_.choice(["web", "mail", "book"]),
                "year": random_.randint(1990, 2026),
                "score": round(random_.random(), 6),
            }
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    return path.stat().st_size
