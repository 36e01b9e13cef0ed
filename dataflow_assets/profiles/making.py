"""A profile of the rows of a batch that is in memory."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dataflow_assets.batch import (
    ROW_ID,
    ColumnType,
    column_hash,
    column_type,
    finite_numbers,
    rows_of,
    schema_of,
    values_of,
)
from dataflow_assets.profiles.conversations import conversation_measures, turns_of
from dataflow_assets.profiles.measured_texts import measured_texts
from dataflow_assets.profiles.numbers import Sums
from dataflow_assets.profiles.profile import MOST_ALL, Chosen, ColumnProfile, Profile, Sample, pair_name
from dataflow_assets.profiles.sampling import (
    MOST_ROWS_OF_A_BATCH,
    Contents,
    Labelled,
    Rates,
    at_most,
    below,
    counted,
    hashes_of,
)
from dataflow_assets.profiles.texts import Texts, Tokenize, near_hashes

_MOST_TOP = 16
_TOP_SHARE = 0.01
_TOP_CHARS = 120
_LARGEST = 1e300  # a sum of 10^8 of them is a float
OwnMeasure = Callable[[dict[str, object]], float | bool | None]


@dataclass(frozen=True)
class Pair:
    """Columns that are inputs, and the one that is their label."""

    inputs: tuple[str, ...]
    label: str


@dataclass(frozen=True)
class HowToProfile:
    """What is measured beside the usual: tokens by a tokenizer, own measures by name, pairs with a label.

    `tell` hears of the first row of a batch on which an own measure raises: its name, the row and the error.
    """

    rates: Rates = field(default_factory=Rates)
    tokenize: Tokenize | None = None
    own: Mapping[str, OwnMeasure] = field(default_factory=dict)
    pairs: Sequence[Pair] = ()
    tell: Callable[[str, object, Exception], None] | None = None


class _Batch(NamedTuple):
    """Rows, and which of them are in the samples."""

    rows: pa.Table
    chosen: Chosen
    rates: Rates
    sample: Sample


def profile_of_rows(
    table: pa.Table, batch: str, how: HowToProfile, before: Profile | None = None, content_hash: str = ""
) -> Profile:
    """The profile of these rows, whatever is in them; `content_hash` is that of the table.

    `before` is the profile of the batch in the step before, made in this way: a column that is as it was,
    on the same rows, is not measured again.
    """
    ids = column_hash(table[ROW_ID])
    chosen = before and before.chosen
    if before and chosen and (chosen.ids, chosen.wanted) == (ids, how.rates):
        sampled = _Batch(table, chosen, before.rates, before.sample)
        known = {column.hash: column for column in before.columns.values()}
    else:
        sampled, known = _sampled(table, ids, batch, how.rates), {}
    columns = {name: _column(sampled, name, how, known) for name in schema_of(table) if name != ROW_ID}
    if how.own:
        columns = {**_own_measures(_taken(table, sampled.chosen.deep), how), **columns}
    pairs = {
        pair_name(pair.inputs, pair.label): labels_of_inputs(table, pair)
        for pair in how.pairs
        if {*pair.inputs, pair.label} <= set(table.column_names)
    }
    return Profile(
        table.num_rows, sampled.rates, sampled.sample, columns, pairs, sampled.chosen, content_hash
    )


def _sampled(table: pa.Table, ids: str, batch: str, wanted: Rates) -> _Batch:
    hashes = hashes_of(table[ROW_ID]) if table.num_rows else np.empty(0, np.uint64)
    rates = Rates(
        at_most(hashes, wanted.deep, MOST_ROWS_OF_A_BATCH),
        at_most(hashes, wanted.cheap, 2 * MOST_ROWS_OF_A_BATCH),
    )
    in_cheap, in_deep = below(hashes, rates.cheap), below(hashes, rates.deep)
    chosen = Chosen(ids, wanted, _places_in(in_cheap), _places_in(in_deep))
    row_ids = [str(row_id) for row_id in _taken(table[ROW_ID], chosen.deep).to_pylist()]
    sample = Sample(hashes[in_cheap], hashes[in_deep], row_ids, [batch] * len(row_ids))
    return _Batch(table, chosen, rates, sample)


def _places_in(mask: np.ndarray) -> np.ndarray | None:
    return None if mask.all() else np.flatnonzero(mask).astype(np.uint32)


_Rows = TypeVar("_Rows", pa.ChunkedArray, pa.Table)


def _taken(rows: _Rows, places: np.ndarray | None) -> _Rows:
    return rows if places is None else rows.take(pa.array(places))


def _column(batch: _Batch, name: str, how: HowToProfile, known: Mapping[str, ColumnProfile]) -> ColumnProfile:
    """The profile of one column, one that is known by the column's hash where it is of the same kind."""
    kind, hashed = column_type(batch.rows.schema.field(name)), column_hash(batch.rows[name])
    found = known.get(hashed)
    if found is None or found.kind != kind:
        found = _measured_column(batch, name, kind, how)
        found.hash = hashed
    return found


