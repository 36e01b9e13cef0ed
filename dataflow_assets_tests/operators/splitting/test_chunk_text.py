"""Chunks are whole sentences within the limit, and together the text."""

import importlib.util
import json
import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow_assets.batch import rows_of, table_of
from dataflow_assets.engines.engine import check_law
from dataflow_assets.errors import ConfigError
from dataflow_assets.operators.registry import build_operator
from dataflow_assets.operators.splitting.chunk_text import ChunkText
from dataflow_assets.operators.splitting.packing import chunk_spans
from dataflow_assets.operators.splitting.tokenizer import TokenizerFile, encoder
from dataflow_assets_tests.operators.sample_tables import applied, table, typed_table

TEXTS = {
    row["id"]: row["text"]
    for row in map(
        json.loads,
        (Path(__file__).parents[2] / "cases/30_cjk_without_spaces/input.jsonl").read_text().splitlines(),
    )
}


def chunks(text: str, max_chars: int, overlap: int = 0) -> list[str]:
    return [text[start:end] for start, end in chunk_spans(text, max_chars, overlap)]


@pytest.mark.parametrize("number", TEXTS)
def test_case_30_nothing_is_lost_or_too_long(number: int) -> None:
    found = chunks(TEXTS[number], 100)
    assert "".join(found) == TEXTS[number]
    assert all(1 <= len(chunk) <= 100 for chunk in found)


def test_case_30_cuts_are_at_the_ends_of_sentences() -> None:
    found = chunks(TEXTS[1], 100)
    assert len(found) >= 5 and all(chunk[-1] in "。！？；" for chunk in found[:-1])
    assert all(chunk.endswith("。") for chunk in chunks(TEXTS[3], 100)[:-1])
    assert len(chunks(TEXTS[2], 100)) >= 3
    assert (chunks(TEXTS[4], 100), chunks(TEXTS[5], 100)) == ([], ["短"])


@given(st.text(), st.integers(5, 40), st.integers(0, 4))
def test_chunks_without_what_they_repeat_are_the_text(text: str, max_chars: int, overlap: int) -> None:
    try:
        spans = list(chunk_spans(text, max_chars, overlap))
    except ValueError:
        return
    assert all(0 < end - start <= max_chars for start, end in spans)
    ends = [0, *(end for _start, end in spans)]
    assert all(0 <= ends[n] - start <= overlap for n, (start, _end) in enumerate(spans))
    assert "".join(text[max(ends[n], start) : end] for n, (start, end) in enumerate(spans)) == text


def test_a_code_block_is_kept_whole() -> None:
    code = "```python\nprint(1). x = 2\n\ny\n```\n"
    assert code in chunks(f"Before it.\n{code}After it.", 40)


def test_a_family_of_emoji_is_not_torn() -> None:
    family = "👨‍👩‍👧‍👦"
    assert chunks(family * 3, 8) == [family] * 3


def test_rows_become_children_with_their_places() -> None:
    table = table_of(
        {"row_id": ["a:1", "a:2"], "text": ["One. Two. ", ""]}, {"row_id": "string", "text": "string"}
    )
    operator = build_operator("chunk_text", {"max_chars": 5})
    assert isinstance(operator, ChunkText)
    outcome = operator.apply(table)
    check_law(operator, table, outcome, "test")
    assert [tuple(row.values()) for row in rows_of(outcome.kept)] == [
        ("a:1/0", "One. ", 0, 0, 5),
        ("a:1/1", "Two. ", 1, 5, 10),
    ]
    assert outcome.rejected is not None and outcome.rejected["reject_reason"].to_pylist() == ["empty"]


def test_a_row_without_text_is_kept_or_rejected_as_on_null_says() -> None:
    rows = table(text=["One.", None, ""], pages=[[0], None, None])
    params = {"pages": "pages", "markdown": True}
    operator = build_operator("chunk_text", {**params, "on_null": "keep"})
    assert isinstance(operator, ChunkText)
    outcome = operator.apply(rows)
    check_law(operator, rows, outcome, "test")
    kept = rows_of(outcome.kept)[1]
    assert kept.pop("row_id") == "r1/0" and set(kept.values()) == {None}
    assert outcome.rejected is not None and outcome.rejected["reject_reason"].to_pylist() == ["empty"]
    rejected = applied("chunk_text", rows, {**params, "on_null": "reject"}).rejected
    assert rejected is not None and rejected["reject_reason"].to_pylist() == ["missing_text", "empty"]


def test_an_overlap_as_long_as_a_chunk_is_refused() -> None:
    with pytest.raises(ConfigError, match="overlap 5 must be less than max_chars 5"):
        build_operator("chunk_text", {"max_chars": 5, "overlap": 5})


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"max_chars": 9, "max_sentences": 2}, "give one limit, not max_chars and max_sentences"),
        ({"max_sentences": 2, "overlap": 2}, "overlap 2 must be less than max_sentences 2"),
        ({"max_tokens": 9}, "max_tokens and tokenizer belong together"),
        ({"tokenizer": "t"}, "max_tokens and tokenizer belong together"),
        (
            {"max_tokens": 9, "tokenizer": "no/such"},
            "there is no tokenizer 'no/such'",
        ),
        ({"max_tokens": 9, "tokenizer": __file__}, "is no tokenizer that the package tokenizers reads"),
    ],
)
def test_limits_that_do_not_fit_together_are_refused(params: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build_operator("chunk_text", params)


def test_a_missing_package_is_told_at_load(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'dataflow_assets\[models\]'"):
        build_operator("chunk_text", {"max_tokens": 9, "tokenizer": "t"})


def test_chunks_by_tokens_and_the_identity_of_their_tokenizer(tokenizer: TokenizerFile) -> None:
    folder = Path(tokenizer.path).parent
    operator = build_operator("chunk_text", {"max_tokens": 12, "tokenizer": folder.name}, folder.parent)
    assert operator.identity() == {"tokenizer": tokenizer.digest}
    outcome = pickle.loads(pickle.dumps(operator)).apply(
        typed_table("string", ["One sentence. 一句话。" * 4])
    )
    sizes = [len(encoder(tokenizer)(text).ids) for text in outcome.kept["text"].to_pylist()]
    assert sizes == [12, 12]


def test_a_chunk_knows_its_page() -> None:
    rows = table(text=["One. Two. Three.", "Four.", "Five."], pages=[[0, 5], None, [3]])
    outcome = applied("chunk_text", rows, {"max_chars": 5, "pages": "pages"})
    assert outcome.kept["page"].to_pylist() == [1, 2, 2, 2, None]
    assert outcome.failed is not None
    assert outcome.failed["error_message"].to_pylist() == [
        "wrong type: column 'pages' holds [3], expected a list of places from 0"
    ]
