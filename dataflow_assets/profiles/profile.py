"""The profile of rows: made of a table, put together with others, asked for shares and quantiles."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import NamedTuple

import numpy as np

from dataflow_assets.batch import ColumnType
from dataflow_assets.profiles.numbers import Sums, described
from dataflow_assets.profiles.sampling import Contents, Labelled, Rates, below

_MOST_TOP = 20
MOST_ALL = 64  # values of a column that are all counted
_MIN_TEXT_BYTES, _FEWEST_TEXTS = 16, 10


@dataclass
class Sampled:
    """A value for each row of a sample: NaN or None where the row has no value of this kind."""

    cheap: dict[str, np.ndarray] = field(default_factory=dict)
    deep: dict[str, np.ndarray] = field(default_factory=dict)
    labels: dict[str, list[str | None]] = field(default_factory=dict)
    pieces: list[list[int] | None] | None = None


@dataclass
class ColumnProfile:
    """One column. `nulls`, `text_bytes`, `sums` and `top` are of all rows, the rest of samples.

    `top` has the frequent values and how often each was seen; all of them, exactly, where `top_is_all`.
    `hash` is `column_hash` of a batch's column, nothing where it is put together of more.
    """

    kind: ColumnType
    nulls: int = 0
    sums: Sums | None = None
    contents: Contents | None = None
    near: Contents | None = None
    top: dict[str, int] = field(default_factory=dict)
    top_is_all: bool = False
    sampled: Sampled = field(default_factory=Sampled)
    text_bytes: int = 0
    hash: str = ""


class Sample(NamedTuple):
    """The rows of a sample: their hashes, for the deep one the ids and batches of the rows too."""

    cheap: np.ndarray
    deep: np.ndarray
    row_ids: list[str]
    batches: list[str]


class Chosen(NamedTuple):
    """Which rows of a batch are in the samples, by their places: None for all of them.

    The same for the same row ids, of which `ids` is the `column_hash`, and the same `wanted` rates.
    """

    ids: str
    wanted: Rates
    cheap: np.ndarray | None
    deep: np.ndarray | None


@dataclass
class Profile:
    """What rows are like. `rates` are the parts of them that were sampled, `pairs` see `pair_name`.

    `chosen` and the hash of its rows are there for one batch, not where it is put together of more.
    """

    rows: int
    rates: Rates
    sample: Sample
    columns: dict[str, ColumnProfile]
    pairs: dict[str, Labelled] = field(default_factory=dict)
    chosen: Chosen | None = None
    content_hash: str = ""
    _ascending: dict[tuple[str, str], np.ndarray] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def measure(self, column: str, name: str) -> np.ndarray:
        """The values of a measure in the sample, ascending, as float64; rows without one are left out.

        Raises KeyError.
        """
        found = self._ascending.get((column, name))
        if found is None:
            sampled = self.columns[column].sampled
            values = sampled.cheap[name] if name in sampled.cheap else sampled.deep[name]
            found = np.sort(values[~np.isnan(values)]).astype(np.float64)
            self._ascending[column, name] = found
        return found

    def labels(self, column: str, name: str) -> Counter[str]:
        """How often each label is in the sample. Raises KeyError."""
        return Counter(label for label in self.columns[column].sampled.labels[name] if label is not None)

    def is_shown_in_depth(self, column: str) -> bool:
        """Whether how values are written is worth a look: those that are short in the mean are names."""
        found = self.columns[column]
        return found.kind != "string" or found.text_bytes >= _MIN_TEXT_BYTES * max(1, self.rows - found.nulls)

    def measures_of(self, column: str) -> list[str]:
        """The names of the measures of a column that are shown."""
        sampled = self.columns[column].sampled
        return [*sampled.cheap, *(sampled.deep if self.is_shown_in_depth(column) else ())]

    def labels_of(self, column: str) -> list[str]:
        """The names of the labels of a column that are shown."""
        return [*self.columns[column].sampled.labels] if self.is_shown_in_depth(column) else []

    def deep_values(self, column: str, name: str) -> np.ndarray:
        """A measure for each row of the deep sample, NaN where it has none. Raises KeyError."""
        sampled = self.columns[column].sampled
        if name in sampled.deep:
            return sampled.deep[name]
        return sampled.cheap[name][below(self.sample.cheap, self.rates.deep)]

    def boilerplate(self, column: str) -> float | None:
        """The largest share of sampled texts with one sentence or line in common; None for less than ten."""
        pieces = self.pieces(column)
        if len(pieces) < _FEWEST_TEXTS:
            return None
        counts = Counter(piece for text in pieces for piece in text)
        return max(counts.values(), default=0) / len(pieces)

    def pieces(self, column: str) -> list[list[int]]:
        """The hashes of the sentences and lines of each sampled text."""
        return [text for text in self.columns[column].sampled.pieces or () if text is not None]

    def as_json(self) -> dict:
        """Plain values: counts, and of each measure its quantiles and histogram."""
        return {
            "rows": self.rows,
            "sampled_rows": len(self.sample.deep),
            "rate": round(self.rates.deep, 6),
            "columns": {name: self._column_json(name) for name in self.columns},
        }

    def _column_json(self, name: str) -> dict:
        column = self.columns[name]
        found: dict = {"type": column.kind, "nulls": column.nulls}
        if column.contents is not None:
            found["distinct"] = column.contents.distinct
            found["distinct_is_exact"] = column.contents.rate >= 1
            found["duplicates"] = column.contents.duplicates
        in_depth = self.is_shown_in_depth(name)
        if column.near is not None and in_depth:
            found["near_duplicates"] = column.near.duplicates
        if in_depth and (share := self.boilerplate(name)) is not None:
            found["boilerplate"] = round(share, 6)
        measures = {measure: self.measure(name, measure) for measure in self.measures_of(name)}
        found["measures"] = {
            measure: described(values, column.sums if measure == "value" else None)
            for measure, values in measures.items()
            if len(values)
        }
        labels = {label: self.labels(name, label) for label in self.labels_of(name)}
        found["shares"] = {
            label: {value: round(count / counts.total(), 6) for value, count in counts.most_common(_MOST_TOP)}
            for label, counts in labels.items()
            if counts
        }
        if column.top:
            top = sorted(column.top.items(), key=lambda pair: (-pair[1], pair[0]))[:_MOST_TOP]
            found["top"] = [{"value": value, "count": count} for value, count in top]
            found["top_is_all"] = column.top_is_all and len(column.top) <= _MOST_TOP
        return found


def pair_name(inputs: Sequence[str], label: str) -> str:
    """What the pairs of inputs and a label are called in a profile."""
    return f"{', '.join(inputs)} -> {label}"


def merged(profiles: Iterable[Profile]) -> Profile:
    """The profile of all rows together, at the lowest rates of the parts; the same for every division."""
    parts = list(profiles)
    if not parts:
        return Profile(0, Rates(), Sample(np.empty(0, np.uint64), np.empty(0, np.uint64), [], []), {})
    rates = Rates(min(part.rates.deep for part in parts), min(part.rates.cheap for part in parts))
    parts = [thinned(part, rates) for part in parts]
    names = list(dict.fromkeys(name for part in parts for name in part.columns))
    return Profile(
        sum(part.rows for part in parts),
        rates,
        Sample(
            np.concatenate([part.sample.cheap for part in parts]),
            np.concatenate([part.sample.deep for part in parts]),
            [row_id for part in parts for row_id in part.sample.row_ids],
            [batch for part in parts for batch in part.sample.batches],
        ),
        {name: _merged_column(name, parts) for name in names},
        {
            name: Labelled.merged([part.pairs[name] for part in parts if name in part.pairs])
            for name in dict.fromkeys(name for part in parts for name in part.pairs)
        },
    )


def thinned(profile: Profile, rates: Rates) -> Profile:
    """The profile that the same rows would have at lower rates."""
    if rates == profile.rates:
        return profile
    cheap, deep = below(profile.sample.cheap, rates.cheap), below(profile.sample.deep, rates.deep)
    places = np.flatnonzero(deep).tolist()
    sample = Sample(
        profile.sample.cheap[cheap],
        profile.sample.deep[deep],
        [profile.sample.row_ids[place] for place in places],
        [profile.sample.batches[place] for place in places],
    )
    columns = {}
    for name, column in profile.columns.items():
        sampled = column.sampled
        thin = Sampled(
            {measure: values[cheap] for measure, values in sampled.cheap.items()},
            {measure: values[deep] for measure, values in sampled.deep.items()},
            {label: [values[place] for place in places] for label, values in sampled.labels.items()},
            None if sampled.pieces is None else [sampled.pieces[place] for place in places],
        )
        columns[name] = replace(column, sampled=thin)
    return Profile(profile.rows, rates, sample, columns, profile.pairs)


def _merged_column(name: str, parts: Sequence[Profile]) -> ColumnProfile:
    """The column over all parts; rows of a part that has no such column are null in it."""
    there = [part.columns.get(name) for part in parts]
    present = [column for column in there if column is not None]
    sums = [column.sums for column in present if column.sums is not None]
    top: Counter[str] = Counter()
    for column in present:
        top.update(column.top)
    contents = [column.contents for column in present if column.contents is not None]
    near = [column.near for column in present if column.near is not None]
    return ColumnProfile(
        present[0].kind,
        sum(part.rows if column is None else column.nulls for part, column in zip(parts, there, strict=True)),
        reduce(Sums.plus, sums) if sums else None,
        Contents.merged(contents) if contents else None,
        Contents.merged(near) if near else None,
        dict(top.most_common(MOST_ALL)),
        all(column.top_is_all for column in present) and len(top) <= MOST_ALL,
        _merged_sampled([column and column.sampled for column in there], parts),
        sum(column.text_bytes for column in present),
    )


def _merged_sampled(there: Sequence[Sampled | None], parts: Sequence[Profile]) -> Sampled:
    sizes = [(len(part.sample.cheap), len(part.sample.deep)) for part in parts]

    def numbers(kind: str, place: int) -> dict[str, np.ndarray]:
        found: list[Mapping[str, np.ndarray]] = [getattr(each, kind) if each else {} for each in there]
        return {
            name: np.concatenate(
                [
                    values[name] if name in values else np.full(size[place], np.nan)
                    for values, size in zip(found, sizes, strict=True)
                ]
            )
            for name in dict.fromkeys(name for values in found for name in values)
        }

    labels = [each.labels if each else {} for each in there]
    pieces = [each.pieces if each else None for each in there]
    return Sampled(
        numbers("cheap", 0),
        numbers("deep", 1),
        {
            name: [
                label
                for values, size in zip(labels, sizes, strict=True)
                for label in (values[name] if name in values else [None] * size[1])
            ]
            for name in dict.fromkeys(name for values in labels for name in values)
        },
        None
        if all(rows is None for rows in pieces)
        else [
            row
            for rows, size in zip(pieces, sizes, strict=True)
            for row in ([None] * size[1] if rows is None else rows)
        ],
    )