def _measured_column(batch: _Batch, name: str, kind: ColumnType, how: HowToProfile) -> ColumnProfile:
    column = batch.rows[name]
    found = ColumnProfile(kind, column.null_count)
    if kind == "string":
        _add_texts(found, column, batch, how)
    elif kind == "json":
        found.contents = Contents.of(hashes_of(column.drop_null()))
        deep = _taken(batch.rows.select([name]), batch.chosen.deep)
        _add_conversations(found, values_of(deep, name), how.tokenize)
    elif kind == "bool":
        counts = column.drop_null().value_counts().to_pylist()
        found.top = {str(each["values"]).lower(): each["counts"] for each in counts}
        found.top_is_all = True
    else:
        found.sums = _sums(column)
        found.sampled.cheap["value"] = _numbers(_taken(column, batch.chosen.cheap))
    return found


def _add_texts(found: ColumnProfile, column: pa.ChunkedArray, batch: _Batch, how: HowToProfile) -> None:
    """Contents of all rows, lengths of the cheap sample, the rest of the deep one."""
    texts = Texts.of(column)
    distinct, counts = counted(texts.hashes[texts.is_there])
    found.contents = Contents.of_counted(distinct, counts)
    found.top, found.top_is_all = _top(texts, distinct, counts)
    cheap = texts.views if batch.chosen.cheap is None else texts.views[batch.chosen.cheap]
    found.sampled.cheap["chars"] = cheap.str.len_chars().to_numpy().astype(np.float32)
    found.text_bytes = pc.sum(pc.binary_length(column)).as_py() or 0
    found.near = Contents.of(near_hashes(texts, batch.rates.deep), batch.rates.deep)
    deep = np.arange(len(column)) if batch.chosen.deep is None else batch.chosen.deep
    is_there = texts.is_there[deep]
    sampled = [text for text in texts.views[deep].to_list() if text is not None]
    measured = measured_texts(sampled, texts.hashes[deep][is_there], how.tokenize)
    for name, values in measured.measures.items():
        if name != "chars":
            found.sampled.deep[name] = _spread(values, is_there)
    languages, pieces = iter(measured.languages), iter(measured.pieces)
    found.sampled.labels["language"] = [next(languages) if each else None for each in is_there]
    found.sampled.pieces = [next(pieces) if each else None for each in is_there]


