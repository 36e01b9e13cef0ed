"""Removes lines or sentences that the data set had before, over all batches."""

import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

import numpy as np
import pyarrow as pa
import xxhash
from pydantic import Field

from dataflow_assets.batch import Schema, arrow_field
from dataflow_assets.operators.deduplication.simplified_text import simplified
from dataflow_assets.operators.deduplication.verdicts import concatenated, numbers
from dataflow_assets.operators.operator import (
    ColumnParams,
    DatasetOperator,
    Outcome,
    Summaries,
    TextColumnOperator,
    split_by_reason,
)
from dataflow_assets.operators.registry import register
from dataflow_assets.text.sentences import sentence_spans

_HASH, _PLACE = "hash", "place"
_COMPARED = 1 << 18
_LINE = re.compile(r"[^\n]*\n|[^\n]+")


class RepeatedPartsOperator(DatasetOperator, TextColumnOperator):
    """Edits texts: takes out the parts that an earlier text, or the same one further up, has already.

    A summary has one row for each run of `run_length` parts, a verdict the places of those that repeat.
    """

    scope = "dataset"
    rejects_for: ClassVar[str]

    @property
    @abstractmethod
    def run_length(self) -> int:
        """How many parts in a row are compared as one."""

    @abstractmethod
    def parts(self, text: str) -> list[str]:
        """The parts of a text in order; together they are the text."""

    def writes(self) -> Schema:
        """The text column, as a string."""
        return {self._column.column: "string"}

    def summarize(self, table: pa.Table) -> pa.Table:
        """The hashes of all runs of the batch, in order; null where nothing but punctuation is in it."""
        parts = [self.parts(text) for text in self.texts(table).values.to_pylist()]
        simple = iter(simplified([part for some in parts for part in some]))
        hashes = [_hash(run) for some in parts for run in self._runs([next(simple) for _ in some])]
        return pa.table({_HASH: pa.array(hashes, pa.int64())})

    def decide(self, summaries: Summaries) -> Iterable[tuple[str, pa.Table]]:
        """For each batch: the places of the runs that were there before."""
        batches: list[tuple[str, int]] = []
        hashes: list[np.ndarray] = []
        present: list[np.ndarray] = []
        for key, summary in summaries:
            batches.append((key, summary.num_rows))
            hashes.append(numbers(summary[_HASH]))
            present.append(summary[_HASH].is_valid().to_numpy())
        repeated = _repeated(concatenated(hashes, np.int64), concatenated(present, bool))
        begin = 0
        for key, runs in batches:
            yield key, pa.table({_PLACE: pa.array(np.flatnonzero(repeated[begin : begin + runs]))})
            begin += runs

    def apply_verdict(self, table: pa.Table, verdict: pa.Table) -> Outcome:
        """Takes the repeated parts out; a row of which nothing is left is rejected as it came in."""
        texts = self.texts(table)
        positions = range(table.num_rows) if texts.positions is None else texts.positions.to_pylist()
        edited: list[str | None] = [None] * table.num_rows
        reasons: list[str | None] = [None] * table.num_rows
        repeated = set(verdict[_PLACE].to_pylist())
        begin = 0
        for position, text in zip(positions, texts.values.to_pylist(), strict=True):
            parts = self.parts(text)
            runs = self._count_runs(len(parts))
            places = [run for run in range(runs) if begin + run in repeated]
            begin += runs
            edited[position] = self._without(parts, places) if places else text
            if places and not edited[position]:
                reasons[position] = self.rejects_for
        for position in texts.nulls if self._column.on_null == "reject" else ():
            reasons[position] = "missing_text"
        return self._outcome(table, edited, reasons)

    def _outcome(self, table: pa.Table, edited: list[str | None], reasons: list[str | None]) -> Outcome:
        errors = self.texts(table).errors.in_order()
        name = self._column.column
        place = table.schema.get_field_index(name)
        new = table.set_column(place, arrow_field(name, "string"), pa.array(edited, pa.large_string()))
        why = pa.array(reasons, pa.large_string())
        return split_by_reason(table, why, errors)._replace(kept=split_by_reason(new, why, errors).kept)

    def _count_runs(self, parts: int) -> int:
        return max(parts - self.run_length + 1, 0)

    def _runs(self, simple: Sequence[str]) -> Iterator[str]:
        for run in range(self._count_runs(len(simple))):
            yield "\n".join(filter(None, simple[run : run + self.run_length]))

    def _without(self, parts: Sequence[str], places: Sequence[int]) -> str:
        gone = {part for place in places for part in range(place, place + self.run_length)}
        left = "".join(part for number, part in enumerate(parts) if number not in gone)
        return left if left.strip() and len(parts) - 1 not in gone else left.rstrip()


