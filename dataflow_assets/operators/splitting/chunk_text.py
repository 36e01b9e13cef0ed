"""Cuts long texts into chunks of whole sentences."""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from pydantic import Field, PrivateAttr, ValidationInfo, model_validator

from dataflow_assets.batch import Schema, schema_of, values_of
from dataflow_assets.errors import ConfigError, WrongType
from dataflow_assets.operators.operator import ColumnParams, Outcome, TextOperator
from dataflow_assets.operators.registry import register
from dataflow_assets.operators.splitting.children import child_rows, rejected_rows
from dataflow_assets.operators.splitting.markdown import Section, sections
from dataflow_assets.operators.splitting.packing import chunk_spans
from dataflow_assets.operators.splitting.sizes import Characters, Sentences, Size, Tokens
from dataflow_assets.operators.splitting.tokenizer import TokenizerFile, encoder, find_tokenizer

_PLACE: Schema = {"chunk_index": "int64", "start": "int64", "end": "int64"}
_LIMITS = ("max_chars", "max_tokens", "max_sentences")


class _Chunk(NamedTuple):
    """A chunk of the row at `parent`, or all that a kept row without text gets: nulls."""

    parent: int
    number: int | None = None
    start: int | None = None
    end: int | None = None
    text: str | None = None
    headings: tuple[str, ...] | None = None
    page: int | None = None


class _ChunkTextParams(ColumnParams):
    max_chars: int = Field(4000, ge=1, description="The most characters (code points) of a chunk.")
    max_tokens: int | None = Field(
        None, ge=1, description="Instead: the most tokens of a chunk, without special ones; with `tokenizer`."
    )
    max_sentences: int | None = Field(
        None, ge=1, description="Instead: the most sentences of a chunk, however long they are."
    )
    overlap: int = Field(
        0, ge=0, description="What is repeated at most, in whole sentences; in the unit of the limit."
    )
    tokenizer: str | None = Field(
        None,
        description="A `tokenizer.json`, a folder with one, or a model in the local cache of Hugging Face; "
        "nothing is downloaded. Relative paths begin at the pipeline's folder.",
    )
    markdown: bool = Field(
        False, description="Cut at headings first; the column `headings` has those that a chunk stands under."
    )
    pages: str | None = Field(
        None,
        description="A column (JSON list) with the places where pages begin, as documents bring in `pages`; "
        "the column `page` then has the page on which a chunk begins.",
    )
    _tokenizer: TokenizerFile | None = PrivateAttr(None)

    @property
    def tokenizer_file(self) -> TokenizerFile | None:
        """The tokenizer that was found."""
        return self._tokenizer

    @property
    def limit(self) -> int:
        """The limit that counts, in its unit."""
        return self.max_tokens or self.max_sentences or self.max_chars

    @model_validator(mode="after")
    def _one_limit_above_the_overlap(self, info: ValidationInfo) -> "_ChunkTextParams":
        given = [name for name in _LIMITS if name in self.model_fields_set and getattr(self, name)]
        if len(given) > 1:
            raise ValueError(f"give one limit, not {' and '.join(given)}")
        name = given[0] if given else _LIMITS[0]
        if self.overlap >= self.limit:
            raise ValueError(f"overlap {self.overlap} must be less than {name} {self.limit}")
        if (self.max_tokens is None) != (self.tokenizer is None):
            raise ValueError("max_tokens and tokenizer belong together; give both or none")
        if self.tokenizer is not None:
            self._tokenizer = _tokenizer(self.tokenizer, (info.context or {}).get("base_dir"))
        return self


def _tokenizer(name: str, base_dir: object) -> TokenizerFile:
    try:
        return find_tokenizer(name, Path(str(base_dir or ".")))
    except ConfigError as error:
        raise ValueError(str(error)) from error


