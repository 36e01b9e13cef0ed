"""Drops rows that hold a passage of a benchmark: decontamination of training data."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pydantic import Field, PrivateAttr, ValidationInfo, model_validator

from dataflow_assets.batch import Schema
from dataflow_assets.errors import RunError
from dataflow_assets.operators.deduplication.benchmark_files import (
    BenchmarkFile,
    benchmark_file,
    benchmark_texts,
)
from dataflow_assets.operators.deduplication.shingles import Shingles, shingles
from dataflow_assets.operators.deduplication.simplified_text import simplified
from dataflow_assets.operators.deduplication.verdicts import apply_verdict, refuse_columns
from dataflow_assets.operators.operator import ColumnParams, Outcome, TextOperator
from dataflow_assets.operators.registry import register
from dataflow_assets.text.language import language_of

BENCHMARK, NGRAM = "benchmark", "ngram"


class _DecontaminateParams(ColumnParams):
    benchmarks: dict[str, str] = Field(
        min_length=1,
        description="The name of each benchmark and its file: .jsonl, .parquet or .txt (texts between "
        "blank lines); relative paths begin at the pipeline's folder.",
    )
    benchmark_columns: list[str] = Field(
        [], description="The columns of the files that are compared, each text for itself; [] for all texts."
    )
    words: int = Field(12, ge=2, le=100, description="The words in a row that make a row contaminated.")
    characters: int = Field(24, ge=2, le=200, description="The same for Chinese benchmarks, in characters.")
    _files: tuple[BenchmarkFile, ...] = PrivateAttr(())

    @property
    def files(self) -> tuple[BenchmarkFile, ...]:
        """The files as they were when they were first read."""
        return self._files

    @model_validator(mode="after")
    def _files_can_be_read(self, info: ValidationInfo) -> "_DecontaminateParams":
        base_dir = Path((info.context or {}).get("base_dir") or ".")
        self._files = tuple(
            benchmark_file(name, base_dir / Path(path).expanduser()) for name, path in self.benchmarks.items()
        )
        for file in self._files:
            benchmark_texts(file, tuple(self.benchmark_columns))
        return self


@register
class Decontaminate(TextOperator):
    """Drops every row that has twelve words in a row in common with a benchmark.

    Grain: one row in, at most one out; order, ids and values unchanged. Reads `column` (string), and
    the files of `benchmarks`, whose content counts as a parameter. Both sides are simplified as in
    `drop_near_duplicates`: lower case, each number 0, punctuation a space, accents off. A benchmark
    text with a share of Han characters from .2 on is compared by `characters` without spaces, any other
    by `words`. A benchmark text that is shorter finds nothing. Rejected rows have the reason
    `contaminated`, the name of the `benchmark`, and in `ngram` the first passage, simplified. Passages
    are compared by 64-bit hashes. Raises ConfigError where a file cannot be read, and where the input
    has a column `benchmark` or `ngram`; RunError where a file changes during the run.

    Holds 16 bytes for each word or Chinese character of the benchmarks.
    Source: overlaps of 8 to 13 words are in use (Brown et al. 2020, app. C: 13); 12 is datatrove's.

    Example:
        - {name: clean, type: decontaminate, params: {benchmarks: {gsm8k: benchmarks/gsm8k.jsonl}}}
    """

    name = "decontaminate"
    Params = _DecontaminateParams
    params: _DecontaminateParams

    def identity(self) -> Mapping[str, object]:
        """The content of the benchmarks."""
        return {file.name: file.content_hash for file in self.params.files}

    def output_schema(self, schema: Schema) -> Schema:
        """The same columns. Raises ConfigError if a column beside the rejected rows is one of them."""
        refuse_columns(self.name, schema, (BENCHMARK, NGRAM))
        return dict(schema)

    def apply(self, table: pa.Table) -> Outcome:
        """Keeps the rows that have no passage of a benchmark."""
        texts = self.texts(table)
        found = self._passages(texts.values.to_pylist())
        places = pa.array([place for place, _, _ in found], pa.int64())
        verdict = pa.table(
            {
                "row": places if texts.positions is None else texts.positions.take(places),
                BENCHMARK: pa.array([benchmark for _, benchmark, _ in found], pa.large_string()),
                NGRAM: pa.array([ngram for _, _, ngram in found], pa.large_string()),
            }
        )
        missing = texts.nulls if self._column.on_null == "reject" else []
        return apply_verdict(table, verdict, "contaminated", missing, texts.errors.in_order())

    def _passages(self, texts: Sequence[str]) -> list[tuple[int, str, str]]:
        """For each contaminated text its place, the benchmark, and the first passage."""
        params = self.params
        words, characters = _indexes(
            params.files, tuple(params.benchmark_columns), params.words, params.characters
        )
        simple = simplified(texts)
        found = {}
        if len(characters.hashes):
            spaced = [text.replace(" ", "") if not text.isascii() else "" for text in simple]
            for place, index, start in characters.first_hits(
                shingles(spaced, "characters", params.characters)
            ):
                passage = spaced[place][start : start + params.characters]
                found[place] = (place, params.files[index].name, passage)
        for place, index, start in words.first_hits(shingles(simple, "words", params.words)):
            passage = " ".join(simple[place].split(" ")[start : start + params.words])
            found[place] = (place, params.files[index].name, passage)
        return sorted(found.values())


class _Index(NamedTuple):
    """The hashes of all passages, ascending, and the number of the first file that has each."""

    hashes: np.ndarray
    files: np.ndarray

    def first_hits(self, sets: Shingles) -> list[tuple[int, int, int]]:
        """For each text with a passage of the index: its place, the file, and where the passage begins."""
        if not len(self.hashes):
            return []
        places = np.minimum(np.searchsorted(self.hashes, sets.hashes), len(self.hashes) - 1)
        hits = np.flatnonzero(self.hashes[places] == sets.hashes)
        texts, firsts = np.unique(np.searchsorted(sets.ends, hits, side="right") - 1, return_index=True)
        starts = hits[firsts] - sets.ends[texts]
        files = self.files[places[hits[firsts]]]
        return list(zip(texts.tolist(), files.tolist(), starts.tolist(), strict=True))


@lru_cache(maxsize=4)
def _indexes(
    files: tuple[BenchmarkFile, ...], columns: tuple[str, ...], words: int, characters: int
) -> tuple[_Index, _Index]:
    """The passages of all files in words, and those of their Chinese texts in characters."""
    try:
        texts = [simplified(benchmark_texts(file, columns)) for file in files]
    except ValueError as error:
        raise RunError(str(error)) from error
    chinese = [[text.replace(" ", "") for text in some if language_of(text) == "zh"] for some in texts]
    others = [[text for text in some if language_of(text) != "zh"] for some in texts]
    in_words = [shingles(some, "words", words).hashes for some in others]
    return _index(in_words), _index([shingles(some, "characters", characters).hashes for some in chinese])


def _index(parts: Sequence[np.ndarray]) -> _Index:
    hashes, firsts = np.unique(np.concatenate(parts), return_index=True)
    numbers = np.repeat(np.arange(len(parts), dtype=np.int32), [len(part) for part in parts])
    return _Index(hashes, numbers[firsts])
