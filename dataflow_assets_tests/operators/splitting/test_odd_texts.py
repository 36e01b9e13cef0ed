"""Operators that split or convert, on every odd text: a stated result, and no row is lost."""

import pytest

from dataflow_assets.engines.engine import check_law
from dataflow_assets.operators.registry import build_operator
from dataflow_assets.operators.splitting.chunk_text import ChunkText
from dataflow_assets_tests.operators.sample_tables import ids, typed_table
from dataflow_assets_tests.operators.test_any_text import ODD_TEXTS

SPLITTERS = {
    "characters": ("chunk_text", {"max_chars": 4000, "overlap": 200}),
    "sentences": ("chunk_text", {"max_sentences": 3, "overlap": 1}),
    "markdown": ("chunk_text", {"markdown": True}),
    "pattern": ("extract_qa", {"pattern": r"(?P<question>\w+) (?P<answer>\w+)"}),
    "path": ("extract_qa", {"path": "$[*]"}),
    "chat": ("convert_chat", {"read": "chatml", "write": "messages"}),
}


@pytest.mark.parametrize("text", ODD_TEXTS.values(), ids=ODD_TEXTS)
@pytest.mark.parametrize("name", SPLITTERS)
def test_no_row_is_lost(name: str, text: str):
    kind, params = SPLITTERS[name]
    operator = build_operator(kind, params)
    rows = typed_table("string", [text, "one two"])
    outcome = operator.apply(rows)
    check_law(operator, rows, outcome, name)
    if isinstance(operator, ChunkText):
        assert outcome.failed is None
        assert ids(outcome.rejected) == ([] if text else ["r0"])


@pytest.mark.parametrize("name", SPLITTERS)
def test_nulls_and_lone_surrogates_fail_their_rows(name: str):
    kind, params = SPLITTERS[name]
    rows = typed_table("json", ["bad \ud800", None])
    outcome = build_operator(kind, params).apply(rows)
    assert ids(outcome.failed) == ["r0", "r1"]
