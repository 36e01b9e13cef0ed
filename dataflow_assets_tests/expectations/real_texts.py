"""Real sentences, English and Chinese, of the samples that the package ships."""

import gzip
import html
import json
import re
from functools import cache
from pathlib import Path

from dataflow_assets.profiles.languages import language_at_a_glance

_DATA = Path(__file__).parents[2] / "dataflow_assets" / "pipelines" / "data"
_BLOCK = re.compile(r"</?(?:p|div|li|ul|ol|dl|dt|dd|pre|h[1-6]|td|tr|title|head)\b[^>]*>")
_TAG, _SPACE = re.compile(r"<[^>]*>"), re.compile(r"\s+")
_END = {"en": re.compile(r"(?<=[.!?])\s+(?=[A-Z])"), "zh": re.compile(r"(?<=[。！？])")}


@cache
def sentences(language: str) -> list[str]:
    """Whole sentences, each once, in the order of the pages that they are from."""
    found: dict[str, None] = {}
    with gzip.open(_DATA / f"text_pretrain_{language}_sample.jsonl.gz", "rt", encoding="utf-8") as file:
        pages = [json.loads(line)["html"] for line in file]
    for page in pages:
        for paragraph in _BLOCK.split(page):
            text = _SPACE.sub(" ", html.unescape(_TAG.sub("", paragraph))).strip()
            found |= dict.fromkeys(_whole_sentences(text, language))
    return list(found)


def _whole_sentences(text: str, language: str) -> list[str]:
    if language_at_a_glance(text) != language:
        return []
    parts = (part.strip() for part in _END[language].split(text))
    return [part for part in parts if 10 <= len(part) <= 600 and part[-1] in ".!?。！？"]
