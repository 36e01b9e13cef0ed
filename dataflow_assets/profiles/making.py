"""A profile of the rows of a batch that is in memory."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from dataflow_assets.batch import ROW_ID, column_type, finite_numbers, rows_of, schema_of, values_of
from dataflow_assets.profiles.conversations import conversation_measures, turns_of
from dataflow_assets.profiles.languages import language_at_a_glance
from dataflow_assets.profiles.numbers import Sums
from dataflow_assets.profiles.profile import MOST_ALL, ColumnProfile, Profile, Sample, pair_name
from dataflow_assets.profiles.sampling import (
    MOST_ROWS_OF_A_BATCH,
    Contents,
    Rates,
    at_most,
    below,
    hashes_of,
    joined,
)
from dataflow_assets.profiles.texts import Tokenize, near_hashes, piece_hashes, text_measures

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


def profile_of_rows(table: pa.Table, batch: str, how: HowToProfile) -> Profile:
    """The profile of these rows, whatever is in them."""
    hashes = hashes_of(table[ROW_ID]) if table.num_rows else np.empty(0, np.uint64)
    rates = Rates(
        at_most(hashes, how.rates.deep, MOST_ROWS_OF_A_BATCH),
        at_most(hashes, how.rates.cheap, 2 * MOST_ROWS_OF_A_BATCH),
    )
    in_cheap, in_deep = below(hashes, rates.cheap), below(hashes, rates.deep)
    cheap, deep = _rows(table, in_cheap), _rows(table, in_deep)
    row_ids = [str(row_id) for row_id in deep[ROW_ID].to_pylist()]
    columns = {
        name: _column(name, table, cheap, deep, how, rates) for name in schema_of(table) if name != ROW_ID
    }
    if how.own:
        columns = {**_own_measures(deep, how.own), **columns}
    pairs = {
        pair_name(pair.inputs, pair.label): _pair(table, pair, rates.cheap)
        for pair in how.pairs
        if {*pair.inputs, pair.label} <= set(table.column_names)
    }
    sample = Sample(hashes[in_cheap], hashes[in_deep], row_ids, [batch] * len(row_ids))
    return Profile(table.num_rows, rates, sample, columns, pairs)


def _rows(table: pa.Table, mask: np.ndarray) -> pa.Table:
    return table if mask.all() else table.take(pa.array(np.flatnonzero(mask)))


def _column(
    name: str, table: pa.Table, cheap: pa.Table, deep: pa.Table, how: HowToProfile, rates: Rates
) -> ColumnProfile:
    kind = column_type(table.schema.field(name))
    found = ColumnProfile(kind, table[name].null_count)
    if kind == "string":
        _add_texts(found, table[name], cheap[name], deep[name], how, rates)
    elif kind == "json":
        found.contents = Contents.of(hashes_of(table[name].drop_null()), rates.cheap)
        _add_conversations(found, values_of(deep, name), how.tokenize)
    elif kind == "bool":
        counts = table[name].drop_null().value_counts().to_pylist()
        found.top = {str(each["values"]).lower(): each["counts"] for each in counts}
        found.top_is_all = True
    else:
        found.sums = _sums(table[name])
        found.sampled.cheap["value"] = _numbers(cheap[name])
    return found


def _add_texts(
    found: ColumnProfile,
    column: pa.ChunkedArray,
    cheap: pa.ChunkedArray,
    deep: pa.ChunkedArray,
    how: HowToProfile,
    rates: Rates,
) -> None:
    """Counts of contents over all rows, lengths over the cheap sample, the rest over the deep one.

    Short values are names and labels: how they are written is measured only where that is asked for.
    """
    there = column.drop_null() if column.null_count else column
    hashes = hashes_of(there)
    found.contents = Contents.of(hashes, rates.cheap)
    found.top, found.top_is_all = _top(there, hashes)
    found.sampled.cheap["chars"] = _numbers(pc.utf8_length(cheap))
    if not how.short_texts and (pc.mean(pc.binary_length(there)).as_py() or 0) < _MIN_TEXT_BYTES:
        return
    is_there = deep.is_valid().to_numpy()
    for name, values in text_measures(deep.drop_null().to_pylist(), how.tokenize).items():
        if name != "chars":
            found.sampled.deep[name] = _spread(values, is_there)
    listed = deep.to_pylist()
    found.sampled.labels["language"] = [
        None if text is None else language_at_a_glance(text) for text in listed
    ]
    found.sampled.pieces = [[] if text is None else piece_hashes(text) for text in listed]
    found.near = Contents.of(near_hashes(pl.Series(there, dtype=pl.String), rates.deep), rates.deep)


def _top(column: pa.ChunkedArray, hashes: np.ndarray) -> tuple[dict[str, int], bool]:
    """The frequent values and their counts, and whether these are all values."""
    distinct, places, counts = np.unique(hashes, return_index=True, return_counts=True)
    is_all = len(distinct) <= MOST_ALL
    chosen = np.arange(len(distinct))
    if not is_all:
        chosen = np.flatnonzero(counts >= max(2, _TOP_SHARE * len(hashes)))
        chosen = chosen[np.argsort(-counts[chosen], kind="stable")][:_MOST_TOP]
    values = column.take(pa.array(places[chosen])).to_pylist()
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
