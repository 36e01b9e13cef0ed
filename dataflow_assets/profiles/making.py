"""A profile of the rows of a batch that is in memory."""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

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
from dataflow_assets.profiles.profile import MOST_ALL, ColumnProfile, Profile, Sample, pair_name
from dataflow_assets.profiles.remembered import Remembered
from dataflow_assets.profiles.sampling import (
    MOST_ROWS_OF_A_BATCH,
    Contents,
    Rates,
    at_most,
    below,
    hashes_of,
    joined,
)
from dataflow_assets.profiles.texts import Tokenize, near_hashes

_MIN_TEXT_BYTES = 16
_MOST_TOP = 16
_TOP_SHARE = 0.01
_TOP_CHARS = 120
_LARGEST = float(np.finfo(np.float32).max)
OwnMeasure = Callable[[dict[str, object]], float | bool | None]


@dataclass(frozen=True)
class Pair:
    """Columns that are inputs, and the one that is their label."""

    inputs: tuple[str, ...]
    label: str


@dataclass(frozen=True)
class HowToProfile:
    """What is measured beside the usual: tokens by a tokenizer, own measures by name, pairs with a label.

    Short values are measured as texts only with `short_texts`.
    """

    rates: Rates = field(default_factory=Rates)
    tokenize: Tokenize | None = None
    own: Mapping[str, OwnMeasure] = field(default_factory=dict)
    pairs: Sequence[Pair] = ()
    short_texts: bool = False


class _Places(NamedTuple):
    """Which rows of a batch are in the samples, at these rates: None for all of them."""

    cheap: pa.Array | None
    deep: pa.Array | None
    rates: Rates
    cheap_hashes: np.ndarray
    deep_hashes: np.ndarray
    row_ids: list[str]


_places: Remembered[tuple[str, Rates], _Places] = Remembered(32)
_columns: Remembered[tuple[Hashable, ...], ColumnProfile] = Remembered(128)


def profile_of_rows(table: pa.Table, batch: str, how: HowToProfile) -> Profile:
    """The profile of these rows, whatever is in them.

    A column that is as it was in the step before, on the same rows, is not measured again.
    """
    ids = column_hash(table[ROW_ID])
    places = _places.get((ids, how.rates))
    if places is None:
        places = _places_of(table[ROW_ID], how.rates)
        _places.keep((ids, how.rates), places)
    rows = (ids, places.rates, how.tokenize, how.short_texts)
    columns = {name: _column(table, name, places, how, rows) for name in schema_of(table) if name != ROW_ID}
    if how.own:
        deep = table if places.deep is None else table.take(places.deep)
        columns = {**_own_measures(deep, how.own), **columns}
    pairs = {
        pair_name(pair.inputs, pair.label): _pair(table, pair, places.rates.cheap)
        for pair in how.pairs
        if {*pair.inputs, pair.label} <= set(table.column_names)
    }
    sample = Sample(places.cheap_hashes, places.deep_hashes, places.row_ids, [batch] * len(places.row_ids))
    return Profile(table.num_rows, places.rates, sample, columns, pairs)


def _places_of(ids: pa.ChunkedArray, wanted: Rates) -> _Places:
    hashes = hashes_of(ids) if len(ids) else np.empty(0, np.uint64)
    rates = Rates(
        at_most(hashes, wanted.deep, MOST_ROWS_OF_A_BATCH),
        at_most(hashes, wanted.cheap, 2 * MOST_ROWS_OF_A_BATCH),
    )
    in_cheap, in_deep = below(hashes, rates.cheap), below(hashes, rates.deep)
    cheap, deep = _chosen(in_cheap), _chosen(in_deep)
    row_ids = [str(row_id) for row_id in _taken(ids, deep).to_pylist()]
    return _Places(cheap, deep, rates, hashes[in_cheap], hashes[in_deep], row_ids)


def _chosen(mask: np.ndarray) -> pa.Array | None:
    return None if mask.all() else pa.array(np.flatnonzero(mask))


def _taken(column: pa.ChunkedArray, places: pa.Array | None) -> pa.ChunkedArray:
    return column if places is None else column.take(places)


def _column(
    table: pa.Table, name: str, places: _Places, how: HowToProfile, rows: tuple[Hashable, ...]
) -> ColumnProfile:
    """The profile of one column; `rows` is what it depends on beside the column itself."""
    kind = column_type(table.schema.field(name))
    key = (*rows, kind, column_hash(table[name]))
    found = _columns.get(key)
    if found is None:
        found = _measured_column(table, name, kind, places, how)
        _columns.keep(key, found)
    return found


