"""The filters of datatrove 0.10.1 with the settings that ours stand for: verdicts, or CPU-seconds.

Run by the interpreter of an environment with `datatrove[processing]`, spacy and jieba:
    PYTHON datatrove_filters.py verdicts DOCUMENTS.jsonl > VERDICTS.jsonl
    PYTHON datatrove_filters.py chain LANGUAGE DOCUMENTS.jsonl

Documents are lines with `id` and `text`. A verdict is a line with `id`, `language`, `filter`, `reason`
(null: kept) and, for C4, the SHA-256 of the edited text. The chain prints one line of JSON.
"""

import hashlib
import json
import sys
import time

from datatrove.data import Document
from datatrove.pipeline.filters import (
    C4QualityFilter,
    FineWebQualityFilter,
    GopherQualityFilter,
    GopherRepetitionFilter,
)
from datatrove.pipeline.filters.base_filter import BaseFilter, get_filter_result

# FineWeb-2's settings for cmn_Hani, with the terminal marks of our profile.
CHINESE_MARKS = tuple("。！？；…”』」）.!?")
CHINESE_STOP_WORDS = list("的年在月是和日了於·為有被人中为他與後也而由")

_WARM_UP = "A first text, 第一个C语言的文本。"


def filters(language: str) -> dict[str, BaseFilter]:
    """The filters for `en` or `zh` by the names of ours, in the order of the chain."""
    if language == "en":
        return {
            "filter_gopher_repetition": GopherRepetitionFilter(),
            "filter_gopher_quality": GopherQualityFilter(),
            "filter_fineweb": FineWebQualityFilter(),
        }
    return {
        "filter_gopher_repetition": GopherRepetitionFilter(
            language="cmn_Hani",
            dup_line_frac=0.287,
            dup_para_frac=0,
            dup_line_char_frac=0,
            dup_para_char_frac=0,
            top_n_grams=((2, 0.256), (3, 0.201), (4, 0.171)),
            dup_n_grams=((5, 0.198), (6, 0.182), (7, 0.167), (8, 0.154), (9, 0.14), (10, 0.127)),
        ),
        "filter_gopher_quality": GopherQualityFilter(
            language="cmn_Hani",
            min_avg_word_length=1,
            max_avg_word_length=5,
            max_non_alpha_words_ratio=0.735,
            stop_words=CHINESE_STOP_WORDS,
        ),
        "filter_fineweb": FineWebQualityFilter(
            language="cmn_Hani",
            line_punct_thr=0.106,
            short_line_thr=999,
            char_duplicates_ratio=0.1,
            new_line_ratio=0.178,
            stop_chars=CHINESE_MARKS,
        ),
    }


def verdict(name: str, language: str, filter_: BaseFilter, row: dict) -> dict:
    """What a filter says of a document."""
    document = Document(text=row["text"], id=row["id"])
    kept, reason = get_filter_result(filter_.filter(document))
    told = {"id": row["id"], "language": language, "filter": name, "reason": None if kept else reason}
    if kept and name.startswith("filter_c4"):
        told["sha256"] = hashlib.sha256(document.text.encode()).hexdigest()
    return told


def print_verdicts(rows: list[dict]) -> None:
    """Every filter in both languages on every document; C4 with and without its rule on terminal marks."""
    c4 = {"filter_c4": C4QualityFilter()}
    c4["filter_c4, any line end"] = C4QualityFilter(filter_no_terminal_punct=False)
    for language in ("en", "zh"):
        for name, filter_ in {**filters(language), **(c4 if language == "en" else {})}.items():
            for row in rows:
                print(json.dumps(verdict(name, language, filter_, row)))


def print_chain(language: str, rows: list[dict]) -> None:
    """The CPU-seconds of the three filters, a document that one drops is not shown to the next."""
    chain = filters(language)
    for filter_ in chain.values():
        filter_.filter(Document(text=_WARM_UP, id="first"))
    started = time.process_time()
    kept = 0
    for row in rows:
        document = Document(text=row["text"], id=row["id"])
        kept += all(get_filter_result(filter_.filter(document))[0] for filter_ in chain.values())
    cpu_s = time.process_time() - started
    print(json.dumps({"documents": len(rows), "kept": kept, "cpu_s": round(cpu_s, 3)}))


def main() -> None:
    """Runs one of the two."""
    with open(sys.argv[-1], encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    if sys.argv[1] == "chain":
        print_chain(sys.argv[2], rows)
    else:
        print_verdicts(rows)


if __name__ == "__main__":
    main()