@register
class ChunkText(TextOperator):
    """Cuts a text into chunks of whole sentences, up to a limit in characters, tokens or sentences.

    Grain: one row becomes one row a chunk. Reads `column` (string) and replaces it by the chunk; adds
    `chunk_index` (from 0), `start` and `end` (code points): `text[start:end]` is the chunk, nothing is
    trimmed. With `markdown` also `headings` (JSON list of strings, the outermost first), with `pages`
    also `page` (int64, from 1; null where the row has no pages).

    English and Chinese sentences, lines, table rows (`|`) and fenced code blocks are kept whole where
    they fit; a longer one is cut at lines, commas and spaces, and where there are none, between
    characters as a person sees them (never within a grapheme cluster). With `markdown` no chunk goes
    across a heading; one without text below it goes with the section that follows.

    An empty text is rejected as `empty`. A row without one (null) fails, unless `on_null` says otherwise:
    `keep` gives it one child whose new columns are null. A visible character beyond the limit fails its
    row, and so does a `pages` that is no list of numbers. Code blocks, headings: CommonMark 0.31;
    grapheme clusters: Unicode Standard Annex 29.

    Example:
        - {name: chunks, type: chunk_text, params: {column: text, max_chars: 1000, overlap: 100}}
    """

    name = "chunk_text"
    version = "3"
    splits = True
    Params = _ChunkTextParams
    params: _ChunkTextParams

    def reads(self) -> list[str]:
        """The text, and where its pages begin."""
        return [self.params.column, *([self.params.pages] if self.params.pages else [])]

    def writes(self) -> Schema:
        """The chunk, its number and its place."""
        more: Schema = {}
        if self.params.markdown:
            more["headings"] = "json"
        if self.params.pages:
            more["page"] = "int64"
        return {self.params.column: "string", **_PLACE, **more}

    def identity(self) -> Mapping[str, object]:
        """The content of the tokenizer."""
        found = self.params.tokenizer_file
        return {} if found is None else {"tokenizer": found.digest}

    def apply(self, table: pa.Table) -> Outcome:
        """The chunks of each text, in order."""
        texts = self.texts(table)
        places = range(table.num_rows) if texts.positions is None else texts.positions.to_pylist()
        pages = values_of(table, self.params.pages) if self.params.pages else [None] * table.num_rows
        errors, chunks, dropped = texts.errors, list[_Chunk](), dict[int, str]()
        for place, text in zip(places, texts.values.to_pylist(), strict=True):
            try:
                found = self._chunks(place, text, _page_starts(pages[place], self.params.pages))
            except (ValueError, WrongType) as error:
                errors.add(place, error)
                continue
            chunks += found
            if not found:
                dropped[place] = "empty"
        if self.params.on_null == "keep":
            chunks = sorted([*chunks, *map(_Chunk, texts.nulls)], key=lambda chunk: chunk.parent)
        else:
            dropped |= dict.fromkeys(texts.nulls, "missing_text")
        rejected = rejected_rows(table, dropped)
        return Outcome(self._kept(table, chunks), rejected, errors.in_order().failed_rows(table))

    def _chunks(self, place: int, text: str, pages: list[int] | None) -> list[_Chunk]:
        parts = sections(text) if self.params.markdown else [Section(0, len(text), ())]
        spans = chunk_spans(
            text, self.params.limit, self.params.overlap, self._size(), [part[:2] for part in parts]
        )
        ends = [part.end for part in parts]
        return [
            _Chunk(
                place,
                number,
                start,
                end,
                text[start:end],
                parts[bisect_right(ends, start)].headings,
                None if pages is None else bisect_right(pages, start),
            )
            for number, (start, end) in enumerate(spans)
        ]

    def _size(self) -> Callable[[str], Size]:
        if self.params.tokenizer_file is not None:
            return partial(Tokens, encoder(self.params.tokenizer_file))
        return Sentences if self.params.max_sentences else Characters

    def _kept(self, table: pa.Table, chunks: Sequence[_Chunk]) -> pa.Table:
        new: dict[str, list] = {
            self.params.column: [chunk.text for chunk in chunks],
            "chunk_index": [chunk.number for chunk in chunks],
            "start": [chunk.start for chunk in chunks],
            "end": [chunk.end for chunk in chunks],
            "headings": [chunk.headings and list(chunk.headings) for chunk in chunks],
            "page": [chunk.page for chunk in chunks],
        }
        written = {name: values for name, values in new.items() if name in self.writes()}
        parents = [chunk.parent for chunk in chunks]
        return child_rows(table, parents, written, self.output_schema(schema_of(table)))


def _page_starts(value: object, column: str | None) -> list[int] | None:
    if value is None:
        return None
    if isinstance(value, list) and value[:1] == [0] and all(type(start) is int for start in value):
        return value
    raise WrongType(
        f"wrong type: column {column!r} holds {str(value)[:80]}, expected a list of places from 0"
    )
