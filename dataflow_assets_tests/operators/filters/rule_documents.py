"""English documents that hit the rules: pages of the shipped sample, and others made of them by rule."""

import json
import re
from importlib.resources import files

from dataflow_assets.text.language import language_of

_SAMPLE = files("dataflow_assets.pipelines") / "data" / "text_clean_sample.jsonl"


def english_documents() -> list[str]:
    """Real ones without tags, and one of each kind that is made for every fourth of them; always the same."""
    rows = map(json.loads, _SAMPLE.read_text("utf-8").splitlines())
    pages = [re.sub(r"\s*\n\s*", "\n", re.sub("<[^>]*>", "\n", row["text"])).strip() for row in rows]
    pages = [page for page in dict.fromkeys(pages) if page and language_of(page) == "en"]
    return pages + [document for page in pages[::4] for document in _made_of(page)]


def _made_of(page: str) -> list[str]:
    lines, words = page.split("\n"), page.split()
    return [
        page + ":",
        page + "\n",
        "...\n".join(lines) + "...",
        "\n".join(lines[:3]) + "…",
        "\n".join("• " + line for line in lines),
        "\n".join("– " + line if place % 10 else line for place, line in enumerate(lines)),
        "\n".join(line + " JavaScript" for line in lines),
        page.upper(),
        " ".join(word.upper() if place % 4 == 0 else word for place, word in enumerate(words)),
        re.sub(r"[^\w\s]", "", " ".join(words)),
        " ".join(words[:20]),
        " ".join(words[:19]),
        " ".join((words[:7] * 40)[:250]) + ".",
        " # ".join(words),
        page.replace("e", "#..."),
        page + " lorem Ipsum dolor",
        page + "&nbsp;",
        "AT&amp;T " + page,
        page + " Copyright 2024",
        page.replace("a", "{"),
        page.replace(" ", " \ufffd ", 1),
        " ".join(word[:2] for word in words),
        "".join(words),
        ". ".join(words) + ".",
        "What ? : " + page,
    ]


if __name__ == "__main__":
    print("\n".join(map(json.dumps, english_documents())))
