"""Rows that are made, as the one piece of a source."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import orjson
import pyarrow as pa
import xxhash

from dataflow_assets.batch import ColumnType
from dataflow_assets.errors import ConfigError, SourceError, said_by
from dataflow_assets.operators.registry import import_object
from dataflow_assets.sources.chunk import BrokenInput, Chunk
from dataflow_assets.sources.columns import final_names
from dataflow_assets.sources.generated.spec import EmptySource, GeneratorSource
from dataflow_assets.sources.naming import unique_slugs
from dataflow_assets.sources.piece import Found, Known, Piece
from dataflow_assets.sources.python_rows import chunk_of_rows
from dataflow_assets.sources.states import State, VersionState

_CHUNK_ROWS = 1_000
_EMPTY_CHUNK_ROWS = 65_536


class EmptyPiece(Piece):
    """Numbered rows without content."""

    name = slug = "empty"

    def __init__(self, spec: EmptySource) -> None:
        self._spec = spec

    def states(self) -> dict[str, State]:
        """The number of rows is all there is."""
        return {self.name: VersionState.of({"rows": self._spec.empty})}

    def chunks(self, chunk_bytes: int) -> Iterator[Chunk]:
        """Column `index` (int64), from 0."""
        names = final_names(["index"], self.name, self._spec)
        for start in range(0, self._spec.empty, _EMPTY_CHUNK_ROWS):
            index = pa.array(range(start, min(start + _EMPTY_CHUNK_ROWS, self._spec.empty)), pa.int64())
            table = pa.table({new: index for new in names.values()})
            yield Chunk(table, pa.array(range(start + 1, start + 1 + len(index)), pa.int64()), [])

    def known_columns(self) -> Mapping[str, ColumnType | None]:
        """`index`, as the source names it."""
        return {new: "int64" for new in final_names(["index"], self.name, self._spec).values()}


class GeneratorPiece(Piece):
    """The rows of a function."""

    def __init__(self, spec: GeneratorSource) -> None:
        self.name = spec.generator
        (self.slug,) = unique_slugs([(spec.generator.rpartition(":")[2], spec.generator)])
        self._spec = spec

    def states(self) -> dict[str, State]:
        """The given version, else the hash of the function's module; and that of the parameters."""
        made_by = self._spec.version or _code_hash(self._function(), self.name)
        params = orjson.dumps(self._spec.params, option=orjson.OPT_SORT_KEYS)
        facts = {"made_by": made_by, "params": xxhash.xxh3_128_hexdigest(params)}
        return {self.name: VersionState.of(facts)}

    def chunks(self, chunk_bytes: int) -> Iterator[Chunk]:
        """The rows in the order of the function, which is called anew."""
        first, held = 1, []
        broken: BrokenInput | None = None
        try:
            for row in self._rows():
                held.append(row)
                if len(held) == _CHUNK_ROWS:
                    yield chunk_of_rows(held, first, self.name, self._spec)
                    first, held = first + len(held), []
        except BrokenInput as error:
            broken = error
        if held:
            yield chunk_of_rows(held, first, self.name, self._spec)
        if broken is not None:
            raise broken

    def _rows(self) -> Iterator[object]:
        try:
            made = self._function()(**self._spec.params)
            if not isinstance(made, Iterable):
                raise SourceError(
                    f"source {self.name} returned {type(made).__name__}; expected dicts, one after another"
                )
            yield from made
        except SourceError:
            raise
        except (Exception, SystemExit) as error:  # a user's function may raise anything
            raise BrokenInput(
                f"source {self.name} raised {type(error).__name__}: {said_by(error)}; "
                "expected rows to the end"
            ) from error

    def _function(self) -> Callable[..., object]:
        found = import_object(self._spec.generator)
        if not callable(found):
            raise ConfigError(f"source {self.name} is a {type(found).__name__}; expected a function")
        return found


def empty_pieces(spec: EmptySource, base_dir: Path, known: Known) -> Found:
    """The numbered rows."""
    return Found([EmptyPiece(spec)], [])


def generator_pieces(spec: GeneratorSource, base_dir: Path, known: Known) -> Found:
    """The rows of the function. Raises ConfigError where it cannot be imported."""
    piece = GeneratorPiece(spec)
    piece.states()
    return Found([piece], [])


def _code_hash(function: Callable[..., object], name: str) -> str:
    """The hash of the module's text, as it is in its file."""
    try:
        file = inspect.getsourcefile(inspect.unwrap(function))
        content = Path(file).read_bytes() if file else None
    except (OSError, TypeError):
        content = None
    if content is None:
        raise ConfigError(
            f"source {name}: its code is in no file, so nobody sees when it changes; set `source.version`"
        )
    return xxhash.xxh3_128_hexdigest(content)