def _top(texts: Texts, distinct: np.ndarray, counts: np.ndarray) -> tuple[dict[str, int], bool]:
    """The frequent values and their counts, and whether these are all."""
    is_all = len(counts) <= MOST_ALL
    chosen = np.arange(len(counts))
    if not is_all:
        chosen = np.flatnonzero(counts >= max(2, _TOP_SHARE * counts.sum()))
        chosen = chosen[np.argsort(-counts[chosen], kind="stable")][:_MOST_TOP]
    places = [int(np.argmax(texts.hashes == value)) for value in distinct[chosen]]
    values = [texts.views[place] for place in places]
    found: dict[str, int] = {}
    for value, count in zip(values, counts[chosen].tolist(), strict=True):
        short = short_value(value)
        found[short] = found.get(short, 0) + count
    return found, is_all


def short_value(value: str) -> str:
    """A value as the counts of frequent values have it."""
    return value if len(value) <= _TOP_CHARS else f"{value[:_TOP_CHARS]}…"


def _add_conversations(found: ColumnProfile, values: Sequence[object], tokenize: Tokenize | None) -> None:
    """Turns and their lengths, where the column holds conversations."""
    turns = [turns_of(value) for value in values]
    is_there = np.array([each is not None for each in turns], bool)
    if not is_there.any():
        return
    present = [each for each in turns if each is not None]
    for name, numbers in conversation_measures(present, tokenize).items():
        found.sampled.deep[name] = _spread(numbers, is_there)
    found.sampled.labels["last_role"] = [each[-1][0] if each else None for each in turns]


def _own_measures(deep: pa.Table, how: HowToProfile) -> dict[str, ColumnProfile]:
    """A column for each measure of a person's own; a row on which it raises has no value."""
    rows = rows_of(deep)
    found = {}
    for name, measure in how.own.items():
        errors: list[tuple[object, Exception]] = []
        values = _finite(np.array([_measured(measure, row, errors) for row in rows], np.float64))
        if errors and how.tell is not None:
            how.tell(name, *errors[0])
        column = ColumnProfile("float64", int(np.isnan(values).sum()))
        column.sampled.deep["value"] = values
        found[name] = column
    return found


def _measured(measure: OwnMeasure, row: dict[str, object], errors: list) -> float:
    try:
        value = measure(dict(row))
        return float("nan") if value is None else float(value)
    except (Exception, SystemExit) as error:  # noqa: BLE001  a measure never stops the work that it looks at
        errors.append((row[ROW_ID], error))
        return float("nan")


def labels_of_inputs(table: pa.Table, pair: Pair) -> Labelled:
    """The labels of each input."""
    return Labelled.of(input_hashes(table, pair.inputs), hashes_of(table[pair.label]))


def input_hashes(table: pa.Table, inputs: Sequence[str]) -> np.ndarray:
    """A hash of the values of these columns for each row."""
    hashes = np.zeros(table.num_rows, np.uint64)
    for name in inputs:
        hashes = hashes * np.uint64(0x9E3779B97F4A7C15) + hashes_of(table[name])
    return hashes


def _sums(column: pa.ChunkedArray) -> Sums:
    numbers = finite_numbers(column)
    if not len(numbers):
        return Sums()
    ends = pc.min_max(numbers).as_py()
    total = pc.sum(numbers).as_py()
    mean = total / len(numbers) if math.isfinite(total) else pc.sum(pc.divide(numbers, len(numbers))).as_py()
    return Sums(len(numbers), mean, ends["min"], ends["max"])


def _numbers(column: pa.ChunkedArray) -> np.ndarray:
    """The values as floats, whole numbers beyond 2^53 rounded; NaN for what is null or not finite."""
    return _finite(pc.cast(column, pa.float64(), safe=False).to_numpy())


def _finite(numbers: np.ndarray) -> np.ndarray:
    """The numbers, at most 10^300 from 0; NaN for what is not finite."""
    return np.where(np.isfinite(numbers), np.clip(numbers, -_LARGEST, _LARGEST), np.nan)


def _spread(values: np.ndarray, is_there: np.ndarray) -> np.ndarray:
    """The values at the places where there is one, NaN at the others."""
    spread = np.full(len(is_there), np.nan, np.float32)
    spread[is_there] = values
    return spread
