"""Real multi-turn conversations, English and Chinese, and odd ones among them, as records."""

from collections.abc import Iterator
from importlib.resources import files

import pytest
import yaml

from dataflow_assets.batch import Schema, table_of

COLUMNS: Schema = {
    "row_id": "string",
    "messages": "json",
    "tools": "json",
    "language": "string",
    "score": "float64",
    "number": "int64",
    "meta": "json",
}
_PER_LANGUAGE = 250
_TOOL = {"type": "function", "function": {"name": "clock", "parameters": {}}}


def real_table(count: int = 2 * _PER_LANGUAGE):
    """That many conversations of chatterbot-corpus, half of each language, as a table with `row_id`."""
    rows = [row for language in ("english", "chinese") for row in _records(language)[: count // 2]]
    rows = [{"row_id": f"chat:{number}", **row} for number, row in enumerate(rows, 1)]
    return table_of({name: [row.get(name) for row in rows] for name in COLUMNS}, COLUMNS)


def _records(language: str) -> list[dict[str, object]]:
    """The longest conversations first, then by file; every one with oddities of its own."""
    found = sorted(_conversations(language), key=lambda texts: -len(texts))[:_PER_LANGUAGE]
    return [_record(number, texts, language) for number, texts in enumerate(found)]


def _conversations(language: str) -> Iterator[list[str]]:
    corpus = pytest.importorskip("chatterbot_corpus", reason="pip install chatterbot-corpus").__name__
    for file in sorted(files(corpus).joinpath("data", language).iterdir(), key=str):
        # Everything is text: the corpus has answers such as `yes` and `42`.
        yield from yaml.load(file.read_bytes(), yaml.BaseLoader)["conversations"]


def _record(number: int, texts: list[str], language: str) -> dict[str, object]:
    messages: list[dict[str, object]] = [
        {"role": ("user", "assistant")[place % 2], "content": text} for place, text in enumerate(texts)
    ]
    _make_odd(number, messages)
    return {
        "messages": messages,
        "tools": [_TOOL] if number % 7 == 0 else None,
        "language": language,
        "score": number / 3 if number % 4 else None,
        "number": number * 10**15,
        "meta": {"😀": [None, "", number], "absent": None} if number % 3 == 0 else "plain text",
    }


def _make_odd(number: int, messages: list[dict[str, object]]) -> None:
    last = messages[-1]
    odd = number % 11
    if odd == 1:
        messages.insert(0, {"role": "system", "content": "你是助手。\U00020000"})
    elif odd == 2:
        last |= {"reasoning_content": "Because …\n" * 3, "weight": 1}
    elif odd == 3:
        last["content"] = None
        last["tool_calls"] = [{"id": "1", "function": {"name": "clock", "arguments": "{}"}}]
        messages += [{"role": "tool", "tool_call_id": "1", "content": "12:00"}, dict(messages[-2])]
    elif odd == 4:
        messages.append({"role": "user", "content": "", "name": None})
    elif odd == 5:
        messages.pop(0)
    elif odd == 6:
        last["content"] = f"nul \0 and half \ud83d {last['content']}"
    elif odd == 7:
        last |= {"weight": 0.25, "thinking": ""}
        messages.append({"content": "keys turned round", "role": "assistant"})
    elif odd == 8:
        last["content"] = [{"type": "text", "text": "parts"}, {"type": "image_url", "image_url": {}}]
    elif odd == 9:
        last["content"] = "long " * 20_000
    elif odd == 10:
        messages.append({"role": "observer", "content": "🙂"})
