"""Data sets of real sentences, clean or with one anomaly planted by rule, and which share of rows has it."""

import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

Row = dict[str, object]
LABELS = ("install", "network", "packages", "security")
OTHER = {"en": "zh", "zh": "en"}
_LINES = {
    "en": "Click here to subscribe to our newsletter and get 10% off your next order",
    "zh": "点击此处订阅我们的新闻邮件并获得下次订单九折优惠",
}
_SENTENCES_A_TEXT = (1, 2, 2, 3, 4)


class DataSet(NamedTuple):
    """Rows, and the share of them that the anomaly was planted in."""

    rows: list[Row]
    share: float


def clean(sentences: Sequence[str], rows: int, random_: random.Random) -> list[Row]:
    """Texts of a few sentences, no two of them alike, with a label and a conversation."""
    unused = random_.sample(sentences, len(sentences))
    space = "" if "。" in "".join(sentences[:50]) else " "
    found: list[Row] = []
    for _ in range(rows):
        if len(unused) < max(_SENTENCES_A_TEXT):
            unused = random_.sample(sentences, len(sentences))
        text = space.join(unused.pop() for _ in range(random_.choice(_SENTENCES_A_TEXT)))
        turns = [random_.choice(sentences) for _ in range(random_.choice((2, 2, 4)))]
        found.append(
            {
                "text": text,
                "label": random_.choice(LABELS),
                "messages": [
                    {"role": "assistant" if place % 2 else "user", "content": turn}
                    for place, turn in enumerate(turns)
                ],
            }
        )
    return found


def _chosen(rows: Sequence[Row], share: float, random_: random.Random) -> list[Row]:
    return random_.sample(list(rows), round(share * len(rows)))


def truncated_conversations(rows: list[Row], language: str, random_: random.Random) -> DataSet:
    """A quarter of the last answers end somewhere in the middle."""
    chosen = _chosen(rows, 0.25, random_)
    for row in chosen:
        turns = row["messages"]
        assert isinstance(turns, list)
        content = turns[-1]["content"]
        turns[-1]["content"] = content[: max(1, int(len(content) * random_.uniform(0.2, 0.9)))]
    return DataSet(rows, len(chosen) / len(rows))


def missing_answers(rows: list[Row], language: str, random_: random.Random) -> DataSet:
    """A fifth of the conversations end with the user's turn."""
    chosen = _chosen(rows, 0.2, random_)
    for row in chosen:
        turns = row["messages"]
        assert isinstance(turns, list)
        turns.pop()
    return DataSet(rows, len(chosen) / len(rows))


def boilerplate(rows: list[Row], language: str, random_: random.Random) -> DataSet:
    """A third of the texts have one line before, within or behind them."""
    chosen = _chosen(rows, 1 / 3, random_)
    for row in chosen:
        text, line = str(row["text"]), _LINES[language]
        row["text"] = random_.choice((f"{line}\n{text}", f"{text}\n{line}", f"{text} {line}"))
    return DataSet(rows, len(chosen) / len(rows))


def label_conflicts(rows: list[Row], language: str, random_: random.Random) -> DataSet:
    """In 15% of the rows the text is that of another row, which has another label."""
    chosen = _chosen(rows, 0.15, random_)
    half = len(chosen) // 2
    for row, other in zip(chosen[:half], chosen[half : 2 * half], strict=True):
        row["text"] = other["text"]
        row["label"] = random_.choice([label for label in LABELS if label != other["label"]])
    return DataSet(rows, 2 * half / len(rows))


def encoding_damage(rows: list[Row], language: str, random_: random.Random) -> DataSet:
    """A fifth of the texts were read in a wrong encoding; only texts that are not all ASCII change by it."""
    damages = _DAMAGES if language == "zh" else _DAMAGES[:4]
    damage = random_.choice(damages)
    able = [row for row in rows if not str(row["text"]).isascii()]
    chosen = random_.sample(able, min(len(able), round(0.2 * len(rows))))
    for row in chosen:
        row["text"] = damage(str(row["text"]))
    return DataSet(rows, len(chosen) / len(rows))


_DAMAGES: list[Callable[[str], str]] = [
    lambda text: text.encode().decode("latin-1"),
    lambda text: text.encode().decode("cp1252", "replace"),
    lambda text: text.encode().decode("ascii", "replace"),
    lambda text: text.encode().decode("latin-1").encode().decode("latin-1"),
    lambda text: text.encode().decode("gb18030", "replace"),
    lambda text: text.encode("gb18030").decode("latin-1"),
    lambda text: text.encode("gb18030").decode("utf-8", "replace"),
]


def language_mix_up(
    rows: list[Row], language: str, random_: random.Random, others: Sequence[str] = ()
) -> DataSet:
    """A fifth of the texts are of the other language."""
    chosen = _chosen(rows, 0.2, random_)
    for row in chosen:
        row["text"] = random_.choice(others) + random_.choice(others)
    return DataSet(rows, len(chosen) / len(rows))


def duplicated_batch(rows: list[Row], language: str, random_: random.Random, batch_rows: int = 80) -> DataSet:
    """One batch is there twice."""
    start = random_.randrange(len(rows) // batch_rows) * batch_rows
    twice = [dict(row) for row in rows[start : start + batch_rows]]
    place = random_.randrange(len(rows) // batch_rows + 1) * batch_rows
    found = [*rows[:place], *twice, *rows[place:]]
    return DataSet(found, batch_rows / len(found))


PLANTED: dict[str, Callable[..., DataSet]] = {
    "truncated conversations": truncated_conversations,
    "missing answers": missing_answers,
    "boilerplate": boilerplate,
    "label conflicts": label_conflicts,
    "encoding damage": encoding_damage,
    "language mix-up": language_mix_up,
    "duplicated batch": duplicated_batch,
}
RULES = {
    "truncated conversations": "share(messages.unfinished > 0) <= 0.05",
    "missing answers": 'share(last_role = "user") <= 0.02',
    "boilerplate": "boilerplate(text) <= 0.05",
    "label conflicts": "label_conflicts(text, label) <= 0.05",
    "encoding damage": "share(damaged > 0) <= 0.02",
    "language mix-up": 'share(text.language = "OTHER") <= 0.02',
    "duplicated batch": "duplicates(text) <= 0.02",
}


def data_set(
    kind: str | None, language: str, texts: dict[str, list[str]], seed: int, rows: int = 400
) -> DataSet:
    """A clean data set, or one with an anomaly of this kind."""
    random_ = random.Random(seed)
    found = clean(texts[language], rows, random_)
    if kind is None:
        return DataSet(found, 0.0)
    more = {"others": texts[OTHER[language]]} if kind == "language mix-up" else {}
    return PLANTED[kind](found, language, random_, **more)


def rules_for(language: str) -> dict[str, str]:
    """The rules for data sets of this language, by the anomaly that each looks for."""
    return {kind: rule.replace("OTHER", OTHER[language]) for kind, rule in RULES.items()}
