"""Batches of rows for training: sharded, shuffled, tokenized, packed, and resumable in mid-epoch."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from itertools import islice
from typing import Any, NamedTuple

import torch
from torch.utils.data import DataLoader, Dataset, Sampler

from dataflow_assets.batch import ROW_ID
from dataflow_assets.errors import ConfigError
from dataflow_assets.torch.datasets import FlowDataset, FlowMixture, MixedRows, Row, check_state, check_whole
from dataflow_assets.torch.packing import Packing
from dataflow_assets.torch.shares import Schedule, ranks_of, share_of

Tokenize = Callable[[list[Row]], "Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Any]]"]
Collate = Callable[[list[Any]], Any]
_VERSION = 1


class _Chunk(NamedTuple):
    """What a worker does at once: a stretch of an epoch."""

    epoch: int
    start: int
    stop: int


class _Position(NamedTuple):
    """How far an epoch is: the chunks that are done, and what was taken of the next one.

    `taken` counts batches or, where rows are packed, sequences.
    """

    chunk: int = 0
    taken: int = 0


class _Work(Dataset[list[Any]]):
    """The work on a chunk, in whatever process: its batches or, where rows are packed, its sequences."""

    def __init__(
        self,
        rows: MixedRows,
        batch_rows: int,
        tokenize: Tokenize | None,
        collate: Collate | None,
        packing: Packing | None,
    ) -> None:
        self._rows = rows
        self._batch_rows = batch_rows
        self._tokenize = tokenize
        self._collate = collate
        self._packing = packing

    def __getitem__(self, chunk: _Chunk) -> list[Any]:
        return list(self.made(chunk))

    def made(self, chunk: _Chunk) -> Iterator[Any]:
        """The same one by one, so that few rows are in memory where it is this process that takes them."""
        if self._packing is not None:
            rows = self._rows.rows(*chunk)
            yield from self._packing.pack(self._examples(rows), [str(row[ROW_ID]) for row in rows])
        elif self._tokenize is not None:
            yield from self._cut([self._examples(self._rows.rows(*chunk))])
        elif self._collate is None and self._rows.is_natural:
            values = self._rows.values(*chunk)
            for begin in range(0, chunk.stop - chunk.start, self._batch_rows):
                yield {name: column[begin : begin + self._batch_rows] for name, column in values.items()}
        else:
            yield from self._cut(self._rows.pieces(*chunk))

    def _cut(self, pieces: Iterable[Sequence[Any]]) -> Iterator[Any]:
        """Batches of the examples, the last one of what is left."""
        collate, size = self._collate or collate_columns, self._batch_rows
        waiting: list[Any] = []
        for some in pieces:
            waiting += some
            whole = len(waiting) - len(waiting) % size
            for begin in range(0, whole, size):
                yield collate(waiting[begin : begin + size])
            waiting = waiting[whole:]
        if waiting:
            yield collate(waiting)

    def _examples(self, rows: list[Row]) -> Sequence[Any]:
        assert self._tokenize is not None
        return _examples(self._tokenize(rows), len(rows))


def collate_columns(examples: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """A dict of columns, each a list of the values as they are."""
    return {name: [example[name] for example in examples] for name in examples[0]}


def _examples(made: Any, rows: int) -> Sequence[Any]:
    """What `tokenize` made, as one example for each row. Raises ConfigError where it is not."""
    if isinstance(made, Mapping):
        columns = {name: list(values) for name, values in made.items()}
        wrong = [name for name, values in columns.items() if len(values) != rows]
        if not wrong:
            return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
        found = f"{len(columns[wrong[0]])} values of {wrong[0]!r}"
    elif isinstance(made, Sized) and len(made) == rows:
        return made  # pyright: ignore[reportReturnType]
    else:
        found = f"{len(made)} examples" if isinstance(made, Sized) else type(made).__name__
    raise ConfigError(
        f"tokenize made {found} of {rows} rows; expected one example for each row, in their order, as a list "
        "of dicts or as a dict of columns"
    )


class _Turns(Sampler[_Chunk]):
    """The chunks of an epoch from a turn on."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.epoch = self.first = 0

    def __iter__(self) -> Iterator[_Chunk]:
        for turn in range(self.first, self.schedule.chunks):
            yield _Chunk(self.epoch, *self.schedule.chunk(turn))

    def __len__(self) -> int:
        return self.schedule.chunks - self.first


