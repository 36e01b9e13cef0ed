"""Verdicts, reasons and edited texts are datatrove's, on every document of the verdict table.

The table is made anew by `benchmarks/peers/datatrove_filters.py`; see `verdicts/README.md`.
"""

import hashlib
import json
import lzma
from functools import cache

import pytest

from dataflow_assets.text.language import Language
from dataflow_assets_tests.operators.filters.verdict_documents import FOLDER, documents
from dataflow_assets_tests.operators.sample_tables import applied, table

Verdict = tuple[str | None, str | None]
CASES = [
    ("filter_gopher_repetition", "en", {}),
    ("filter_gopher_repetition", "zh", {}),
    ("filter_gopher_quality", "en", {}),
    ("filter_gopher_quality", "zh", {}),
    ("filter_fineweb", "en", {}),
    ("filter_fineweb", "zh", {"sentences_from_chars": "off"}),
    ("filter_c4", "en", {}),
    ("filter_c4, any line end", "en", {"terminal_marks": []}),
]


@cache
def texts() -> dict[str, str]:
    return {document.id: document.text for document in documents()}


@cache
def verdicts() -> dict[tuple[str, str], dict[str, Verdict]]:
    """Of each filter and language the reason and the hash of the edited text by document."""
    told: dict[tuple[str, str], dict[str, Verdict]] = {}
    for line in lzma.decompress((FOLDER / "verdicts.jsonl.xz").read_bytes()).decode().splitlines():
        row = json.loads(line)
        of_filter = told.setdefault((row["filter"], row["language"]), {})
        of_filter[row["id"]] = row["reason"], row.get("sha256")
    return told


def ours(name: str, language: Language, params: dict) -> dict[str, Verdict]:
    """The same of our operator."""
    names, values = list(texts()), list(texts().values())
    outcome = applied(name, table(id=names, text=values), {"language": language, **params})
    assert outcome.failed is None
    found: dict[str, Verdict] = dict.fromkeys(names, (None, None))
    if name == "filter_c4":
        for row in outcome.kept.select(["id", "text"]).to_pylist():
            found[row["id"]] = None, hashlib.sha256(row["text"].encode()).hexdigest()
    if outcome.rejected is not None:
        for row in outcome.rejected.select(["id", "reject_reason"]).to_pylist():
            found[row["id"]] = row["reject_reason"], None
    return found


@pytest.mark.parametrize("name, language, params", CASES, ids=[f"{name} {lang}" for name, lang, _ in CASES])
def test_every_verdict_and_reason_is_that_of_datatrove(name: str, language: Language, params: dict):
    expected = verdicts()[name, language]
    found = ours(name.partition(",")[0], language, params)
    assert expected.keys() == texts().keys()
    assert {id_: (found[id_], told) for id_, told in expected.items() if found[id_] != told} == {}


@pytest.mark.parametrize("language, fewest", [("en", 37), ("zh", 26)])
def test_the_table_has_every_reason(language: Language, fewest: int):
    reasons = {
        (name, reason)
        for (name, of), told in verdicts().items()
        for reason, _ in told.values()
        if of == language
    }
    assert len(reasons) >= fewest


def test_chinese_texts_in_one_line_are_judged_by_sentences_and_only_they_differ():
    expected, found = verdicts()["filter_fineweb", "zh"], ours("filter_fineweb", "zh", {})
    different = {id_ for id_ in expected if expected[id_] != found[id_]}
    assert different
    assert all(len(texts()[id_]) > 1000 and texts()[id_].count("\n") < 3 for id_ in different)
