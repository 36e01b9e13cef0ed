"""A data set of a store of corpora as pieces: blocks of conversations by their numbers."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
from sqlalchemy import func, select

from dataflow_assets.batch import ROW_ID, ColumnType, Schema
from dataflow_assets.corpora.enhancing import TURN_COLUMNS, turns_table
from dataflow_assets.corpora.queries import TurnQuery
from dataflow_assets.corpora.store import Corpora, Dataset
from dataflow_assets.corpora.tables import TURNS
from dataflow_assets.errors import ConfigError, SourceError
from dataflow_assets.sources.chunk import Chunk
from dataflow_assets.sources.columns import final_names
from dataflow_assets.sources.naming import unique_slugs
from dataflow_assets.sources.piece import Found, Known, Piece
from dataflow_assets.sources.reading_spec import ReadingSpec
from dataflow_assets.sources.sql.spec import CorpusSource
from dataflow_assets.sources.states import State, VersionState

_BLOCK = 10_000
_PAGE_ROWS = 500


class CorpusPiece(Piece):
    """The conversations of a data set whose numbers are `first` to `last`, fixed when it is found."""

    def __init__(
        self, place: str, dataset: Dataset, slug: str, spec: CorpusSource, first: int, last: int
    ) -> None:
        self.slug = slug
        self.name = f"{dataset.name}, conversations from {first}"
        self._place, self._dataset, self._spec = place, dataset, spec
        self._first, self._last = first, last

    def states(self) -> dict[str, State]:
        """Counts of its turns: each change of a turn makes a revision, each new one has a higher id.

        When the data set was made tells it from one of its name elsewhere, or that was made anew.
        """
        numbers = func.count(), func.max(TURNS.c.id), func.sum(TURNS.c.revision)
        within = TURNS.c.row_identifier.between(self._first, self._last)
        query = select(*numbers).where(TURNS.c.dataset_file_id == self._dataset.id, within)
        with Corpora(self._place) as corpora, corpora.database.reading() as connection:
            rows, newest, revisions = (int(one or 0) for one in connection.execute(query).one())
        facts = {
            "turns": rows,
            "newest": newest,
            "revisions": revisions,
            "columns": self._dataset.columns,
            "made": self._dataset.created_at,
        }
        return {self.name: VersionState.of(facts)}

    def chunks(self, chunk_bytes: int) -> Iterator[Chunk]:
        """Conversations by their numbers, or their turns by number and id."""
        names = final_names([name for name in self._columns if name != ROW_ID], self.name, self._spec)
        with Corpora(self._place) as corpora:
            tables = self._turns(corpora) if self._spec.rows == "turns" else self._conversations(corpora)
            for numbers, ids, table in tables:
                fields = [table.schema.field(old).with_name(new) for old, new in names.items()]
                chosen = pa.Table.from_arrays([table[old] for old in names], schema=pa.schema(fields))
                yield Chunk(chosen, pa.array(numbers, pa.int64()), [], ids)

    def known_columns(self) -> Mapping[str, ColumnType | None]:
        """Those of the data set, or of turns."""
        columns = self._columns
        names = final_names([name for name in columns if name != ROW_ID], self.name, self._spec)
        return {new: columns[old] for old, new in names.items()}

    @property
    def _columns(self) -> Schema:
        return TURN_COLUMNS if self._spec.rows == "turns" else self._dataset.columns

    def _conversations(self, corpora: Corpora) -> Iterator[tuple[list[int], None, pa.Table]]:
        query = TurnQuery(first=self._first, last=self._last)
        pages = corpora.pages(self._dataset, _PAGE_ROWS, query)
        for numbers, table in pages:
            yield numbers, None, table

    def _turns(self, corpora: Corpora) -> Iterator[tuple[list[int], pa.Array, pa.Table]]:
        query = TurnQuery(first=self._first, last=self._last)
        after, done = 0, 0
        while turns := corpora.turns(self._dataset, query, after, _PAGE_ROWS):
            table = turns_table(turns)
            ids = pa.array([f"{self.slug}:{turn.id}" for turn in turns], pa.large_string())
            yield list(range(done + 1, done + 1 + len(turns))), ids, table
            after, done = turns[-1].id, done + len(turns)


def place_of(source: ReadingSpec, base_dir: Path) -> str:
    """The store that a source of conversations names; a relative file counts from `base_dir`."""
    if not isinstance(source, CorpusSource):
        raise ConfigError(
            "the source of the pipeline is no data set of a store; expected `source: {corpus: …}`"
        )
    place = source.corpus.get_secret_value()
    return place if "://" in place else str(Path(base_dir, place).absolute())


def corpus_pieces(spec: CorpusSource, base_dir: Path, known: Known) -> Found:
    """The blocks of the data set as it is now. Raises ConfigError, CorpusError, SourceError."""
    place = place_of(spec, base_dir)
    with Corpora(place) as corpora:
        dataset = corpora.dataset(spec.dataset)
        last = corpora.last_number(dataset)
    if not last:
        raise SourceError(f"the data set {spec.dataset!r} is empty; expected at least one conversation")
    starts = range(1, last + 1, _BLOCK)
    slugs = unique_slugs(
        [(f"{dataset.name}_{start // _BLOCK:05d}", f"{dataset.name} {start}") for start in starts]
    )
    blocks = zip(slugs, starts, strict=True)
    return Found(
        [
            CorpusPiece(place, dataset, slug, spec, start, min(last, start + _BLOCK - 1))
            for slug, start in blocks
        ],
        [],
    )