def _hash(run: str) -> int | None:
    if not run:
        return None
    value = xxhash.xxh3_64_intdigest(run.encode())
    return value - (1 << 64) if value >> 63 else value


def _repeated(hashes: np.ndarray, present: np.ndarray) -> np.ndarray:
    """Where a hash is that of an earlier place."""
    order = np.argsort(hashes, kind="stable")
    repeated = np.zeros(len(hashes), bool)
    for begin in range(1, len(order), _COMPARED):  # in pieces, for each makes copies
        this = order[begin : begin + _COMPARED]
        repeated[this] = hashes[this] == hashes[order[begin - 1 : begin - 1 + len(this)]]
    # a null stands as 0 among the hashes, which is no repeat of one
    first = np.flatnonzero(present & (hashes == 0))[:1]
    repeated[first] = False
    return repeated & present


@register
class DropDuplicateLines(RepeatedPartsOperator):
    """Removes every line that the data set had before, so that menus and notices stay once.

    Grain: one row in, at most one out; order and ids unchanged. Reads and writes `column` (string).
    Scope: the whole data set; the first line in the order of the rows stays, whatever the batch size.
    Lines are equal after the simplification of `drop_near_duplicates`: lower case, each number 0,
    punctuation a space, accents off; a line without letter or digit is never removed. A text that
    loses its last line loses the white space before it too. A row of which nothing is left is
    rejected for `only_duplicate_lines`. Lines are compared by 64-bit xxh3 hashes.

    Deciding holds about 30 bytes a line.
    Source: CCNet (Wenzek et al. 2019), which compares within shards; here the whole data set.

    Example:
        - {name: without_menus, type: drop_duplicate_lines, params: {column: text}}
    """

    name = "drop_duplicate_lines"
    rejects_for = "only_duplicate_lines"

    @property
    def run_length(self) -> int:
        """A line."""
        return 1

    def parts(self, text: str) -> list[str]:
        """The lines with their ends."""
        return _LINE.findall(text)


class _DuplicateSentencesParams(ColumnParams):
    sentences: int = Field(3, ge=1, le=100, description="How many sentences in a row are compared as one.")


@register
class DropDuplicateSentences(RepeatedPartsOperator):
    """Removes every run of three sentences that the data set had before.

    Grain: one row in, at most one out; order and ids unchanged. Reads and writes `column` (string).
    Scope: the whole data set; the first run in the order of the rows stays, whatever the batch size.
    Runs overlap: of four repeated sentences in a row all four go. A text of fewer sentences has no run
    and stays as it is. A sentence ends with a full stop before white space, with 。！？!?；;…, or with
    its line; code blocks are one sentence. Sentences are equal after the simplification of
    `drop_near_duplicates`. A row of which nothing is left is rejected for `only_duplicate_sentences`.
    Runs are compared by 64-bit xxh3 hashes.

    Deciding holds about 30 bytes a sentence.
    Source: C4 (Raffel et al. 2020): all but one of any three-sentence span.

    Example:
        - {name: told_once, type: drop_duplicate_sentences, params: {column: text, sentences: 3}}
    """

    name = "drop_duplicate_sentences"
    Params = _DuplicateSentencesParams
    params: _DuplicateSentencesParams
    rejects_for = "only_duplicate_sentences"

    @property
    def run_length(self) -> int:
        """The sentences of a run."""
        return self.params.sentences

    def parts(self, text: str) -> list[str]:
        """The sentences with the white space behind them."""
        return [text[begin:end] for begin, end in sentence_spans(text)]