class FlowDataLoader:
    """Iterates over the batches of an epoch; the same for the same seed and number of workers.

    A batch is a dict of columns, each a list of `batch_size` values, or what `collate_fn` makes of a list
    of rows. `tokenize` makes an example of each row, many at once; with `packing` the examples become
    sequences, and a batch has `batch_size` of those. Both hooks run in the workers; with packing,
    `collate_fn` gets sequences and runs here.

    With `shuffle` each epoch has an order of its own: files and row groups are shuffled, and rows among
    about 64 MiB of them. Each rank (by argument, else torch.distributed, else RANK and WORLD_SIZE) has a
    stretch of the epoch; all together have each row once, and one rank may have a batch more than another
    unless `drop_last` leaves the rows beyond the same number of full batches out.

    `state_dict()` says how far the epoch is, `load_state_dict()` makes the next iteration go on there, with
    the same batches, whatever the number of workers. After an epoch the next begins by itself.
    """

    def __init__(
        self,
        rows: FlowDataset | FlowMixture,
        batch_size: int = 1,
        *,
        shuffle: bool = False,
        seed: int = 0,
        num_workers: int = 0,
        drop_last: bool = False,
        tokenize: Tokenize | None = None,
        collate_fn: Collate | None = None,
        packing: Packing | None = None,
        rank: int | None = None,
        world_size: int | None = None,
        chunk_rows: int = 1024,
        pin_memory: bool = False,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        multiprocessing_context: str | None = None,
        worker_init_fn: Callable[[int], None] | None = None,
        timeout: float = 0,
    ) -> None:
        check_whole("batch_size", batch_size, least=1)
        check_whole("chunk_rows", chunk_rows, least=1)
        check_whole("num_workers", num_workers)
        if packing is not None and tokenize is None:
            raise ConfigError("packing needs `tokenize`, a function that makes `input_ids` of rows")
        if packing is not None and ROW_ID not in rows.columns:
            raise ConfigError(f"packing says which row each token is of; {ROW_ID!r} is not among the columns")
        self.dataset = rows
        self.batch_size, self.drop_last, self.num_workers = batch_size, drop_last, num_workers
        self._lanes = max(1, num_workers) if shuffle else 1
        self._rows = MixedRows(rows, shuffle, seed)
        self._ranks = ranks_of(rank, world_size)
        self._packing = packing
        self._collate = packing.collate if packing is not None and collate_fn is None else collate_fn
        self._chunk_batches = 1 if packing is not None else max(1, chunk_rows // batch_size)
        self._turn_rows = max(chunk_rows, batch_size) if packing is not None else batch_size
        self._turns = _Turns(self._schedule(self._lanes))
        self._work = _Work(self._rows, batch_size, tokenize, self._collate, packing)
        self._loader: DataLoader[list[Any]] | None = None
        if num_workers or pin_memory:
            self._loader = DataLoader(
                self._work,
                batch_size=None,
                sampler=self._turns,
                num_workers=num_workers,
                collate_fn=_as_it_is,
                pin_memory=pin_memory,
                prefetch_factor=prefetch_factor,
                persistent_workers=persistent_workers,
                multiprocessing_context=multiprocessing_context,
                worker_init_fn=worker_init_fn,
                timeout=timeout,
                generator=torch.Generator(),
            )
        self._epoch = 0
        self._position = _Position()
        self._resumes = False

    @property
    def epoch(self) -> int:
        """The epoch that is iterated over, or that the next iteration is of."""
        return self._epoch

    def set_epoch(self, epoch: int) -> None:
        """Goes to the beginning of an epoch; nothing for the one that it is in. Raises ConfigError."""
        check_whole("epoch", epoch)
        if epoch != self._epoch:
            self._epoch, self._position, self._resumes = epoch, _Position(), False

    @property
    def rows_left_out(self) -> int:
        """How many rows of an epoch no rank gets, because of `drop_last`; not known where rows are packed."""
        each = self._rows.total // self._ranks.world_size // self.batch_size * self.batch_size
        return self._rows.total - each * self._ranks.world_size if self.drop_last else 0

    def __len__(self) -> int:
        """The batches of this rank in an epoch. Raises TypeError where rows are packed."""
        if self._packing is not None:
            raise TypeError(
                "how many batches there are is not known before the rows are tokenized and packed"
            )
        return self._turns.schedule.batches

    def __iter__(self) -> Iterator[Any]:
        if not self._resumes:
            self._position = _Position()
            self._use(self._lanes)
        self._resumes = False
        self._turns.epoch, self._turns.first = self._epoch, self._position.chunk
        return self._packed() if self._packing is not None else self._batches()

    def _done_chunks(self) -> Iterable[Iterable[Any]]:
        return map(self._work.made, self._turns) if self._loader is None else self._loader

    def _batches(self) -> Iterator[Any]:
        skip = self._position.taken
        for chunk, batches in enumerate(self._done_chunks(), self._position.chunk):
            for taken, batch in enumerate(islice(batches, skip, None), skip + 1):
                self._position = _Position(chunk, taken)
                yield batch
            skip = 0
        self._end_epoch()

    def _packed(self) -> Iterator[Any]:
        assert self._collate is not None
        place, waiting = self._position.taken, []
        for chunk, made in enumerate(self._done_chunks(), self._position.chunk):
            sequences = list(made)
            while place < len(sequences):
                some = sequences[place : place + self.batch_size - len(waiting)]
                waiting += some
                place += len(some)
                if len(waiting) == self.batch_size:
                    self._position = _Position(chunk, place)
                    yield self._collate(waiting)
                    waiting = []
            place = 0
        if waiting and not self.drop_last:
            self._position = _Position(self._turns.schedule.chunks, 0)
            yield self._collate(waiting)
        self._end_epoch()

    def _end_epoch(self) -> None:
        self._epoch, self._position = self._epoch + 1, _Position()

    def state_dict(self) -> dict[str, Any]:
        """What was taken of the epoch, as plain values; of which rows, in which order, in which batches."""
        return {
            **self._identity(),
            "lanes": self._turns.schedule.lanes,
            "epoch": self._epoch,
            **self._position._asdict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """The next iteration goes on behind the last batch that was taken when the state was.

        Raises ConfigError for the state of a loader of other rows, another order or other batches.
        """
        check_state(state, self._identity())
        self._epoch, self._position = state["epoch"], _Position(state["chunk"], state["taken"])
        self._resumes = True
        self._use(state["lanes"])

    def _identity(self) -> dict[str, Any]:
        return {
            "version": _VERSION,
            "content": self._rows.content,
            "order": self._rows.order,
            **self._ranks._asdict(),
            "batch_size": self.batch_size,
            "drop_last": self.drop_last,
            "chunk_batches": self._chunk_batches,
            "chunk_rows": self._turn_rows,
            "packing": repr(self._packing),
        }

    def _use(self, lanes: int) -> None:
        """Cuts the share into this many lanes, and keeps as many windows as a worker needs for them."""
        workers = max(1, self.num_workers)
        self._rows.keep_windows(lanes if lanes % workers else lanes // workers)
        self._turns.schedule = self._schedule(lanes)

    def _schedule(self, lanes: int) -> Schedule:
        drop = self.drop_last and self._packing is None
        share = share_of(self._rows.total, self._ranks, self.batch_size, drop)
        return Schedule(share, self._turn_rows, self._chunk_batches, lanes)


def _as_it_is(made: list[Any]) -> list[Any]:
    return made
