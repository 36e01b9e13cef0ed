"""What a source is made of: pieces, each read from its first row to its last and known by its states."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from dataflow_assets.batch import ColumnType
from dataflow_assets.errors import SourceError
from dataflow_assets.sources.chunk import Chunk
from dataflow_assets.sources.states import State


class Piece(ABC):
    """A file, a shard, a range of keys: what is read, skipped and told of as one.

    `name` is how people know it, without credentials, and differs from those of the other pieces.
    `slug` ([a-z0-9_-], at most 48 characters, different likewise) begins its batch keys and row ids.
    Both are the same at the next look, whatever other pieces come or go. `name_column` is the column
    that names the row, where a row is a whole file.

    The id of a row is `<slug>:<number>`, its number from `Chunk.numbers`, unless `Chunk.row_ids` gives
    another; that one must begin with `<slug>:` too, so that `trace` finds the piece.
    """

    name: str
    slug: str
    name_column: str | None = None

    @abstractmethod
    def states(self) -> dict[str, State]:
        """How the piece looks now: what tells at the next look that it is the same.

        By name: `{self.name: …}` mostly. Kept in the manifest, so nothing secret is in it. Raises
        SourceError.
        """

    @abstractmethod
    def chunks(self, chunk_bytes: int) -> Iterator[Chunk]:
        """The rows in an order that is the same each time, about `chunk_bytes` of them at once.

        Columns are chosen and renamed as the source says (`columns.final_names`). A record that is no
        row is a BadRecord. Raises BrokenInput, after what could be read, or SourceError.
        """

    def is_still(self, read: Mapping[str, State]) -> bool:
        """Whether the piece is as it was when it was read, so that its batches are kept."""
        now = self.states()
        return list(now) == list(read) and all(now[name].hash == read[name].hash for name in now)

    def check_same(self, before: Mapping[str, State]) -> None:
        """Raises SourceError where the piece changed while it was read."""
        if not self.is_still(before):
            raise SourceError(f"{self.name} changed while it was read; run again when it is complete")

    def look(self) -> object:
        """What differs when the piece changed, told without reading it; JSON values."""
        return {name: state.hash for name, state in self.states().items()}

    def known_columns(self) -> Mapping[str, ColumnType | None] | None:
        """The columns under their final names, where they are known without reading rows."""
        return None

    def for_a_look(self) -> "Piece":
        """The piece as it is read for its first rows alone, where that is cheaper than to read it all."""
        return self

    def size(self) -> int:
        """Its bytes, or about as many; 0 where nobody knows before reading."""
        return 0


class Known(NamedTuple):
    """What earlier readings settled: `pins` is what was resolved once, a revision for example.

    `slugs` has those of the pieces that were read, by their names.
    """

    pins: Mapping[str, str] = {}
    slugs: Mapping[str, str] = {}


NOTHING_KNOWN = Known()


class Found(NamedTuple):
    """The pieces of a source in order, the names that were left out, and what was resolved.

    `unwatched` says, where it is so, why a change of the source is not seen before it is read.
    """

    pieces: Sequence[Piece]
    skipped: list[str]
    pins: Mapping[str, str] = {}
    unwatched: str = ""