def _measured_column(
    table: pa.Table, name: str, kind: ColumnType, places: _Places, how: HowToProfile
) -> ColumnProfile:
    column = table[name]
    found = ColumnProfile(kind, column.null_count)
    if kind == "string":
        _add_texts(found, column, places, how)
    elif kind == "json":
        found.contents = Contents.of(hashes_of(column.drop_null()), places.rates.cheap)
        deep = table.select([name]) if places.deep is None else table.select([name]).take(places.deep)
        _add_conversations(found, values_of(deep, name), how.tokenize)
    elif kind == "bool":
        counts = column.drop_null().value_counts().to_pylist()
        found.top = {str(each["values"]).lower(): each["counts"] for each in counts}
        found.top_is_all = True
    else:
        found.sums = _sums(column)
        found.sampled.cheap["value"] = _numbers(_taken(column, places.cheap))
    return found


def _add_texts(found: ColumnProfile, column: pa.ChunkedArray, places: _Places, how: HowToProfile) -> None:
    """Counts of contents over all rows, lengths over the cheap sample, the rest over the deep one.

    Short values are names and labels: how they are written is measured only where that is asked for.
    """
    hashes = hashes_of(column)
    is_there = column.is_valid().to_numpy()
    there = column.drop_null() if column.null_count else column
    distinct, first, counts = np.unique(hashes[is_there], return_index=True, return_counts=True)
    sampled = below(distinct, places.rates.cheap)
    found.contents = Contents(distinct[sampled], counts[sampled], places.rates.cheap)
    found.top, found.top_is_all = _top(there, first, counts)
    found.sampled.cheap["chars"] = _numbers(pc.utf8_length(_taken(column, places.cheap)))
    if not how.short_texts and (pc.mean(pc.binary_length(there)).as_py() or 0) < _MIN_TEXT_BYTES:
        return
    chosen = np.arange(len(column)) if places.deep is None else places.deep.to_numpy()
    is_there = is_there[chosen]
    texts = _taken(column, places.deep).drop_null().to_pylist()
    measured = measured_texts(texts, hashes[chosen][is_there], how.tokenize)
    for name, values in measured.measures.items():
        if name != "chars":
            found.sampled.deep[name] = _spread(values, is_there)
    languages, pieces = iter(measured.languages), iter(measured.pieces)
    found.sampled.labels["language"] = [next(languages) if each else None for each in is_there]
    found.sampled.pieces = [next(pieces) if each else [] for each in is_there]
    found.near = Contents.of(near_hashes(there, places.rates.deep), places.rates.deep)


def _top(column: pa.ChunkedArray, first: np.ndarray, counts: np.ndarray) -> tuple[dict[str, int], bool]:
    """The frequent values and their counts, and whether these are all; `first` is where each value is."""
    is_all = len(counts) <= MOST_ALL
    chosen = np.arange(len(counts))
    if not is_all:
        chosen = np.flatnonzero(counts >= max(2, _TOP_SHARE * len(column)))
        chosen = chosen[np.argsort(-counts[chosen], kind="stable")][:_MOST_TOP]
    values = column.take(pa.array(first[chosen])).to_pylist()
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


def _own_measures(deep: pa.Table, own: Mapping[str, OwnMeasure]) -> dict[str, ColumnProfile]:
    """A column for each measure of a person's own; a row on which it raises has no value."""
    rows = rows_of(deep)
    found = {}
    for name, measure in own.items():
        values = np.array([_measured(measure, row) for row in rows], np.float64)
        column = ColumnProfile("float64", int(np.isnan(values).sum()))
        column.sampled.deep["value"] = values
        found[name] = column
    return found


def _measured(measure: OwnMeasure, row: dict[str, object]) -> float:
    try:
        value = measure(dict(row))
        return float("nan") if value is None else float(value)
    except Exception:  # noqa: BLE001  a measure never stops the work that it looks at
        return float("nan")


def _pair(table: pa.Table, pair: Pair, rate: float) -> Contents:
    """The different labels of each input."""
    return Contents.of(joined(input_hashes(table, pair.inputs), hashes_of(table[pair.label])), rate)


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
    """The values as floats of 32 bits, at most the largest of them; NaN for what is null or not finite."""
    numbers = pc.cast(column, pa.float64(), safe=False).to_numpy()
    return np.where(np.isfinite(numbers), np.clip(numbers, -_LARGEST, _LARGEST), np.nan).astype(np.float32)


def _spread(values: np.ndarray, is_there: np.ndarray) -> np.ndarray:
    """The values at the places where there is one, NaN at the others."""
    spread = np.full(len(is_there), np.nan, np.float32)
    spread[is_there] = values
    return spread
