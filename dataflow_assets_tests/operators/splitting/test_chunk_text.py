"""Chunks are whole sentences within the limit, and together the text."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow_assets.batch import rows_of, table_of
from dataflow_assets.engines.engine import check_law
from dataflow_assets.errors import ConfigError
from dataflow_assets.operators.registry import build_operator
from dataflow_assets.operators.sentences import chunk_spans
from dataflow_assets.operators.splitting.chunk_text import ChunkText

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


def test_an_overlap_as_long_as_a_chunk_is_refused() -> None:
    with pytest.raises(ConfigError, match="overlap 5 must be less than max_chars 5"):
        build_operator("chunk_text", {"max_chars": 5, "overlap": 5})
