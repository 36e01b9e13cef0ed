"""What is measured of a step's kept rows for its checks, stored beside them so that nothing is read twice."""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Literal, NamedTuple

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from dataflow_assets.batch import finite_numbers
from dataflow_assets.errors import StorageError
from dataflow_assets.io import atomic
from dataflow_assets.io.commit_record import CommitRecord
from dataflow_assets.io.layout import STATE
from dataflow_assets.io.step_folder import StepFolder

MEASURES_FILE = "measures.json"
Kind = Literal["nulls", "sum", "repeats"]
_MAX_KNOWN = 50_000
_known: dict[str, "Measure"] = {}


class Measure(NamedTuple):
    """A part and the whole it is of: nulls of rows, a sum of so many numbers, repeats of values."""

    part: float
    whole: int


class Wanted(NamedTuple):
    """What is measured, and in which column."""

    kind: Kind
    column: str


class Measures:
    """The measures of one step's batches, by the content of the rows: equal rows are measured once.

    `wanted` are all that the step's checks need of a batch, so that it is read once for all of them.
    """

    def __init__(self, folder: StepFolder, wanted: Collection[Wanted]) -> None:
        self._folder = folder
        self._wanted = wanted
        self._file = folder.path / STATE / MEASURES_FILE
        self._stored: dict[str, Measure] | None = None
        self._used: dict[str, Measure] = {}

    def of_batch(self, wanted: Wanted, record: CommitRecord) -> Measure:
        """The measure of a committed batch. Raises CorruptFile, StorageError."""

        def measured() -> Measure:
            columns = self._columns(record, {one.column for one in self._wanted} | {wanted.column})
            for one in self._wanted:
                _remember(_name(one, record.content_hash), _MEASURED[one.kind](columns[one.column]))
            return _MEASURED[wanted.kind](columns[wanted.column])

        return self._once(_name(wanted, record.content_hash), measured)

    def repeats_over(self, column: str, records: Sequence[CommitRecord]) -> Measure:
        """The values that repeat an earlier one, over all these batches; holds about 40 bytes a row."""
        contents = "".join(record.content_hash for record in records)
        name = f"all {_name(Wanted('repeats', column), xxhash.xxh3_128_hexdigest(contents.encode()))}"
        columns = (self._columns(record, {column})[column] for record in records)
        return self._once(name, lambda: _repeats(columns))

    def save(self) -> None:
        """Stores what was asked for, in place of what was stored before. Raises StorageError."""
        if self._used != (self._stored or self._read()):
            atomic.make_folder(self._file.parent)
            pairs = {name: list(measure) for name, measure in self._used.items()}
            atomic.write_atomically(self._file, orjson.dumps(pairs, option=orjson.OPT_SORT_KEYS))
            self._stored = dict(self._used)

    def _once(self, name: str, measured: Callable[[], Measure]) -> Measure:
        if name not in _known:
            if self._stored is None:
                self._stored = self._read()
            _remember(name, self._stored[name] if name in self._stored else measured())
        self._used[name] = _known[name]
        return self._used[name]

    def _columns(self, record: CommitRecord, names: Collection[str]) -> dict[str, pa.ChunkedArray]:
        table = self._folder.read(record.batch, record=record)
        assert table is not None
        return {name: _column(table, name) for name in names}

    def _read(self) -> dict[str, Measure]:
        """What is stored; nothing where the file is damaged, for it can be made again."""
        try:
            found = orjson.loads(self._file.read_bytes())
            return {name: Measure(*pair) for name, pair in found.items()}
        except (FileNotFoundError, orjson.JSONDecodeError, AttributeError, TypeError):
            return {}
        except OSError as error:
            raise StorageError(f"{self._file} cannot be read: {error.strerror}; give permission") from error


def _column(table: pa.Table, name: str) -> pa.ChunkedArray:
    """The column; all null where a batch of before has none of this name."""
    if name in table.column_names:
        return table[name]
    return pa.chunked_array([pa.nulls(table.num_rows, pa.large_string())])


def _name(wanted: Wanted, content: str) -> str:
    return f"{wanted.kind} {content} {wanted.column}"


def _remember(name: str, measure: Measure) -> None:
    if len(_known) >= _MAX_KNOWN:
        _known.clear()
    _known[name] = measure


def _nulls(column: pa.ChunkedArray) -> Measure:
    return Measure(pc.sum(column.is_null(nan_is_null=True)).as_py() or 0, len(column))


def _sum(column: pa.ChunkedArray) -> Measure:
    """Over the finite numbers; those of int64 are added exactly up to 2^53."""
    if not pa.types.is_integer(column.type) and not pa.types.is_floating(column.type):
        return Measure(0.0, 0)
    numbers = finite_numbers(column)
    return Measure(pc.sum(numbers).as_py() or 0.0, len(numbers))


def _repeats_in(column: pa.ChunkedArray) -> Measure:
    return _repeats([column])


def _repeats(columns: Iterable[pa.ChunkedArray]) -> Measure:
    """Nulls are no values. Two values that differ share a hash with a probability of 10^-15 in 10^12 rows."""
    halves = np.concatenate([np.empty((0, 2), np.uint64), *map(_hashes, columns)])
    if not len(halves):
        return Measure(0, 0)
    order = np.lexsort((halves[:, 1], halves[:, 0]))
    halves = halves[order]
    same = (halves[1:] == halves[:-1]).all(axis=1)
    return Measure(int(same.sum()), len(halves))


def _hashes(column: pa.ChunkedArray) -> np.ndarray:
    """Two halves of the 128-bit hash of each value that is there."""
    column = column.drop_null()
    if pa.types.is_floating(column.type):
        column = pc.add(column, 0.0)  # -0.0 and 0.0 are one number
    texts = column.cast(pa.large_string()).cast(pa.large_binary()).to_pylist()
    digests = b"".join(map(xxhash.xxh3_128_digest, texts))
    return np.frombuffer(digests, ">u8").reshape(-1, 2).astype(np.uint64)


_MEASURED: dict[Kind, Callable[[pa.ChunkedArray], Measure]] = {
    "nulls": _nulls,
    "sum": _sum,
    "repeats": _repeats_in,
}
