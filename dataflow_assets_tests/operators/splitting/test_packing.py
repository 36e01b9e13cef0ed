"""Whatever the text: nothing is lost, nothing too long, no visible character is torn."""

from functools import partial

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from dataflow_assets.operators.splitting.packing import chunk_spans
from dataflow_assets.operators.splitting.sizes import Characters, Sentences, Tokens
from dataflow_assets.operators.splitting.tokenizer import TokenizerFile, encoder
from dataflow_assets.text.sentences import sentence_spans

PARTS = st.sampled_from(
    [
        *(
            "One sentence. ",
            "两句话。",
            "What?!”",
            "e\u0301",
            "\u0301",
            " ",
            "\n",
            "\r\n",
            "\n\n",
            "，",
            ".",
            "...",
        ),
        *(
            "👨\u200d👩\u200d👧",
            "🇩🇪",
            "🇫",
            "!\ufe0f",
            "ำ",
            "नि",
            "각",
            "각",
            "\u200d",
            "word",
            "。\u0301",
            "\u0600",
        ),
        *("```\na. b\n", "```\n", "~~~ x\n", "| a. b | c。d |\n", "# Head\n", "=\n", "שלום ", "x" * 30, "-"),
    ]
)
TEXTS = st.one_of(st.lists(PARTS, max_size=40).map("".join), st.text(max_size=60))


def graphemes(text: str) -> set[int]:
    return {0, *(found.end() for found in regex.finditer(r"\X", text))}


@given(TEXTS, st.integers(4, 60), st.integers(0, 20))
def test_chunks_by_characters(text: str, limit: int, overlap: int):
    try:
        spans = list(chunk_spans(text, limit, min(overlap, limit - 1)))
    except ValueError:
        assert max(len(found[0]) for found in regex.finditer(r"\X", text)) > limit
        return
    assert all(0 < end - start <= limit for start, end in spans)
    assert {place for span in spans for place in span} <= graphemes(text)
    assert_whole(text, spans, min(overlap, limit - 1), Characters(text))


def assert_whole(text: str, spans: list[tuple[int, int]], overlap: int, size) -> None:
    """Without what they repeat, which is at most `overlap`, the chunks are the text; each goes further."""
    end = 0
    for start, next_end in spans:
        assert start <= end < next_end
        assert start == end or size.exact((start, end)) <= overlap
        end = next_end
    assert end == len(text)


@given(TEXTS, st.integers(1, 5))
def test_chunks_by_sentences_have_whole_sentences(text: str, limit: int):
    spans = list(chunk_spans(text, limit, 0, Sentences))
    assert_whole(text, spans, 0, Characters(text))
    ends = {end for _start, end in sentence_spans(text)}
    assert {end for _start, end in spans} <= ends
    assert len(spans) <= 1 + len([1 for start, end in sentence_spans(text) if text[start:end].strip()])


@given(TEXTS, st.integers(3, 30), st.integers(0, 10))
def test_chunks_by_tokens(tokenizer: TokenizerFile, text: str, limit: int, overlap: int):
    overlap = min(overlap, limit - 1)
    size_of = partial(Tokens, encoder(tokenizer))
    try:
        spans = list(chunk_spans(text, limit, overlap, size_of))
    except ValueError as error:
        assert "one visible character" in str(error)
        return
    size = size_of(text)
    assert all(size.exact(span) <= limit for span in spans)
    assert {place for span in spans for place in span} <= graphemes(text)
    assert_whole(text, spans, overlap, size)


def test_table_rows_are_kept_whole_and_cut_where_they_are_too_long():
    text = "Before. It.\n| a. b | c。d! |\n| --- | --- |\n| " + "long. " * 10 + "|\n"
    chunks = [text[start:end] for start, end in chunk_spans(text, 30)]
    assert chunks == [
        "Before. It.\n| a. b | c。d! |\n",
        "| --- | --- |\n| long. long. ",
        "long. " * 5,
        "long. " * 3 + "|\n",
    ]


def test_a_long_code_block_is_cut_at_its_lines():
    text = "```py\n" + "print(1, 2)\n" * 5 + "```\nend."
    chunks = [text[start:end] for start, end in chunk_spans(text, 40)]
    assert chunks == ["```py\n" + "print(1, 2)\n" * 2, "print(1, 2)\n" * 3 + "```\n", "end."]


@pytest.mark.parametrize("text", ["." * 300_000 + "x", "!" * 300_000, ").)" * 300_000, "😀" * 99_999])
def test_a_long_line_is_cut_in_linear_time(text: str):
    spans = list(chunk_spans(text, 4000))
    assert len(spans) == -(-len(text) // 4000)
